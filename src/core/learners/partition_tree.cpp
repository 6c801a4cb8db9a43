// PartitionTree: an exact online Gaussian process on nested cells, a tree that grows with the stream.
//
//     f(x) = sum over the cells c that contain x of g_c,  g_c ~ N(0, v_level)
//
// Inference. A cell c of level l has a value h_c = h_parent + g_c, h = 0 above the root. Samples are
// observations of the values of cells, each with a precision. Two messages to a cell's parent follow
// from the cell's subtree alone:
//
//     precision, mean           the likelihood of h_parent, a Gaussian
//     weight, centre, constant  sum of g^2 / v over the subtree, with each g at its best given
//                               h_parent: weight (h_parent - centre)^2 + constant
//
// Both are computed again from the two children's messages whenever something below changes. Nothing
// is ever subtracted, so nothing drifts. Written around centres, sums of squares stay sums of squares.
// Given h_parent, the best h_c is h_parent + gain (mean - h_parent): f(x) follows on the way from the
// root to the leaf of x. The root's second message at h = 0 is norm^2.
//
// Growth. A leaf *stores* samples as entries. An *entry* is one input with all of its samples: the
// precision and the mean of its targets, their number, and the number of the first sample, then its
// active coordinates. All entries of a tree are rows of one array, from its beginning, so memory that
// is not needed yet is not touched. Those of a leaf are a list, in the order of their first samples:
// each has the row of the next one; and so are those that were freed. A leaf is split once it stores
// `capacity` samples of at least two different inputs. Samples that are *summarized* in a cell are
// known by their total precision and mean only.
//
// The *gain* of a split is how much it lowers the sum of squared errors of its samples, in units of
// the noise. Its *gain rate* is the gain per sample of the stream since the oldest of them. When all
// cells are in use, a new split takes the cells of the split between two leaves with the least gain
// rate, if its own is at least twice as high. CHANCE_GAIN is subtracted from its gain: the best of
// some splits through mere noise lowers the sum too. The samples of those two leaves are summarized
// in their parent. A leaf that finds no such pair summarizes its own samples instead, and starts
// again to store. So cells go where they help most; and the gain rate of splits in regions that the
// stream has left falls with time.
//
// A tree is one slot, in lane 0.
#include <cmath>

#include "../learner.hpp"
#include "../math.hpp"

namespace kb {

namespace {

constexpr double CHANCE_GAIN = 10.0;  // the square of a standard normal is larger once in 600 times

/// Numbers of a cell; its indices and counts are in arrays of their own.
enum {
  THRESHOLD,  // of the split: x[coordinate] <= threshold goes to the first child
  GAIN,
  MEAN,  // the messages to the parent
  PRECISION,
  WEIGHT,
  CENTRE,
  CONSTANT,
  SUMMARY_PRECISION,  // of the summarized samples
  SUMMARY_MEAN,
  STORED_PRECISION,  // of the stored samples
  STORED_MEAN,
  STORED_SAMPLES,  // their number
  OLDEST,          // number of the oldest sample that the split above gave to its children
  CELL_SIZE
};

/// Numbers of an entry, before its coordinates; NEXT of the last one is NONE.
enum { ENTRY_NEXT, ENTRY_PRECISION, ENTRY_MEAN, ENTRY_SAMPLES, ENTRY_FIRST, ENTRY_POINT };
constexpr int NONE = -1;

/// The likelihood of a value becomes the product with another Gaussian one.
void combine_likelihoods(double& precision, double& mean, double other_precision,
                         double other_mean) {
  const double total = precision + other_precision;
  if (total > 0.0) mean += (other_mean - mean) * (other_precision / total);
  precision = total;
}

struct Quadratic {
  double weight, centre, constant;
};

/// a (h - b)^2 + c (h - d)^2 as weight, centre and constant; no term is negative.
Quadratic combine_quadratics(double weight, double centre, double other_weight,
                             double other_centre) {
  const double total = weight + other_weight;
  if (!(total > 0.0)) return {0.0, centre, 0.0};
  const double share = other_weight / total, apart = other_centre - centre;
  return {total, centre + share * apart, weight * share * apart * apart};
}

/// How much two means instead of one lower the sum of squares; symmetric to the last bit.
double squares_saved(double precision, double mean, double other_precision, double other_mean) {
  const double least = std::min(precision, other_precision);
  const double most = std::max(precision, other_precision);
  const double apart = mean - other_mean;
  return least * (most / (least + most)) * apart * apart;
}

class PartitionTree final : public PointLearner {
 public:
  explicit PartitionTree(const LearnerSpec& spec)
      : PointLearner(spec),
        nodes_(spec.settings.count("nodes")),
        capacity_(spec.settings.count("split_after")),
        noise_(spec.settings.number("noise")),
        variances_(spec.settings.array("variances")),
        levels_(int(variances_.size())),
        loss_(spec.objective.losses.at(0)),
        coordinates_(spec.settings.indices("coordinates", spec.dimension)),
        dimension_(int(coordinates_.size())),
        key_(spec.settings.random_key()) {
    if (levels_ < 1 || dimension_ < 1) throw std::invalid_argument("no cells");
    const std::int64_t most = (std::int64_t(nodes_) + 1) / 2 * capacity_;
    if (most > INT_MAX) throw TooLarge("the cells need more memory than there is");
    entries_ = Matrix<double>(int(most), ENTRY_POINT + dimension_);
  }

