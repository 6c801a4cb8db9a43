// NearestNeighborGP: at every point a small Gaussian process on the nearest past samples.
//
// With z_1 .. z_k the nearest inputs to x among the last `memory` samples, v their targets, K the
// matrix of k(z_i, z_j) + constant, and q_i = k(x, z_i) + constant:
//
//     f(x) = q' (K + noise I)^-1 v = (L^-1 q)' (L^-1 v),   K + noise I = L L'.
//
// The four kernels of a pack share the search, and all outputs share neighbors, L and L^-1 q, which
// follow from the inputs: an output has only L^-1 v of its own. f is a posterior mean, but of
// another process at every x, so it is not a function of the kernel's space: norm^2 is 0.
//
// The memory is a ring: sample number n of the learner is at place n % memory. Reading all inputs
// takes most of the time of a search, so they are kept in single precision, and f(x) is computed at
// x in single precision. A search goes from the newest sample to the oldest, and takes an input only
// if it is nearer than those it has: so of equally near ones the newest stay.
//
// The neighbor that the next sample will replace in the ring comes last. So the first k - 1 of k
// neighbors are those of f(x) after x itself is learned: x is then the nearest, with all others but
// the last. With the prediction m from these and its variance s, f(x) after learning (x, y) is
//
//     m + s (y - m) / (s + noise).
//
// A sample whose target is missing is among the neighbors, but is left out of the local system of
// that output, which then has an L of its own.
#include <cmath>

#include "../learner.hpp"

namespace kb {

namespace {

/// Samples of a block of the memory, whose distances are computed at once.
constexpr int BLOCK = 4 * WIDTH;

/// Sixteen sums of squares, of the samples of a block.
struct Sixteen {
  Lanes sums[WIDTH] = {0.0, 0.0, 0.0, 0.0};

  /// Add (z - x)^2, for a coordinate of sixteen samples.
  void add_squares(const float* z, Lanes x) {
#pragma GCC unroll 4
    for (Lanes& sum : sums) {
      const Lanes u = Lanes(z[0], z[1], z[2], z[3]) - x;  // written so, it is one instruction
      sum = fma(u, u, sum);
      z += WIDTH;
    }
  }
  /// Whether one of them is less than `most`.
  bool some_less(Lanes most) const {
    auto smaller = [](Lanes x, Lanes y) { return where_less(y, x, y, x); };
    const Lanes least = smaller(smaller(sums[0], sums[1]), smaller(sums[2], sums[3]));
    return !all_less(0.0, where_less(least, most, 0.0, 1.0));
  }
};

class NearestNeighborGP final : public Learner {
 public:
  explicit NearestNeighborGP(const LearnerSpec& spec)
      : neighbors_(spec.settings.count("neighbors")),
        memory_(spec.settings.count("memory")),
        noise_(spec.settings.number("noise")),
        constant_(spec.settings.number("constant")),
        window_(spec.objective.window),
        coordinates_(spec.settings.indices("coordinates", spec.dimension)),
        kernel_(spec.kernels),
        point_(spec.dimension),
        chosen_(spec.dimension, neighbors_) {
    const int blocks = (memory_ + BLOCK - 1) / BLOCK;
    points_ = Matrix<float>(blocks, BLOCK * int(coordinates_.size()));
    for (int k = 0; k < spec.objective.outputs(); ++k) outputs_.emplace_back(memory_);
  }

  void visit(Archive& archive) override {
    archive("points", points_);
    archive.count("stored", stored_);
    archive.parts("output", outputs_);
  }

  void learn(const Block& block, Record* records) override {
    for (int t = 0; t < block.count; ++t) {
      const double* x = block.x(t);
      if (!block.samples.uses_query) solve_at(x);  // else all is as the query left it
      const int place = remember(x);
      for (std::size_t k = 0; k < outputs_.size(); ++k) {
        Output& output = outputs_[k];
        Record& record = records[k];
        const double y = block.targets[k][t][0];
        record.predictions[t] = output.prediction;
        record.values[t + 1][window_ - 1] = value_after(output, y);
        record.norms[t + 1] = 0.0;
        output.responses[0][place] = y;
      }
      // Values of f at the older samples of the window; 0 before the first sample.
      const int position = block.samples.place(block.first + t);
      for (int age = 1; age < window_; ++age) {
        const bool seen = age <= block.first + t;
        if (seen) {
          for (int c : coordinates_) point_[c] = float(block.samples.inputs(c)[position - age]);
          solve_at_point();
        }
        for (std::size_t k = 0; k < outputs_.size(); ++k)
          records[k].values[t + 1][window_ - 1 - age] = seen ? outputs_[k].prediction : Lanes(0.0);
      }
    }
  }

