// The quadratic program of the paper: minimise sum_p a_p w_p^2 + b_p w_p over the simplex.
//
// Let mass(v) = sum over b_p < v of (v - b_p) / (2 a_p): the sum of the weights if the multiplier is
// v. It grows with v. The *threshold* is the largest b_p with mass(b_p) < 1, that is, with weight. All
// weights follow from it, and nothing is subtracted but two members of b:
//
//     w_p = (threshold - b_p) / (2 a_p) + (1 - mass(threshold)) (c / a_p) / sum_active(c / a),
//     c = min a.
//
// (The paper's multiplier, Algorithm 1 line 4, loses all digits when a spans many powers of ten.)
//
// `mass` is summed in the order of the index. A sum of non-negative terms in a fixed order is monotone
// in v even after rounding, so the threshold is unique: sorting and pivots find it up to rounding, one
// fixed sum makes it exact, and both give the same bits. b_p = inf marks a slot that has failed.
#pragma once
#include "../arrays.hpp"

namespace kb {

class QuadraticProgram {
 public:
  enum class Method { sort, pivot, automatic };

  /// weights = the minimiser; all 0 if all members have failed.
  void solve(const double* a, const double* b, int size, double* weights,
             Method method = Method::automatic);

 private:
  void find_candidates(const double* a, const double* b, int size, Method method);
  bool share_flat(const double* a, const double* b, int size, double* weights) const;
  double by_sorting();
  double by_pivots();
  double exact(double threshold);
  double mass(double v) const;

  int count_ = 0;        // of the candidates, which can have weight
  Array<double> a_, b_;  // theirs, in the order of the index
  std::vector<int> members_, order_;
  Array<double> unknown_a_, unknown_b_;
  double flat_;          // the least b_p with a_p = 0
  double half_, scale_;  // 1/2 and 1, or 1 and 1/2 where differences of b may overflow: b is halved
  double taken_, least_; // mass(threshold); the least a_p of the members with weight
};

}  // namespace kb