  void visit(Archive& archive) override {
    archive("cells", cells_);
    archive("children", children_);
    archive("axes", axes_);
    archive("parents", parents_);
    archive("entry_counts", entry_counts_);
    archive("first_entries", first_entries_);
    archive("entries", entries_);
    archive("entries_used", entries_used_);
    archive("first_free", first_free_);
    archive("pairs", pairs_);
    archive.count("splits", splits_);
    if (archive.loaded) check(archive);
  }

 private:
  /// Refuse a loaded state whose cells are no tree, or two of whose leaves have the same entry.
  void check(const Archive& archive) const {
    archive.require(pairs_ >= 0 && pairs_ <= (nodes_ - 1) / 2, "pairs are not a number of cells");
    archive.require(entries_used_ >= 0 && entries_used_ <= entries_.rows(), "no such entries");
    std::vector<char> seen(entries_used_);
    const auto length = [&](std::int64_t entry) {  // of a list
      int count = 0;
      for (; entry != NONE; ++count) {
        archive.require(entry >= 0 && entry < entries_used_ && !seen[entry], "no such entry");
        seen[entry] = 1;
        const double next = entries_[int(entry)][ENTRY_NEXT];
        archive.require(next >= NONE && next < double(entries_used_), "no such entry");
        entry = std::int64_t(next);
      }
      return count;
    };
    std::int64_t splits = 0;
    for (int i = 0; i < nodes_; ++i) {
      archive.require(axes_[i] >= 0 && axes_[i] < dimension_, "axes are not coordinates");
      archive.require(parents_[i] >= 0 && parents_[i] < nodes_, "parents are not cells");
      archive.require(entry_counts_[i] >= 0 && entry_counts_[i] < capacity_,
                      "entry_counts are beyond split_after");
      const std::int64_t child = children_[i];
      archive.require(entry_counts_[i] == 0 || (child == 0 && i <= 2 * pairs_), "no such leaf");
      archive.require(length(first_entries_[i]) == entry_counts_[i], "entries are lost");
      if (child == 0) continue;
      ++splits;
      archive.require(child > 0 && child % 2 == 1 && child < 2 * pairs_, "children are not pairs");
      archive.require(parents_[child] == i && parents_[child + 1] == i, "the cells are no tree");
    }
    archive.require(splits == pairs_, "the cells are no tree");
    length(first_free_);
    archive.require(std::count(seen.begin(), seen.end(), 0) == 0, "entries are lost");
  }

  // --- inference -------------------------------------------------------------------------------

  /// From the root to the leaf of an input: f there, path and depth.
  double value_at(const double* x) override {
    const double* cells = cells_[0];
    const std::int32_t *children = children_.data(), *axes = axes_.data();
    const int *coordinates = coordinates_.data(), levels = levels_;
    int* path = path_.data();
    double value = 0.0;
    int index = 0, level = 0;
    while (true) {
      path[level++] = index;
      const double* cell = cells + std::size_t(index) * CELL_SIZE;
      value += cell[GAIN] * (cell[MEAN] - value);  // h = h_parent + gain (mean - h_parent)
      const int child = children[index];
      if (child == 0 || level == levels) break;
      index = x[coordinates[axes[index]]] <= cell[THRESHOLD] ? child : child + 1;
    }
    depth_ = level;
    return value;
  }

  /// The root's second message at h = 0.
  double norm() const override {
    const double* root = cells_[0];
    return root[WEIGHT] * root[CENTRE] * root[CENTRE] + root[CONSTANT];
  }

