// BoostedTrees: trees that each learn what those before them leave, grown anew as the stream goes on.
//
//     f(x) = c + sum over the trees t of v_t(x),  v_t(x) = the value of the leaf of x in tree t
//
// Generations. The last `memory` samples are kept. While one generation of trees predicts, the next
// one is grown, a tree at a time, whenever its share of the generation's samples has come. A
// generation takes half as many samples as there are at its beginning: so the work per sample stays
// the same, and the trees know of at least 4/9 of the samples so far. c is the mean of the targets.
//
// A tree learns the residuals r of a random half of the samples. Its leaves are split greedily, that
// of the largest gain first: of all inputs and thresholds (x <= threshold goes to the first child),
//
//     gain = S1^2 / (n1 + R) + S2^2 / (n2 + R) - S^2 / (n + R),  S = the sum of r, n = their number,
//
// with R = RIDGE. Thresholds are quantiles of the inputs, the same for all trees of a generation. So
// samples become codes, numbers of intervals, and a histogram of the codes gives all gains of an
// input. A leaf has the value learning_rate S / (n + R).
//
// Adaptation. The trees that predict go on to learn: a sample moves the values of its leaves and c,
// each with a variance P_t that falls with the number n_t of its samples, by the Kalman step
//
//     v_t += P_t / (1 + sum of P) (y - f),   P_t = adaptation learning_rate / (n_t + 2 R).
//
// So they follow a drift until the next generation. Inputs and thresholds are in single precision.
// f is not in the space of a kernel: norm^2 is 0, which means none. The trees are one slot, in lane 0.
#include <cmath>

#include "../learner.hpp"
#include "../math.hpp"

namespace kb {

namespace {

constexpr double RIDGE = 2.0;
constexpr int LEAST = 3;         // samples of a leaf, of the half that a tree learns
constexpr int FIRST = 16;        // samples after which the first generation begins
constexpr int DEEPEST = 10;      // splits on a way to a leaf
constexpr int MOST_BINS = 64;    // intervals of an input
constexpr int QUANTILES_OF = 512;  // how many of the samples give thresholds

/// A sum of residuals, and their number: one addition for both.
typedef double Sum __attribute__((vector_size(16)));

/// Trees in the order of their growth. Cell 0 of a tree is its root. The second child of a cell is the
/// cell after the first one; a leaf is its own child, so that all ways down have the same length.
struct Trees {
  Trees(int trees, int cells)
      : thresholds(trees, cells, float(INF)),
        axes(trees, cells),
        children(trees, cells),
        values(trees, cells),
        counts(trees, cells),
        depths(trees) {
    clear();
  }
  void visit(Archive& archive) {
    archive("constant", constant);
    archive("thresholds", thresholds);
    archive("axes", axes);
    archive("children", children);
    archive("values", values);
    archive("counts", counts);
    archive("depths", depths);
    if (!archive.loaded) return;
    const int cells = axes.columns();
    for (int t = 0; t < axes.rows(); ++t) {
      archive.require(depths[t] >= 0 && depths[t] <= DEEPEST, "depths are too large");
      for (int i = 0; i < cells; ++i) {
        const int child = children[t][i];
        const bool leaf = child == i && thresholds[t][i] == float(INF);
        archive.require(leaf || (child > i && child + 1 < cells), "the cells are no tree");
        archive.require(axes[t][i] >= 0, "axes are not coordinates");
      }
    }
  }
  /// All trees become one leaf of value 0.
  void clear() {
    for (int t = 0; t < axes.rows(); ++t) {
      for (int i = 0; i < axes.columns(); ++i) make_leaf(t, i, 0.0, 0.0);
      depths[t] = 0;
    }
  }
  void make_leaf(int tree, int cell, double value, double count) {
    thresholds[tree][cell] = float(INF);
    axes[tree][cell] = 0;
    children[tree][cell] = cell;
    values[tree][cell] = value;
    counts[tree][cell] = count;
  }
  /// The leaf of an input.
  int descend(int tree, const float* x) const {
    const float* threshold = thresholds[tree];
    const std::int32_t *axis = axes[tree], *child = children[tree];
    std::int64_t cell = 0;
    for (std::int64_t level = depths[tree]; level > 0; --level)
      cell = child[cell] + (x[axis[cell]] > threshold[cell]);
    return int(cell);
  }