  void predict(const Query& query, Lanes* out) override {
    solve_at(query.x);
    for (const Output& output : outputs_) *out++ = output.prediction;
  }

  /// (k(x, x) + constant - q' (K + noise I)^-1 q) / noise.
  void variance(const Query& query, Lanes* out, int) override {
    solve_at(query.x);
    for (const Output& output : outputs_) *out++ = output.variance / noise_;
  }

  /// Move the targets to the places that their samples have in the memory of all outputs.
  void fit_output(int k, Learner& alone, double past) override {
    auto& other = dynamic_cast<NearestNeighborGP&>(alone);
    double* responses = outputs_[k].responses[0];
    const double* its_responses = other.outputs_[0].responses[0];
    std::fill_n(responses, memory_, past);
    const std::int64_t count = std::min<std::int64_t>({other.stored_, stored_, memory_});
    for (std::int64_t age = 1; age <= count; ++age)
      responses[(stored_ - age) % memory_] = its_responses[(other.stored_ - age) % memory_];
  }

  bool may_fail() const override { return kernel_.may_fail(); }

 private:
  /// What belongs to one output.
  struct Output {
    explicit Output(int memory) : responses(1, memory) {}
    void visit(Archive& archive) { archive("responses", responses); }
    Matrix<double> responses;  // (1, memory): targets of the samples in it; NaN: missing
    // scratch, at the last point:
    Lanes prediction = 0.0, variance = 0.0;  // f(x), and its variance
    Lanes mean = 0.0, spread = 0.0;          // m and s, of the neighbors that stay
    int with_target = 0;                     // neighbors with a target
  };

  // --- the search ------------------------------------------------------------------------------

  /// Put a sample among the `count` nearest so far; returns how many they are now.
  int insert(int count, int place, double distance) {
    int i = count;
    if (count == neighbors_) {
      i = count - 1;
      if (!(distance < distances_[i])) return count;
    }
    for (; i > 0 && distance < distances_[i - 1]; --i) {
      distances_[i] = distances_[i - 1];
      nearest_[i] = nearest_[i - 1];
    }
    distances_[i] = distance;
    nearest_[i] = place;
    return std::min(count + 1, neighbors_);
  }

  /// Look at the places high - 1 down to low; returns the number of nearest samples so far.
  ///
  /// Sixteen distances at once, each a sum over the coordinates in their order. Where half of the
  /// coordinates already make all of them too large, the others are not read.
  int search(int low, int high, int count) {
    if (high <= low) return count;
    const int dimension = int(coordinates_.size()), half = dimension / 2;
    const int* coordinates = coordinates_.data();
    const double* point = point_.data();
    for (int number = (high - 1) / BLOCK; number >= low / BLOCK; --number) {
      const float* block = points_[number];
      const double most = count == neighbors_ ? distances_[count - 1] : INF;
      Sixteen sums;
      for (int k = 0; k < half; ++k) sums.add_squares(block + BLOCK * k, point[coordinates[k]]);
      if (half > 0 && most < INF && !sums.some_less(most)) continue;
      for (int k = half; k < dimension; ++k)
        sums.add_squares(block + BLOCK * k, point[coordinates[k]]);
      if (most < INF && !sums.some_less(most)) continue;
      double distances[BLOCK];
      std::memcpy(distances, sums.sums, sizeof distances);
      const int start = number * BLOCK;
      for (int place = std::min(start + BLOCK, high) - 1; place >= std::max(start, low); --place)
        count = insert(count, place, distances[place - start]);
    }
    return count;
  }

  /// nearest[:count] = the places of the samples nearest to `point`; returns their number. The one
  /// that the next sample replaces comes last.
  int find_nearest() {
    if (stored_ < memory_) return search(0, int(stored_), 0);
    const int next_place = int(stored_ % memory_);
    const int count = search(next_place, memory_, search(0, next_place, 0));
    const auto end = nearest_.begin() + count;
    const auto replaced = std::find(nearest_.begin(), end, next_place);
    if (replaced != end) std::rotate(replaced, replaced + 1, end);
    return count;
  }