  /// Compute the messages of a cell, with prior variance `variance`, to its parent.
  void update(int index, double variance) {
    double* cell = cells_[index];
    double precision = cell[SUMMARY_PRECISION], mean = cell[SUMMARY_MEAN];
    combine_likelihoods(precision, mean, cell[STORED_PRECISION], cell[STORED_MEAN]);
    Quadratic below{0.0, 0.0, 0.0};
    if (const int child = children_[index]; child > 0) {
      const double *left = cells_[child], *right = cells_[child + 1];
      double precision_below = left[PRECISION], mean_below = left[MEAN];
      combine_likelihoods(precision_below, mean_below, right[PRECISION], right[MEAN]);
      combine_likelihoods(precision, mean, precision_below, mean_below);
      below = combine_quadratics(left[WEIGHT], left[CENTRE], right[WEIGHT], right[CENTRE]);
      below.constant += left[CONSTANT] + right[CONSTANT];
    }
    // With r = variance * precision, the best h = (h_parent + r mean) / (1 + r) is put in for h.
    const double ratio = variance * precision;
    const double shrinkage = 1.0 / (1.0 + ratio);
    const double gain = ratio * shrinkage;
    const double passed = precision * shrinkage;
    const double centre =
        below.weight > 0.0 ? below.centre + ratio * (below.centre - mean) : mean;
    // g = gain (mean - h_parent), and gain / variance is `passed`.
    const Quadratic change =
        combine_quadratics(gain * passed, mean, below.weight * shrinkage * shrinkage, centre);
    cell[GAIN] = gain;
    cell[MEAN] = mean;
    cell[PRECISION] = passed;
    cell[WEIGHT] = change.weight;
    cell[CENTRE] = change.centre;
    cell[CONSTANT] = below.constant + change.constant;
  }

  // --- samples of a cell -----------------------------------------------------------------------

  static void add_to_summary(double* cell, double precision, double target) {
    combine_likelihoods(cell[SUMMARY_PRECISION], cell[SUMMARY_MEAN], precision, target);
  }
  static void add_to_stored(double* cell, double precision, double target) {
    combine_likelihoods(cell[STORED_PRECISION], cell[STORED_MEAN], precision, target);
  }

  /// The row of an entry that no leaf has.
  int take_entry() {
    if (first_free_ < 0) return int(entries_used_++);
    const int entry = int(first_free_);
    first_free_ = next(entry);
    return entry;
  }
  void free_entries(int index) {
    for (int entry = first_entries_[index], following; entry != NONE; entry = following) {
      following = next(entry);
      entries_[entry][ENTRY_NEXT] = double(first_free_);
      first_free_ = entry;
    }
    entry_counts_[index] = 0;
    first_entries_[index] = NONE;
  }
  int next(int entry) const { return int(entries_[entry][ENTRY_NEXT]); }
  /// Let an entry be the last of a leaf, after `last`, or the only one.
  void append(int index, int last, int entry) {
    if (last == NONE)
      first_entries_[index] = entry;
    else
      entries_[last][ENTRY_NEXT] = entry;
    entries_[entry][ENTRY_NEXT] = NONE;
    ++entry_counts_[index];
  }

  /// A leaf stores nothing any more.
  void clear_samples(int index) {
    double* cell = cells_[index];
    cell[STORED_PRECISION] = cell[STORED_MEAN] = cell[STORED_SAMPLES] = 0.0;
    free_entries(index);
  }

  /// Move all stored samples of a leaf to its summary.
  void summarize_samples(int index) {
    double* cell = cells_[index];
    add_to_summary(cell, cell[STORED_PRECISION], cell[STORED_MEAN]);
    clear_samples(index);
  }

  /// Store a sample in a leaf; returns whether it can be split now.
  bool store_sample(int index, const double* x, double precision, double target,
                    std::int64_t number) {
    // A split leaves no side empty, so there is room; but not if a saved file had NaN in entries.
    if (entry_counts_[index] >= capacity_) free_entries(index);
    auto is_same_input = [&](const double* point) {
      for (int k = 0; k < dimension_; ++k)
        if (point[k] != x[coordinates_[k]]) return false;
      return true;
    };
    int place = first_entries_[index], last = NONE;
    while (place != NONE && !is_same_input(entries_[place] + ENTRY_POINT)) {
      last = place;
      place = next(place);
    }
    if (place == NONE) {  // a new input
      place = take_entry();
      double* entry = entries_[place];
      std::fill_n(entry, int(ENTRY_POINT), 0.0);
      entry[ENTRY_FIRST] = double(number);
      for (int k = 0; k < dimension_; ++k) entry[ENTRY_POINT + k] = x[coordinates_[k]];
      append(index, last, place);
    }
    double *entry = entries_[place], *cell = cells_[index];
    combine_likelihoods(entry[ENTRY_PRECISION], entry[ENTRY_MEAN], precision, target);
    entry[ENTRY_SAMPLES] += 1.0;
    add_to_stored(cell, precision, target);
    cell[STORED_SAMPLES] += 1.0;
    return entry_counts_[index] > 1 && cell[STORED_SAMPLES] >= capacity_;
  }