  double constant = 0.0;
  Matrix<float> thresholds;
  Matrix<std::int32_t> axes, children;  // of the split; the cell itself for a leaf
  Matrix<double> values, counts;        // v, and the number of samples of a leaf
  Array<std::int64_t> depths;           // the most splits on a way to a leaf
};

class BoostedTrees final : public PointLearner {
 public:
  explicit BoostedTrees(const LearnerSpec& spec)
      : PointLearner(spec),
        trees_(spec.settings.count("trees")),
        leaves_(spec.settings.whole("leaves", 2)),
        memory_(spec.settings.whole("memory", FIRST)),
        rate_(spec.settings.number("learning_rate")),
        adaptation_(spec.settings.number("adaptation")),
        coordinates_(spec.settings.indices("coordinates", spec.dimension)),
        dimension_(int(coordinates_.size())),
        key_(spec.settings.random_key()) {
    if (dimension_ < 1) throw std::invalid_argument("no inputs");
  }

  void visit(Archive& archive) override {
    archive("points", points_);
    archive("targets", targets_);
    archive("bounds", bounds_);
    archive("stored", stored_);
    archive("begun", begun_);
    archive("grown", grown_);
    archive("generation", generation_);
    archive.part("now", now_);
    archive.part("next", next_);
    if (!archive.loaded) return;
    constexpr std::int64_t most = std::int64_t(1) << 53;
    archive.require(stored_ >= 0 && stored_ < most, "stored is not a count of samples");
    archive.require(begun_ >= 0 && begun_ <= stored_, "begun is not a number of a sample");
    archive.require((begun_ == 0) == (stored_ < FIRST), "begun is not that of a generation");
    archive.require(grown_ >= 0 && grown_ <= trees_, "grown is not a number of trees");
    archive.require(generation_ >= 0 && generation_ < most, "generation is not a count");
    for (const Trees* some : {&now_, &next_})
      for (std::int64_t axis : some->axes.numbers)
        archive.require(axis < dimension_, "axes are not coordinates");
    coded_ = 0;
  }

  void continue_from(Learner& narrower) override {
    Learner::continue_from(narrower);
    coded_ = 0;
  }
  void take_slot(int to, Learner& source, int from, bool shared) override {
    Learner::take_slot(to, source, from, shared);
    coded_ = 0;
  }

 private:
  // --- predicting and adapting -------------------------------------------------------------------

  /// f(x), the point and the leaf of each tree.
  double value_at(const double* x) override {
    for (int k = 0; k < dimension_; ++k) point_[k] = float(x[coordinates_[k]]);
    return evaluate();
  }
  double evaluate() {
    double value = now_.constant;
    for (int t = 0; t < trees_; ++t) {
      leaf_[t] = now_.descend(t, point_.data());
      value += now_.values[t][leaf_[t]];
    }
    return value;
  }

  double learn_target(std::int64_t, const double*, double value, double target) override {
    value = adapt(value, target);
    remember(target);
    return grow() ? evaluate() : value;
  }

  /// The Kalman step of c and of the leaves that the last input is in; returns f there.
  double adapt(double value, double target) {
    const double strength = adaptation_ * rate_;
    if (generation_ < 2 || !(strength > 0.0)) return value;  // the first trees are not there yet
    const double variance = strength / (double(kept()) + 2.0 * RIDGE);  // of c
    double total = variance;
    for (int t = 0; t < trees_; ++t) {
      double& count = now_.counts[t][leaf_[t]];
      count += 1.0;
      variances_[t] = strength / (count + 2.0 * RIDGE);
      total += variances_[t];
    }
    const double step = (target - value) / (1.0 + total);
    now_.constant += variance * step;
    for (int t = 0; t < trees_; ++t) now_.values[t][leaf_[t]] += variances_[t] * step;
    return value + total * step;
  }