  /// Keep an input, in the place of the oldest if the memory is full; returns its place.
  int remember(const double* x) {
    const int place = int(stored_ % memory_);
    float* block = points_[place / BLOCK] + place % BLOCK;
    for (std::size_t k = 0; k < coordinates_.size(); ++k)
      block[BLOCK * k] = float(x[coordinates_[k]]);
    ++stored_;
    return place;
  }

  // --- the local systems -----------------------------------------------------------------------

  void solve_at(const double* x) {
    for (int c : coordinates_) point_[c] = float(x[c]);
    solve_at_point();
  }
  /// Everything that outputs have of a point, for the input in `point`.
  void solve_at_point() {
    const int count = find_nearest(), staying = std::min(count, neighbors_ - 1);
    int whole = 0;  // outputs that know the targets of all neighbors
    for (Output& output : outputs_) {
      output.with_target = 0;
      for (int i = 0; i < count; ++i)
        output.with_target += !std::isnan(output.responses[0][nearest_[i]]);
      whole += output.with_target == count;
    }
    if (whole > 0) {
      factorize(nearest_.data(), count, staying);
      for (Output& output : outputs_)
        if (output.with_target == count) substitute(output, nearest_.data(), count, staying);
    }
    for (Output& output : outputs_) {
      if (output.with_target == count) continue;
      int with_target = 0, with_target_staying = 0;
      for (int i = 0; i < count; ++i) {
        if (std::isnan(output.responses[0][nearest_[i]])) continue;
        places_[with_target++] = nearest_[i];
        if (i < staying) with_target_staying = with_target;
      }
      factorize(places_.data(), with_target, with_target_staying);
      substitute(output, places_.data(), with_target, with_target_staying);
    }
  }

  /// row[j] = k(x, z_j) + constant for j < count.
  void write_row(const double* x, int count, Lanes* row) {
    if (count == 0) return;
    kernel_.write(x, chosen_[0], neighbors_, count, row);
    for (int j = 0; j < count; ++j) row[j] = row[j] + constant_;
  }

  /// Column c of L: L_jc at [j], j > c. Only the lower triangle is kept: it stays in the cache.
  Lanes* column(int c) { return factor_.data() + c * neighbors_ - c * (c + 1) / 2; }

  /// L, 1 / L_ii, L^-1 q and the variances, of the neighbors at these places, of which the first
  /// `staying` stay.
  void factorize(const int* places, int count, int staying) {
    for (int c : coordinates_) chosen_[c][0] = point_[c];
    write_row(point_.data(), 1, row_.data());
    variance_ = row_[0];
    spread_ = variance_;
    for (int i = 0; i < count; ++i) {
      const float* z = points_[places[i] / BLOCK] + places[i] % BLOCK;
      for (std::size_t k = 0; k < coordinates_.size(); ++k)
        chosen_[coordinates_[k]][i] = z[BLOCK * k];
    }
    write_row(point_.data(), count, query_row_.data());
    for (int i = 0; i < count; i += 2) {
      if (i + 1 < count)
        add_rows<2>(i, staying);
      else
        add_rows<1>(i, staying);
    }
    variance_ = where_less(variance_, 0.0, 0.0, variance_);
  }

  /// row[j] = (K + noise I)_ij, j <= i.
  void write_row_of(int i, Lanes* row) {
    for (int c : coordinates_) other_[c] = chosen_[c][i];
    write_row(other_.data(), i + 1, row);
    row[i] = row[i] + noise_;
  }

