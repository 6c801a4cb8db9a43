// The joint problem: the convex combination of least cost, for any convex loss, with a certificate.
//
//     minimise  E(w) = sum_i d_i l(w'f_i, y_i) + sum_p (a_p + ridge) w_p^2  over the simplex,
//
// by Newton's method: a quadratic model of E at w is minimised by pairwise moves. Row i of F holds the
// values f_i of all slots at sample i, and the matrix of the model is H = F' diag(h) F + 2 diag(penalty)
// with h_i the curvature of the loss there.
//
// For a loss with kinks, the loss averaged over a width m, (1 / 2m) * integral of l over z - m .. z + m,
// is convex, has the derivative (l(z + m) - l(z - m)) / 2m, from values alone, and the second derivative
// (l'(z + m) - l'(z - m)) / 2m: all that Newton's method needs, for any convex loss.
#include <cmath>

#include "../combiner.hpp"
#include "../dense.hpp"
#include "stack_solver.hpp"

namespace kb {

static constexpr double SPARE = 1e-4;      // part of the first cost in the certificate's scale
static constexpr double SHRINK = 0.1;      // of the averaging width, when the slack is above the gap
static constexpr double NARROWEST = 1e-7;  // relative to the first width: below, differences round
static constexpr int ROUNDS = 40;
static constexpr double FLOOR = 0.05;  // part of a row's secant curvature: the model must not be flat
                                       // where the loss is not

class Joint final : public Combiner {
 public:
  explicit Joint(const CombinerSpec& spec) : Combiner(spec) {
    const int longest = horizon_ > 0 ? horizon_ : spec.window;
    if (int(powers_.size()) < longest) throw std::invalid_argument("too few powers of the discount");
    for (Array<double>* row : {&d_, &y_, &z_, &direction_, &c_, &h_, &slopes_, &point_, &shifted_, &other_})
      row->assign(padded_length(longest), 1.0);
  }

  void visit(Archive& archive) override {
    archive("certificate", certificate_);
    if (horizon_ == 0) return;
    archive.by_slot("values", past_predictions_, 2);
    archive("targets", past_targets_);
    archive.count("taken", taken_);
  }

  void choose(const Evidence& e, const double* weights, double* chosen) override {
    int best = 0;
    for (int p = 0; p < slots_; ++p) {
      chosen[p] = weights[p];
      active_[p] = e.window_loss[p] < INF ? 1.0 : 0.0;
      penalty_[p] = e.curvature[p] + ridge_;
      if (e.window_loss[p] < e.window_loss[best]) best = p;
    }
    if (horizon_ > 0)
      use_predictions(e);
    else
      use_window(e);
    std::fill(certificate_.begin(), certificate_.end(), 0.0);
    if (PairwiseSolver::normalise(chosen, active_.data(), slots_) == 0) return;
    solve(chosen);
    if (std::isfinite(certificate_[0])) return;
    certificate_[0] = certificate_[1] = certificate_[2] = INF;  // the costs overflow
    for (int p = 0; p < slots_; ++p) chosen[p] = p == best ? 1.0 : 0.0;
  }

 private:
  /// Prequential evidence: a ring of the last predictions.
  void use_predictions(const Evidence& e) {
    const int row = int(taken_ % horizon_);
    rows_ = int(std::min<std::int64_t>(++taken_, horizon_));
    F_ = past_predictions_[0];
    for (int p = 0; p < slots_; ++p)
      past_predictions_[row][p] = active_[p] > 0.0 ? e.slot_predictions[p] : 0.0;
    past_targets_[row] = e.target();
    for (int i = 0; i < rows_; ++i) {
      d_[i] = powers_[(row - i + horizon_) % horizon_];
      y_[i] = past_targets_[i];
    }
  }

  /// Window evidence: the values on the window, the newest last.
  void use_window(const Evidence& e) {
    rows_ = e.seen;
    F_ = e.values;
    for (int i = 0; i < rows_; ++i) {
      d_[i] = 1.0;
      y_[i] = e.targets[i];
    }
  }

  const double* row(int i) const { return F_ + std::size_t(i) * slots_; }