  // --- samples -----------------------------------------------------------------------------------

  int kept() const { return int(std::min<std::int64_t>(stored_, memory_)); }

  /// Keep a sample, in the place of the oldest if the memory is full.
  void remember(double target) {
    const int place = int(stored_ % memory_);
    std::copy(point_.begin(), point_.end(), points_[place]);
    targets_[place][TARGET] = target;
    double& fit = targets_[place][FIT] = next_.constant;
    for (int t = 0; t < grown_; ++t) fit += next_.values[t][next_.descend(t, point_.data())];
    ++stored_;
  }

  /// The thresholds of each input: values that some of the samples have, but the largest, so that each
  /// interval has a sample; quantiles of them, where they are many.
  void choose_bounds() {
    const int count = std::min(kept(), QUANTILES_OF);
    bins_ = bins();
    std::vector<float> sorted(count);
    for (int k = 0; k < dimension_; ++k) {
      for (int i = 0; i < count; ++i)
        sorted[i] = points_[int(std::int64_t(i) * kept() / count)][k];
      std::sort(sorted.begin(), sorted.end());
      float* bounds = bounds_[k];
      std::fill_n(bounds, MOST_BINS, float(INF));
      int found = 0;
      auto add = [&](float x) {
        if (x < sorted.back() && (found == 0 || bounds[found - 1] < x)) bounds[found++] = x;
      };
      int different = 1;
      for (int i = 1; i < count; ++i) different += sorted[i - 1] < sorted[i];
      if (different <= bins_)
        for (float x : sorted) add(x);
      else
        for (int b = 1; b < bins_; ++b) add(sorted[std::size_t(b) * count / bins_]);
    }
    coded_ = 0;
  }

  /// How many intervals there may be: few while there are few samples.
  int bins() const {
    const std::int64_t samples = std::min<std::int64_t>(begun_, memory_);
    return samples < 256 ? MOST_BINS / 4 : samples < 1024 ? MOST_BINS / 2 : MOST_BINS;
  }

  /// codes : the number of thresholds below each input, of samples that have none so far.
  void encode() {
    bins_ = bins();
    for (std::int64_t i = std::max(coded_, stored_ - kept()); i < stored_; ++i) {
      const int place = int(i % memory_);
      for (int k = 0; k < dimension_; ++k) {
        const float x = points_[place][k], *bounds = bounds_[k];
        int below = 0;
        for (int step = bins_ / 2; step > 0; step /= 2)
          below += x > bounds[below + step - 1] ? step : 0;
        codes_[place][k] = std::uint8_t(below);
      }
    }
    coded_ = stored_;
  }

  // --- generations -------------------------------------------------------------------------------

  /// Grow the trees that are due, or begin another generation; whether other trees predict now.
  bool grow() {
    if (stored_ < FIRST) return false;
    const std::int64_t length = std::min<std::int64_t>(begun_, memory_) / 2;
    const bool ends = begun_ == 0 || stored_ >= begun_ + length;
    if (ends) {
      if (begun_ > 0) std::swap(now_, next_);
      begin();
    }
    const std::int64_t samples = std::min<std::int64_t>(begun_, memory_) / 2;
    const std::int64_t due = std::min<std::int64_t>(trees_, trees_ * (stored_ - begun_ + 1) / samples);
    while (grown_ < due) grow_tree();
    return ends;
  }

  void begin() {
    begun_ = stored_;
    grown_ = 0;
    ++generation_;
    next_.clear();
    double total = 0.0;
    for (int i = 0; i < kept(); ++i) total += targets_[i][TARGET];
    next_.constant = total / kept();
    for (int i = 0; i < kept(); ++i) targets_[i][FIT] = next_.constant;
    choose_bounds();
  }

