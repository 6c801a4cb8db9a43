// Probabilities of classes from scores, fitted online.
//
// *Two classes* have one score s, and a logistic curve (Platt 1999) of the odds that it stands for:
//
//     p = 1 / (1 + exp(-slope l(s) - offset)),    l(s) = log((q + e) / (1 - q + e)),  q = (1 + s) / 2,
//
// which is near q from the first row on, however rare a class is; e = 0.01 makes l finite.
//
// *More classes* have a score each, and a softmax of their scores:
//
//     z_k = (linear + slope_k) s_k + curved g(s_k) + offset_k,    g(s) = 0.3 asinh(25 (1 + s)),
//     p_k = exp(z_k) / sum_j exp(z_j).
//
// A score s_k is an estimate of the label of class k, which is 1 for its rows and -1 for all others.
// g(s) is nearly a multiple of log((1 + s) / 2), the logarithm of the probability that the score stands
// for, but finite where a score is below -1. `linear` and `curved` are common to all classes, `slope_k`
// and `offset_k` belong to one class.
//
// All are fitted together on the log loss -log p_y. After every row there is a step of Newton's method
// for the common pair, and one for the pair of every class, each with its own 2 x 2 block of the Hessian.
// Hessians forget old rows and return to their start, which keeps every step small. The cost of a row is
// linear in the number of classes.
//
// A label may come late, after its prediction. Late errors come in runs, which are often over by then: a
// run of n alike tells about as much as one row. So a late row counts (1 - r) / (1 + r) of a row, with r
// the autocorrelation of the errors, of which 1 + delay rows with r = 1 are assumed at first, and at
// least 1 / (1 + delay). The Hessians forget as much less.
#pragma once
#include "../arrays.hpp"

namespace kb {

class Probabilities {
 public:
  /// Curves for this many scores: 1 for two classes, else one for each class.
  explicit Probabilities(int scores) : common_(PAIR) { start(scores); }

  int scores() const { return curves_.rows(); }
  int classes() const { return scores() == 1 ? 2 : scores(); }

  /// Start everything anew, for this many scores.
  void start(int scores);
  /// Add curves for further scores. One score has the curve of two classes; with a third class all
  /// begin anew, because the softmax has other parameters.
  void grow(int scores);

  /// out (classes,): probabilities from scores (scores,). Learns nothing.
  void predict(const double* scores, double* out);
  /// Fit the curves to a row, which has this class. A row of more than two classes that lacks a score
  /// (NaN) is left out: its class was not known when it was predicted.
  /// delay : how many rows were learned since they were predicted.
  void update(const double* scores, int label, double delay = 0.0);

  void visit(Archive& archive);

 private:
  /// Two parameters, then the entries of their Hessian: on its diagonal, and beside it.
  enum { SLOPE, OFFSET, FIRST, MIXED, SECOND, PAIR };

  double logistic(double odds) const;
  void update_logistic(double score, double label, double delay);
  double late_count(double delay);
  void softmax(const double* scores);
  void update_common(int label, double count);
  static void newton_step(double* pair, const double* start, double first, double mixed,
                          double second, double gradient, double other_gradient, double least,
                          double count);

  Matrix<double> curves_;  // (scores, PAIR)
  Array<double> common_;   // (PAIR,): linear and curved
  Array<double> late_errors_;  // (scores,): label minus probability, of the last late row
  Array<double> late_sums_;    // (2,): of their squares, and of their products with those before them
  struct ClassRow {
    double probability, score, curved_score, error;
  };
  std::vector<ClassRow> row_;  // of each class, for the present row
};

}  // namespace kb
