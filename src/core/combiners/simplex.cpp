// The paper's rule: the weights that minimise a separable bound of the cost.
#include <algorithm>

#include "../combiner.hpp"
#include "simplex_qp.hpp"

namespace kb {

class Simplex final : public Combiner {
 public:
  explicit Simplex(const CombinerSpec& spec)
      : prequential_(spec.settings.word("evidence") == "prequential"),
        jensen_(spec.settings.word("bound") == "jensen"),
        horizon_(spec.settings.count("horizon")),
        terms_(2, spec.slots) {
    if (!prequential_) return;
    segment_ = suffixes_ = Matrix<double>(horizon_, spec.slots);
    prefix_.resize(spec.slots);
  }

  std::unique_ptr<Combiner> clone() const override { return std::make_unique<Simplex>(*this); }

  void visit(Archive& archive) override {
    archive.by_slot("qp_terms", terms_, 2);
    if (!prequential_) return;
    archive.by_slot("segment", segment_, 2);
    archive.by_slot("suffixes", suffixes_, 2);
    archive.by_slot("prefix", prefix_);
  }

  void choose(const Evidence& e, const double*, double* chosen) override {
    double *curvature = terms_[0], *linear = terms_[1];
    for (int t = 0; t < e.count; ++t, chosen += e.slots) {
      std::copy_n(e.row(e.curvature, t), e.slots, curvature);
      if (prequential_)
        add_losses(e.first + t, e.row(e.slot_loss, t), linear);
      else
        std::copy_n(e.row(e.window_loss, t), e.slots, linear);
      if (jensen_)  // w'(a + b)
        for (int p = 0; p < e.slots; ++p) {
          linear[p] = curvature[p] + linear[p];
          curvature[p] = 0.0;
        }
      program_.solve(curvature, linear, e.slots, chosen);
    }
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

  bool prequential_, jensen_;
  int horizon_;
  Matrix<double> terms_;  // a and b of the program solved last
  Matrix<double> segment_, suffixes_;
  Array<double> prefix_;
  QuadraticProgram program_;
};

std::unique_ptr<Combiner> make_simplex(const CombinerSpec& spec) {
  return std::make_unique<Simplex>(spec);
}

}  // namespace kb