  /// Move the weights w to the minimiser; certificate = (gap, cost, scale, moves).
  void solve(double* w) {
    int used = 0;
    double width = 0.0, narrowest = 0.0, spare = 0.0;
    for (int turn = 0;; ++turn) {
      mix(w, z_.data());  // z_i = w'f_i
      const double cost = cost_of(w);
      loss_->derivatives(z_, y_, rows_, slopes_);
      if (turn == 0) {
        spare = SPARE * std::fabs(cost);
        width = first_width(cost);
        narrowest = NARROWEST * width;
      }
      const double slack = slopes_and_slack(width);
      write_gradient(c_, w);
      const int least = PairwiseSolver::least_gradient(g_.data(), active_.data(), slots_);
      const double gap = PairwiseSolver::gap(g_.data(), w, least, slots_);
      const double scale = std::fabs(cost) + spare;
      certificate_ = {gap + slack, cost, scale, double(used)};
      if (gap + slack <= tolerance_ * scale || used >= steps_ || turn == ROUNDS ||
          !std::isfinite(gap + slack + cost))
        return;

      // The model: the gradient g and the curvatures h at w, and how exactly it is to be solved.
      const bool narrow = slack > gap && width * SHRINK >= narrowest;
      double target = 0.1 * (narrow ? SHRINK * slack : gap), share = 0.0;
      if (quadratic_) {
        target = 0.5 * tolerance_ * spare;
        share = 0.5 * tolerance_;
        for (int i = 0; i < rows_; ++i) h_[i] = 2.0 * d_[i];
      } else if (narrow) {
        shrink_model(width);
        write_gradient(slopes_, w);
        width *= SHRINK;
      } else {
        write_curvatures(width);
      }
      if (turn == 0 || !quadratic_) {  // the columns of a quadratic are the same in all rounds
        solver_.drop_columns();
        write_diagonal();
      }

      // v = the minimiser of the model, from w.
      std::copy_n(w, slots_, v_.data());
      model_ = g_;
      const auto column = [this](int s, double* out) {  // sum_i h_i F_is F_ip, 2 penalty_s for p = s
        for (int i = 0; i < rows_; ++i) point_[i] = h_[i] * row(i)[s];
        weighted_sums(point_, out);
        out[s] += 2.0 * penalty_[s];
      };
      const int moves = solver_.descend(column, active_.data(), v_.data(), model_.data(),
                                       diagonal_.data(), target, share, cost, steps_ - used);
      if (moves == 0 && !narrow) return;
      used += moves;

      // w <- w + step (v - w)
      double step = 1.0;
      if (!quadratic_ && !narrow) {
        step = step_length(width, w);
        if (step == 0.0) return;
      }
      for (int p = 0; p < slots_; ++p)
        w[p] = step == 1.0 ? v_[p] : std::max(w[p] + step * (v_[p] - w[p]), 0.0);
      PairwiseSolver::normalise(w, active_.data(), slots_);
    }
  }

  // --- losses at the rows ------------------------------------------------------------------------

  /// above_i, below_i = the loss, or its derivative, at z_i + width and z_i - width.
  template <class Evaluate>
  void around(const Array<double>& z, double width, Array<double>& above, Array<double>& below,
              Evaluate evaluate) {
    for (int i = 0; i < rows_; ++i) shifted_[i] = z[i] + width;
    evaluate(shifted_, above);
    for (int i = 0; i < rows_; ++i) shifted_[i] = z[i] - width;
    evaluate(shifted_, below);
  }
  void derivatives_around(double width, Array<double>& above, Array<double>& below) {
    around(z_, width, above, below,
           [this](const auto& z, auto& out) { loss_->derivatives(z, y_, rows_, out); });
  }

  double cost_of(const double* w) {
    loss_->values(z_, y_, rows_, other_);
    double cost = 0.0;
    for (int i = 0; i < rows_; ++i) cost += d_[i] * other_[i];
    for (int p = 0; p < slots_; ++p) cost += penalty_[p] * w[p] * w[p];
    return cost;
  }