  // --- growth ----------------------------------------------------------------------------------

  struct Split {
    int axis = -1;  // coordinate; -1: none
    double threshold = 0.0, gain = -INF;
  };

  /// A number of each entry of a leaf: numbers[e], by its place in an entry.
  void gather(int index, int place, double* numbers) const {
    for (int entry = first_entries_[index]; entry != NONE; entry = next(entry))
      *numbers++ = entries_[entry][place];
  }

  /// How much a split at x <= threshold lowers the sum of squares of the targets around their means.
  double split_gain(const double* x, int count, double threshold) const {
    double left = 0.0, left_mean = 0.0, right = 0.0, right_mean = 0.0;
    for (int e = 0; e < count; ++e) {
      if (x[e] <= threshold)
        combine_likelihoods(left, left_mean, precisions_[e], means_[e]);
      else
        combine_likelihoods(right, right_mean, precisions_[e], means_[e]);
    }
    return squares_saved(left, left_mean, right, right_mean);
  }

  /// The best of one random split per coordinate, the first of equals. Each side has at least one
  /// of the leaf's entries.
  Split best_split(int index, std::uint64_t key) {
    const int count = entry_counts_[index];
    gather(index, ENTRY_PRECISION, precisions_.data());
    gather(index, ENTRY_MEAN, means_.data());
    Split best;
    for (int k = 0; k < dimension_; ++k) {
      double* x = coordinate_.data();
      gather(index, ENTRY_POINT + k, x);
      const double low = *std::min_element(x, x + count), high = *std::max_element(x, x + count);
      if (!(low < high)) continue;
      double threshold = low + unit_interval(mix_key(key, k)) * (high - low);
      if (!(threshold < high)) threshold = low;  // by rounding
      const double gain = split_gain(x, count, threshold);
      if (gain > best.gain || best.axis < 0) best = {k, threshold, gain};
    }
    return best;
  }

  /// Summarize all samples of two leaves in their parent, and update the cells above.
  void merge_children(int pair) {
    int index = parents_[pair];
    double* cell = cells_[index];
    for (int child : {pair, pair + 1}) summarize_samples(child);
    for (int child : {pair, pair + 1})
      add_to_summary(cell, cells_[child][SUMMARY_PRECISION], cells_[child][SUMMARY_MEAN]);
    children_[index] = 0;
    int count = 0;
    while (count < levels_) {
      path_above_[count++] = index;
      if (index == 0) break;
      index = parents_[index];
    }
    for (int i = 0; i < count; ++i) update(path_above_[i], variances_[count - 1 - i]);
  }

  /// The gain of the split between two leaves, per sample up to sample `number`.
  double gain_rate(int pair, std::int64_t number) const {
    const double *left = cells_[pair], *right = cells_[pair + 1];
    const double saved = squares_saved(
        left[SUMMARY_PRECISION] + left[STORED_PRECISION], left[MEAN],
        right[SUMMARY_PRECISION] + right[STORED_PRECISION], right[MEAN]);
    return saved / (double(number) - left[OLDEST] + 1.0);
  }

  /// The index of two cells for the children of a leaf; 0 if no other split is worth less.
  int allocate_children(int index, double rate, std::int64_t number) {
    const int pairs = int(pairs_);
    if (2 * pairs + 2 < nodes_) {
      ++pairs_;
      return 2 * pairs + 1;
    }
    int chosen = 0;
    double least = 0.5 * rate;
    for (int pair = 1; pair < 2 * pairs; pair += 2) {
      const bool between_leaves = children_[pair] == 0 && children_[pair + 1] == 0;
      if (!between_leaves || (pair <= index && index <= pair + 1)) continue;
      const double other = gain_rate(pair, number);
      if (other < least) {
        chosen = pair;
        least = other;
      }
    }
    if (chosen > 0) merge_children(chosen);
    return chosen;
  }