  struct Split {
    double gain = 0.0, total = 0.0;  // the sum of r in the first child
    int axis = -1, code = 0;
  };
  /// A leaf that may be split: its samples are rows[low:high].
  struct Leaf {
    int cell, low, high, depth;
    double total;  // S
    int histogram = -1;
    Split split = {};
    int count() const { return high - low; }
    bool may_be_split() const { return count() >= 2 * LEAST && depth < DEEPEST; }
  };

  /// What a tree needs while it is grown.
  struct Growth {
    explicit Growth(int samples) : residuals(samples) {}
    std::vector<double> residuals;  // r of each sample
    std::vector<int> rows, others;  // the samples of the tree, those of each leaf together; scratch
    std::vector<double> inverses;   // 1 / (n + R)
    std::vector<Leaf> open;         // leaves with a split
    std::vector<Array<Sum>> histograms;
    std::vector<int> free;          // histograms that no leaf has
  };

  void grow_tree() {
    const int tree = int(grown_);
    encode();
    const std::uint64_t key = mix_key(key_, std::uint64_t(generation_) * trees_ + tree);
    Growth growth(kept());
    std::uint64_t half = 0;
    double total = 0.0;
    for (int i = 0; i < kept(); ++i) {
      if (i % 64 == 0) half = mix_key(key, i / 64);
      if (!(half >> (i % 64) & 1)) continue;
      growth.rows.push_back(i);
      growth.residuals[i] = targets_[i][TARGET] - targets_[i][FIT];
      total += growth.residuals[i];
    }
    const int count = int(growth.rows.size());
    growth.others.resize(count);
    for (int n = 0; n <= count; ++n) growth.inverses.push_back(1.0 / (n + RIDGE));
    Leaf root{0, 0, count, 0, total};
    fill_histogram(growth, root);
    open(growth, tree, root);
    int cells = 1;
    while (!growth.open.empty() && cells + 2 <= next_.axes.columns()) {
      auto best = growth.open.begin();
      for (auto leaf = best; leaf != growth.open.end(); ++leaf)
        if (leaf->split.gain > best->split.gain) best = leaf;
      const Leaf leaf = *best;
      growth.open.erase(best);
      split(growth, tree, leaf, cells);
      cells += 2;
    }
    for (int i = 0; i < kept(); ++i)
      targets_[i][FIT] += next_.values[tree][next_.descend(tree, points_[i])];
    ++grown_;
  }

  /// Give a leaf its value, and find its split.
  void open(Growth& growth, int tree, Leaf& leaf) {
    next_.make_leaf(tree, leaf.cell, rate_ * leaf.total / (leaf.count() + RIDGE), 2.0 * leaf.count());
    next_.depths[tree] = std::max<std::int64_t>(next_.depths[tree], leaf.depth);
    if (leaf.may_be_split()) leaf.split = best_split(growth, leaf);
    if (leaf.split.axis >= 0)
      growth.open.push_back(leaf);
    else if (leaf.histogram >= 0)
      growth.free.push_back(leaf.histogram);
  }

  /// (dimension, bins): the sums of r, and the numbers of samples, by code.
  void fill_histogram(Growth& growth, Leaf& leaf) const {
    if (growth.free.empty()) {
      growth.free.push_back(int(growth.histograms.size()));
      growth.histograms.emplace_back(std::size_t(dimension_) * bins_);
    }
    leaf.histogram = growth.free.back();
    growth.free.pop_back();
    Array<Sum>& histogram = growth.histograms[leaf.histogram];
    std::fill(histogram.begin(), histogram.end(), Sum{});
    Sum* sums = histogram.data();
    for (int i = leaf.low; i < leaf.high; ++i) {
      const int row = growth.rows[i];
      const Sum sample = {growth.residuals[row], 1.0};
      const std::uint8_t* codes = codes_[row];
      for (int k = 0; k < dimension_; ++k) sums[k * bins_ + codes[k]] += sample;
    }
  }