  /// Rows i .. i + R - 1 of L and of L^-1 q, one or two: then each column is read once for both, and
  /// while one row waits for a result the other goes on. i is even.
  template <int R>
  void add_rows(int i, int staying) {
    Lanes* const rows[2] = {row_.data(), next_row_.data()};
    Lanes *scales = scales_.data(), *projected = projected_.data(), q[R];
    for (int r = 0; r < R; ++r) {
      write_row_of(i + r, rows[r]);
      q[r] = query_row_[i + r];
    }
    for (int c = 0; c < i; c += 2) {  // two columns at once
      Lanes *first = column(c), *second = column(c + 1), minus[R][2];  // minus: -L_ic, -L_i,c+1
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r) {
        minus[r][0] = -rows[r][c] * scales[c];
        minus[r][1] = -fma(minus[r][0], first[c + 1], rows[r][c + 1]) * scales[c + 1];
        first[i + r] = -minus[r][0];
        second[i + r] = -minus[r][1];
        q[r] = fma(minus[r][1], projected[c + 1], fma(minus[r][0], projected[c], q[r]));
      }
      for (int j = c + 2; j < i + R; ++j) {  // row i gets a number too many, which nobody reads
        const Lanes l_first = first[j], l_second = second[j];
#pragma GCC unroll 2
        for (int r = 0; r < R; ++r)
          rows[r][j] = fma(minus[r][1], l_second, fma(minus[r][0], l_first, rows[r][j]));
      }
    }
    finish_row(i, rows[0][i], q[0], staying);
    if constexpr (R == 2) {
      Lanes *last = column(i), *row = rows[1];
      const Lanes minus = -row[i] * scales[i];
      last[i + 1] = -minus;
      row[i + 1] = fma(minus, last[i + 1], row[i + 1]);
      finish_row(i + 1, row[i + 1], fma(minus, projected[i], q[1]), staying);
    }
  }

  /// 1 / L_ii and (L^-1 q)_i, from what is left of the diagonal and of q_i.
  void finish_row(int i, Lanes rest, Lanes q, int staying) {
    // At least the noise in exact arithmetic; rounding must not make it smaller.
    const Lanes pivot = where_less(rest, noise_, noise_, rest);
    scales_[i] = 1.0 / sqrt(pivot);
    projected_[i] = q * scales_[i];
    variance_ = variance_ - projected_[i] * projected_[i];
    if (i == staying - 1) spread_ = where_less(variance_, 0.0, 0.0, variance_);
  }

  /// f(x) and m of an output from L, by L^-1 v column by column.
  void substitute(Output& output, const int* places, int count, int staying) {
    Lanes* __restrict solved = solved_.data();
    for (int i = 0; i < count; ++i) solved[i] = output.responses[0][places[i]];
    Lanes mean = 0.0;
    output.mean = mean;
    for (int c = 0; c < count; ++c) {
      const Lanes solution = solved[c] * scales_[c], minus = -solution;
      mean = fma(solution, projected_[c], mean);
      if (c == staying - 1) output.mean = mean;
      const Lanes* l = column(c);
      for (int j = c + 1; j < count; ++j) solved[j] = fma(l[j], minus, solved[j]);
    }
    output.prediction = mean;
    output.variance = variance_;
    output.spread = spread_;
  }

  /// f(x) after (x, y) is learned; a missing target leaves the prediction of those that stay.
  Lanes value_after(const Output& output, double y) const {
    if (std::isnan(y)) return output.mean;
    const Lanes mean = output.mean, spread = output.spread;
    return mean + spread * ((y - mean) / (spread + noise_));
  }

  // settings
  int neighbors_, memory_;
  double noise_, constant_;
  int window_;
  std::vector<int> coordinates_;  // of the inputs that count
  TermKernel kernel_;
  // state
  Matrix<float> points_;     // (memory / BLOCK, coordinates * BLOCK): inputs, in blocks
  std::int64_t stored_ = 0;  // samples stored so far
  std::vector<Output> outputs_;
  // scratch
  Array<double> point_, other_ = point_;  // inputs, of which only `coordinates` are set
  Matrix<double> chosen_;                 // (dimension, neighbors): the neighbors' inputs, likewise
  std::vector<int> nearest_ = std::vector<int>(neighbors_);  // places in the memory
  std::vector<int> places_ = nearest_;                       // those of them with a target
  Array<double> distances_ = Array<double>(neighbors_);      // squared, of the nearest, ascending
  Array<Lanes> factor_ = Array<Lanes>(std::size_t(neighbors_) * (neighbors_ + 1) / 2);  // L by columns
  Array<Lanes> row_ = Array<Lanes>(neighbors_), next_row_ = row_;  // two rows of K + noise I
  Array<Lanes> query_row_ = row_;                                  // q
  Array<Lanes> scales_ = row_, solved_ = row_, projected_ = row_;  // 1 / L_ii, L^-1 v, L^-1 q
  Lanes variance_ = 0.0, spread_ = 0.0;       // at x, from all neighbors and from those that stay
};

}  // namespace

std::vector<NamedLearner> nearest_neighbors_family() {
  return {{"NearestNeighborGP", make<NearestNeighborGP>, true}};
}

}  // namespace kb
