// The paper's rule: the weights that minimise a separable bound of the cost.
#include <algorithm>
#include <cmath>

#include "../combiner.hpp"
#include "../dense.hpp"
#include "simplex_qp.hpp"

namespace kb {

class Simplex final : public Combiner {
 public:
  using Combiner::Combiner;

  void visit(Archive& archive) override {
    archive.by_slot("qp_terms", terms_, 2);
    if (!prequential_) return;
    archive.by_slot("segment", segment_, 2);
    archive.by_slot("suffixes", suffixes_, 2);
    archive.by_slot("prefix", prefix_);
  }

  void choose(const Evidence& e, const double*, double* chosen) override {
    double *curvature = terms_[0], *linear = terms_[1];
    std::copy_n(e.curvature, e.slots, curvature);
    if (prequential_)
      add_losses(e.number, e.slot_loss, linear);
    else
      std::copy_n(e.window_loss, e.slots, linear);
    if (jensen_)  // w'(a + b)
      for (int p = 0; p < e.slots; ++p) {
        linear[p] = curvature[p] + linear[p];
        curvature[p] = 0.0;
      }
    program_.solve(curvature, linear, e.slots, chosen);
  }

 private:
  /// sums[p] = the last `horizon` losses of slot p, without subtraction: time is divided into segments
  /// of `horizon` samples by the absolute sample number, and the sum is the end of the last segment
  /// (`suffixes`, summed from its back when it was full) plus the present one so far (`prefix`). So a
  /// huge loss that has left the horizon leaves no rounding behind.
  void add_losses(std::int64_t number, const double* losses, double* sums) {
    const int row = int(number % horizon_), slots = segment_.columns();
    for (int p = 0; p < slots; ++p) {
      if (row == 0) prefix_[p] = 0.0;
      segment_[row][p] = losses[p];
      prefix_[p] += losses[p];
      sums[p] = (row + 1 < horizon_ ? suffixes_[row + 1][p] : 0.0) + prefix_[p];
      if (row < horizon_ - 1) continue;
      double total = 0.0;  // the segment is full
      for (int i = horizon_ - 1; i >= 0; --i) suffixes_[i][p] = total = segment_[i][p] + total;
    }
  }

  bool prequential_ = is_word("evidence", "prequential"), jensen_ = is_word("bound", "jensen");
  int horizon_ = spec_.settings.count("horizon");
  Matrix<double> terms_{2, spec_.slots};  // a and b of the program solved last
  Matrix<double> segment_{prequential_ ? horizon_ : 0, spec_.slots}, suffixes_ = segment_;
  Array<double> prefix_ = Array<double>(prequential_ ? spec_.slots : 0);
  QuadraticProgram program_;
};

std::vector<NamedCombiner> simplex_family() { return {{"Simplex", make<Simplex>}}; }

}  // namespace kb
