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
    archive("stored", stored_);
    archive.require(stored_ >= 0 && stored_ < (std::int64_t(1) << 53),
                    "stored is not a count of samples");
    archive.parts("output", outputs_);
  }

  void learn(const Block& block, Record* records) override {
    for (int t = 0; t < block.count; ++t) {
      const double* x = block.x(t);
      if (!block.samples.uses_query) {  // else all is as the query left it
        for (int c : coordinates_) point_[c] = float(x[c]);
        solve_at_point();
      }
      const int place = remember(x);
      for (std::size_t k = 0; k < outputs_.size(); ++k) {
        Output& output = outputs_[k];
        Record& record = records[k];
        const double y = block.targets[k][t][0];
        record.predictions[t] = output.prediction;
        record.values[t + 1][window_ - 1] = value_after(output, y);
        record.norms[t + 1] = 0.0;
        output.responses[place] = y;
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
    for (int c : coordinates_) point_[c] = float(query.x[c]);
    solve_at_point();
    for (const Output& output : outputs_) *out++ = output.prediction;
  }

  /// (k(x, x) + constant - q' (K + noise I)^-1 q) / noise.
  void variance(const Query& query, Lanes* out, int) override {
    for (int c : coordinates_) point_[c] = float(query.x[c]);
    solve_at_point();
    for (const Output& output : outputs_) *out++ = output.variance / noise_;
  }

  /// Move the targets to the places that their samples have in the memory of all outputs.
  void fit_output(int k, Learner& alone, double past) override {
    auto& other = dynamic_cast<NearestNeighborGP&>(alone);
    Array<double>& responses = outputs_[k].responses;
    std::fill(responses.begin(), responses.end(), past);
    const std::int64_t known = std::min<std::int64_t>({other.stored_, stored_, memory_});
    for (std::int64_t age = 1; age <= known; ++age)
      responses[(stored_ - age) % memory_] = other.outputs_[0].responses[(other.stored_ - age) % memory_];
  }

  bool may_fail() const override { return kernel_.may_fail(); }

 private:
  /// What belongs to one output.
  struct Output {
    explicit Output(int memory) : responses(memory) {}
    void visit(Archive& archive) { archive("responses", responses); }
    Array<double> responses;  // targets of the samples in the memory; NaN: missing
    // scratch, at the last point:
    Lanes prediction = 0.0, variance = 0.0;  // f(x), and its variance
    Lanes mean = 0.0, spread = 0.0;          // m and s, of the neighbors that stay
    int known = 0;                           // neighbors with a target
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
      double found[BLOCK];
      std::memcpy(found, sums.sums, sizeof found);
      const int start = number * BLOCK;
      for (int place = std::min(start + BLOCK, high) - 1; place >= std::max(start, low); --place)
        count = insert(count, place, found[place - start]);
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

  /// Everything that outputs have of a point, for the input in `point`.
  void solve_at_point() {
    const int count = find_nearest(), staying = std::min(count, neighbors_ - 1);
    int whole = 0;  // outputs that know the targets of all neighbors
    for (Output& output : outputs_) {
      output.known = 0;
      for (int i = 0; i < count; ++i)
        output.known += !std::isnan(output.responses[nearest_[i]]);
      whole += output.known == count;
    }
    if (whole > 0) {
      factorize(nearest_.data(), count, staying);
      for (Output& output : outputs_)
        if (output.known == count) substitute(output, nearest_.data(), count, staying);
    }
    for (Output& output : outputs_) {
      if (output.known == count) continue;
      int known = 0, known_staying = 0;
      for (int i = 0; i < count; ++i) {
        if (std::isnan(output.responses[nearest_[i]])) continue;
        known_[known++] = nearest_[i];
        if (i < staying) known_staying = known;
      }
      factorize(known_.data(), known, known_staying);
      substitute(output, known_.data(), known, known_staying);
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
        add_rows<true>(i, staying);
      else
        add_rows<false>(i, staying);
    }
    variance_ = where_less(variance_, 0.0, 0.0, variance_);
  }

  /// row[j] = (K + noise I)_ij, j <= i.
  void write_row_of(int i, Lanes* row) {
    for (int c : coordinates_) other_[c] = chosen_[c][i];
    write_row(other_.data(), i + 1, row);
    row[i] = row[i] + noise_;
  }

  /// Row i of L and of L^-1 q, and row i + 1 if there are two: then each column is read once for
  /// both, and while one row waits for a result the other goes on. i is even.
  template <bool two>
  void add_rows(int i, int staying) {
    Lanes *row = row_.data(), *next = next_row_.data();
    Lanes *scales = scales_.data(), *projected = projected_.data();
    write_row_of(i, row);
    Lanes q = query_row_[i], q_next = 0.0;
    if constexpr (two) {
      write_row_of(i + 1, next);
      q_next = query_row_[i + 1];
    }
    for (int c = 0; c < i; c += 2) {  // two columns at once
      Lanes *first = column(c), *second = column(c + 1);
      const Lanes one = -row[c] * scales[c];  // -L_ic
      const Lanes other = -fma(one, first[c + 1], row[c + 1]) * scales[c + 1];
      first[i] = -one;
      second[i] = -other;
      q = fma(other, projected[c + 1], fma(one, projected[c], q));
      if constexpr (two) {
        const Lanes one_next = -next[c] * scales[c];
        const Lanes other_next = -fma(one_next, first[c + 1], next[c + 1]) * scales[c + 1];
        first[i + 1] = -one_next;
        second[i + 1] = -other_next;
        q_next = fma(other_next, projected[c + 1], fma(one_next, projected[c], q_next));
        for (int j = c + 2; j <= i; ++j) {
          const Lanes l_first = first[j], l_second = second[j];
          row[j] = fma(other, l_second, fma(one, l_first, row[j]));
          next[j] = fma(other_next, l_second, fma(one_next, l_first, next[j]));
        }
        next[i + 1] = fma(other_next, second[i + 1], fma(one_next, first[i + 1], next[i + 1]));
      } else {
        for (int j = c + 2; j <= i; ++j)
          row[j] = fma(other, second[j], fma(one, first[j], row[j]));
      }
    }
    finish_row(i, row[i], q, staying);
    if constexpr (two) {
      Lanes* last = column(i);
      const Lanes one = -next[i] * scales[i];
      last[i + 1] = -one;
      next[i + 1] = fma(one, last[i + 1], next[i + 1]);
      finish_row(i + 1, next[i + 1], fma(one, projected[i], q_next), staying);
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
    for (int i = 0; i < count; ++i) solved[i] = output.responses[places[i]];
    Lanes mean = 0.0;
    output.mean = mean;
    for (int c = 0; c < count; ++c) {
      const Lanes own = solved[c] * scales_[c], minus = -own;
      mean = fma(own, projected_[c], mean);
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
  std::vector<int> known_ = nearest_;                        // those of them with a target
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