  /// c_i = d_i l'(z_i), averaged over z_i - width .. z_i + width if the loss has kinks.
  void write_slopes(const Array<double>& z, double width) {
    if (!kinked_) {
      loss_->derivatives(z, y_, rows_, c_);
      for (int i = 0; i < rows_; ++i) c_[i] *= d_[i];
      return;
    }
    around(z, width, c_, other_,
           [this](const auto& at, auto& out) { loss_->values(at, y_, rows_, out); });
    for (int i = 0; i < rows_; ++i) c_[i] = d_[i] * ((c_[i] - other_[i]) / (2.0 * width));
  }

  /// The slopes at z, and how far the averaged ones may be off: sum_i d_i m |c_i - s_i|, d_i in c_i.
  double slopes_and_slack(double width) {
    double slack = 0.0;
    if (kinked_) {
      write_slopes(z_, width);
      for (int i = 0; i < rows_; ++i) slack += width * std::fabs(c_[i] - d_[i] * slopes_[i]);
    } else {
      for (int i = 0; i < rows_; ++i) c_[i] = d_[i] * slopes_[i];
    }
    return slack;
  }

  /// h_i = d_i l''(z_i), as a difference of first derivatives, and not too small.
  void write_curvatures(double width) {
    derivatives_around(width, h_, other_);
    const double steepest = kinked_ ? INF : loss_->curvature;
    for (int i = 0; i < rows_; ++i) {
      const double secant = std::min(FLOOR * std::fabs(c_[i]) / std::max(std::fabs(z_[i] - y_[i]), width),
                                     FLOOR * d_[i] * steepest);
      h_[i] = std::max(d_[i] * ((h_[i] - other_[i]) / (2.0 * width)), secant);
    }
  }

  /// Slopes and curvatures of the model after `width` has shrunk, from the present ones. A row near a
  /// kink keeps its slope c_i if its distance from the kink shrinks with the width. The slopes on both
  /// sides give its present distance, and the model includes that move.
  void shrink_model(double width) {
    derivatives_around(width, h_, other_);
    for (int i = 0; i < rows_; ++i) {
      const double low = d_[i] * other_[i], jump = d_[i] * h_[i] - low;
      double away = 0.0;
      if (jump > 0.0)
        away = width * std::min(std::max(2.0 * (c_[i] - low) / jump - 1.0, -1.0), 1.0);
      const double secant = FLOOR * std::fabs(c_[i]) / std::max(std::fabs(z_[i] - y_[i]), width);
      h_[i] = std::max(jump / (2.0 * width * SHRINK), secant);
      slopes_[i] = c_[i] + h_[i] * (1.0 - SHRINK) * away;
    }
  }

  /// The first width of averaging, or of differences of derivatives if the loss is smooth.
  double first_width(double cost) const {
    double size = 0.0, steepest = 0.0, farthest = 0.0;
    for (int i = 0; i < rows_; ++i) {
      size += d_[i];
      steepest = std::max(steepest, std::fabs(slopes_[i]));
      farthest = std::max(farthest, std::fabs(z_[i] - y_[i]));
    }
    double width = 1e-4 * farthest;
    if (kinked_ && steepest > 0.0) width = 0.1 * (std::fabs(cost) / size) / steepest;
    return width > 0.0 && width < INF ? width : 1e-8;
  }

  // --- how far to go -----------------------------------------------------------------------------

  /// How far E falls from w towards the model's minimiser v, in [0, 1].
  double step_length(double width, const double* w) {
    Array<double>& move = model_;
    for (int p = 0; p < slots_; ++p) move[p] = v_[p] - w[p];
    mix(move.data(), direction_.data());  // not a difference of mixtures, which would round
    double straight = 0.0, bend = 0.0, at_start = 0.0;
    for (int p = 0; p < slots_; ++p)
      if (move[p] != 0.0) {
        straight += 2.0 * penalty_[p] * w[p] * move[p];
        bend += 2.0 * penalty_[p] * move[p] * move[p];
        at_start += g_[p] * move[p];
      }
    if (!(at_start < 0.0)) return 0.0;
    return line_search(width, at_start, straight, bend);
  }

  /// The derivative of the losses at z + step * direction, in that direction.
  double slope_along(double step, double width) {
    for (int i = 0; i < rows_; ++i) point_[i] = z_[i] + step * direction_[i];
    write_slopes(point_, width);
    double total = 0.0;
    for (int i = 0; i < rows_; ++i) total += c_[i] * direction_[i];
    return total;
  }