  /// The split with the largest gain, the first of equals.
  Split best_split(const Growth& growth, const Leaf& leaf) const {
    const double* weight = growth.inverses.data();
    const int count = leaf.count();
    Split best;
    const double before = leaf.total * leaf.total * weight[count];
    for (int k = 0; k < dimension_; ++k) {
      const Sum* sums = growth.histograms[leaf.histogram].data() + k * bins_;
      double first = 0.0;
      int below = 0;
      for (int code = 0; code + 1 < bins_; ++code) {
        first += sums[code][0];
        below += int(sums[code][1]);
        if (below < LEAST) continue;
        if (count - below < LEAST) break;
        const double second = leaf.total - first;
        const double gain =
            first * first * weight[below] + second * second * weight[count - below] - before;
        if (gain > best.gain) best = {gain, first, k, code};
      }
    }
    return best;
  }

  /// Give a leaf two children, the cells `child` and the next.
  void split(Growth& growth, int tree, const Leaf& leaf, int child) {
    const Split& split = leaf.split;
    next_.thresholds[tree][leaf.cell] = bounds_[split.axis][split.code];
    next_.axes[tree][leaf.cell] = split.axis;
    next_.children[tree][leaf.cell] = child;
    int *rows = growth.rows.data(), *others = growth.others.data();
    int border = leaf.low, count = 0;
    for (int i = leaf.low; i < leaf.high; ++i) {
      const int row = rows[i], second = codes_[row][split.axis] > split.code;
      rows[border] = row;
      others[count] = row;
      border += 1 - second;
      count += second;
    }
    std::copy_n(others, count, rows + border);
    Leaf left{child, leaf.low, border, leaf.depth + 1, split.total};
    Leaf right{child + 1, border, leaf.high, leaf.depth + 1, leaf.total - split.total};
    Leaf &smaller = left.count() < right.count() ? left : right, &larger = &smaller == &left ? right : left;
    larger.histogram = leaf.histogram;
    if (larger.may_be_split()) {  // what the smaller one does not have
      fill_histogram(growth, smaller);
      Array<Sum>& sums = growth.histograms[larger.histogram];
      const Array<Sum>& others_sums = growth.histograms[smaller.histogram];
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] -= others_sums[i];
    }
    open(growth, tree, left);
    open(growth, tree, right);
  }

  // settings
  int trees_, leaves_, memory_;
  double rate_, adaptation_;
  std::vector<int> coordinates_;  // of the inputs that count
  int dimension_;                 // their number
  std::uint64_t key_;             // of the random halves
  // state: sample number n is at place n % memory ...
  Matrix<float> points_{memory_, dimension_};
  enum { TARGET, FIT, TARGET_SIZE };
  Matrix<double> targets_{memory_, int(TARGET_SIZE)};        // y, and f of the trees that grow
  Matrix<float> bounds_{dimension_, MOST_BINS, float(INF)};  // thresholds, then infinity
  std::int64_t stored_ = 0;      // samples so far
  // ... and the trees
  std::int64_t begun_ = 0;       // samples when the present generation began; 0 before the first
  std::int64_t grown_ = 0;       // trees of it so far
  std::int64_t generation_ = 0;  // its number, from 1
  Trees now_{trees_, 2 * leaves_ - 1}, next_ = now_;  // those that predict, and those that grow
  // scratch
  std::vector<float> point_ = std::vector<float>(dimension_);  // the last input
  std::vector<int> leaf_ = std::vector<int>(trees_);           // its leaves
  Array<double> variances_ = Array<double>(trees_);
  Matrix<std::uint8_t> codes_{memory_, dimension_};
  std::int64_t coded_ = 0;       // samples whose codes are those of the present thresholds
  int bins_ = 0;
};

}  // namespace

std::vector<NamedLearner> boosted_trees_family() { return {{"BoostedTrees", make<BoostedTrees>}}; }

}  // namespace kb