  /// Give a leaf two children, of prior variance `variance`, and move its entries to them.
  void split_leaf(int index, int pair, const Split& split, double variance) {
    const int first = first_entries_[index];
    const double oldest = entries_[first][ENTRY_FIRST];
    for (int child : {pair, pair + 1}) {
      std::fill_n(cells_[child], int(CELL_SIZE), 0.0);
      cells_[child][OLDEST] = oldest;
      children_[child] = axes_[child] = entry_counts_[child] = 0;
      first_entries_[child] = NONE;
      parents_[child] = index;
    }
    int last[2] = {NONE, NONE};
    for (int place = first, following; place != NONE; place = following) {
      following = next(place);
      const double* entry = entries_[place];
      const int side = entry[ENTRY_POINT + split.axis] <= split.threshold ? 0 : 1;
      const int child = pair + side;
      append(child, last[side], place);
      last[side] = place;
      add_to_stored(cells_[child], entry[ENTRY_PRECISION], entry[ENTRY_MEAN]);
      cells_[child][STORED_SAMPLES] += entry[ENTRY_SAMPLES];
    }
    first_entries_[index] = NONE;  // they are those of the children now
    clear_samples(index);
    children_[index] = pair;
    axes_[index] = split.axis;
    cells_[index][THRESHOLD] = split.threshold;
    update(pair, variance);
    update(pair + 1, variance);
  }

  /// The loss as a square around the working response, with half its curvature as weight; then the
  /// leaf learns it, perhaps with a split, and the messages on the path follow.
  double learn_target(std::int64_t number, const double* x, double value, double target) override {
    double precision = 1.0 / noise_;
    if (loss_->curvature_rule != CurvatureRule::constant) {
      const double slope = loss_->derivative(value, target);
      const double curvature = step_curvature(*loss_, value, target, slope);
      target = value - slope / curvature;
      precision = 0.5 * curvature / noise_;
    }
    const int depth = depth_, index = path_[depth - 1];
    if (depth == levels_)
      add_to_summary(cells_[index], precision, target);
    else if (store_sample(index, x, precision, target, number))
      grow(index, depth, number);
    for (int level = depth - 1; level >= 0; --level) update(path_[level], variances_[level]);
    return value_at(x);
  }

  /// Split a leaf at this depth, or summarize its samples.
  void grow(int index, int depth, std::int64_t number) {
    const Split split = best_split(index, mix_key(key_, splits_));
    int pair = 0;
    if (split.axis >= 0) {
      const double age = double(number) - entries_[first_entries_[index]][ENTRY_FIRST] + 1.0;
      pair = allocate_children(index, (split.gain - CHANCE_GAIN) / age, number);
    }
    if (pair > 0) {
      ++splits_;
      split_leaf(index, pair, split, variances_[depth]);
    } else {
      summarize_samples(index);
    }
  }

  // settings
  int nodes_, capacity_;
  double noise_;
  Array<double> variances_;  // v of each level
  int levels_;
  std::shared_ptr<const Loss> loss_;
  std::vector<int> coordinates_;  // of the inputs that count
  int dimension_;                 // their number
  std::uint64_t key_;             // of the random splits
  // state: of each cell ...
  Matrix<double> cells_{nodes_, int(CELL_SIZE)};
  using Integers = Array<std::int32_t>;
  Integers children_ = Integers(nodes_);  // the first one; the second is the next cell; 0 for a leaf
  Integers axes_ = children_;             // active coordinate of the split
  Integers parents_ = children_;          // the cell above
  Integers entry_counts_ = children_;     // number of different inputs stored
  Integers first_entries_ = Integers(nodes_, NONE);  // their list
  // ... and of the tree
  Matrix<double> entries_;           // ((nodes + 1) / 2 * capacity, ENTRY_POINT + dimension)
  std::int64_t entries_used_ = 0;    // so many have been stored at the same time; the others are 0
  std::int64_t first_free_ = NONE;   // the list of those of them that no leaf has
  std::int64_t pairs_ = 0, splits_ = 0;  // pairs of children in use, splits made so far
  // scratch: the last descent
  std::vector<int> path_ = std::vector<int>(levels_), path_above_ = path_;  // cells from the root
  int depth_ = 1;          // their number
  // and of the entries of a leaf
  Array<double> coordinate_ = Array<double>(capacity_);
  Array<double> precisions_ = coordinate_, means_ = coordinate_;
};

}  // namespace

std::vector<NamedLearner> partition_tree_family() { return {{"PartitionTree", make<PartitionTree>}}; }

}  // namespace kb