  /// The step in [0, 1] up to which the cost falls, by regula falsi. The cost's derivative at step x is
  /// that of the losses plus straight + bend x. It grows with x: its zero is enclosed, and the end with
  /// negative derivative is returned.
  double line_search(double width, double at_start, double straight, double bend) {
    double high = 1.0, high_slope = slope_along(1.0, width) + straight + bend;
    if (high_slope <= 0.0) return 1.0;
    double low = 0.0, low_slope = at_start;
    for (int turn = 0; turn < 20; ++turn) {
      const double span = high - low;
      double x = low + span * (low_slope / (low_slope - high_slope));
      x = std::min(std::max(x, low + 0.1 * span), high - 0.1 * span);
      double slope = slope_along(x, width);
      slope += straight + bend * x;
      if (slope <= 0.0) {
        low = x;
        low_slope = slope;
        if (slope >= 0.1 * at_start) break;
      } else {
        high = x;
        high_slope = slope;
      }
    }
    return low;
  }

  // --- products with F ---------------------------------------------------------------------------

  /// out_p = sum_i factors_i F_ip, in the order of the rows.
  void weighted_sums(const Array<double>& factors, double* out) const {
    std::fill_n(out, slots_, 0.0);
    for (int i = 0; i < rows_; ++i) {
      const double* values = row(i);
      const double factor = factors[i];
      for (int p = 0; p < slots_; ++p) out[p] = out[p] + factor * values[p];
    }
  }

  /// g = F'slopes + 2 penalty w.
  void write_gradient(const Array<double>& slopes, const double* w) {
    weighted_sums(slopes, g_.data());
    for (int p = 0; p < slots_; ++p) g_[p] += 2.0 * penalty_[p] * w[p];
  }

  /// out_i = sum_p weights_p F_ip, over slots with weight.
  void mix(const double* weights, double* out) {
    support_.clear();
    for (int p = 0; p < slots_; ++p)
      if (weights[p] != 0.0) support_.push_back(p);
    for (int i = 0; i < rows_; ++i) {
      const double* values = row(i);
      double total = 0.0;
      for (int p : support_) total += weights[p] * values[p];
      out[i] = total;
    }
  }

  /// H_pp = sum_i h_i F_ip^2 + 2 penalty_p.
  void write_diagonal() {
    for (int p = 0; p < slots_; ++p) diagonal_[p] = 2.0 * penalty_[p];
    for (int i = 0; i < rows_; ++i) {
      const double* values = row(i);
      const double factor = h_[i];
      for (int p = 0; p < slots_; ++p) diagonal_[p] += factor * values[p] * values[p];
    }
  }

  int slots_ = spec_.slots;
  // 0 for window evidence
  int horizon_ = is_word("evidence", "prequential") ? spec_.settings.count("horizon") : 0;
  std::shared_ptr<const Loss> loss_ = spec_.loss;
  bool quadratic_ = loss_->curvature_rule == CurvatureRule::constant;
  bool kinked_ = loss_->curvature == 0.0;
  double ridge_ = number("ridge"), tolerance_ = number("tolerance");
  int steps_ = spec_.settings.whole("steps");
  Array<double> powers_ = spec_.settings.array("powers");  // discount^age
  Matrix<double> past_predictions_{horizon_, slots_};      // these two: rings of prequential evidence
  Array<double> past_targets_ = Array<double>(horizon_);
  std::int64_t taken_ = 0;  // samples in prequential evidence: those without a target are left out
  Array<double> certificate_ = Array<double>(4);  // gap, cost, scale, moves
  // scratch
  int rows_ = 0;
  const double* F_ = nullptr;  // (rows, P)
  Array<double> d_, y_, z_, direction_, c_, h_, slopes_, point_, shifted_, other_;  // by row
  Array<double> penalty_ = Array<double>(slots_), active_ = penalty_, g_ = penalty_;  // by slot
  Array<double> model_ = penalty_, diagonal_ = penalty_, v_ = penalty_;
  std::vector<int> support_;
  PairwiseSolver solver_{slots_};
};

std::vector<NamedCombiner> joint_family() { return {{"Joint", make<Joint>}}; }

}  // namespace kb
