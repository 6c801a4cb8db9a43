// The model of an AutoBank for targets that are classes, numbered from 0.
//
// Two classes: one output with labels of -1 and 1. More: one per class, against the rest. All classes are
// outputs of one bank, if they see the same row. With lagged targets or seasons they do not, since these
// are labels for the class: then each has a bank with one output.
#pragma once
#include "change_detection.hpp"
#include "past.hpp"
#include "prediction.hpp"
#include "probabilities.hpp"
#include "scaling.hpp"

namespace kb {

class ClassModel {
 public:
  ClassModel(Past past, Replay replay, int classes, int lags, int recent, double limit)
      : past(std::move(past)),
        replay(std::move(replay)),
        probabilities(0),
        detector(0, recent, limit),
        counts(classes),
        lags_(lags) {}

  // Python lays these out, and puts others in their place: for more inputs, periods, slots or classes.
  std::shared_ptr<Scaling> scaling;
  std::vector<std::shared_ptr<ModelBank>> banks;
  void use_slots(int pool, std::vector<int> members);
  /// Forget the running means of the weights.
  void restart_weights() { detector.restart_weights(pool()); }
  void add_class() { counts.push_back(0.0); }
  void add_inputs(int count) { replay.add_inputs(count); }

  Past past;
  Replay replay;
  Probabilities probabilities;     // the calibration of the scores: a logistic curve, or a softmax
  ChangeDetector detector;
  Array<double> counts;            // (classes,): rows of each class so far
  double wrong = 0.0, last_wrong = 0.0;  // wrong predictions, and those of the last label as one
  std::int64_t last_class = -1;
  std::int64_t rows = 0;           // learned so far
  std::int64_t unscored = 0;       // predictions before the first label was known: they do not count
  std::vector<Signal> signals;     // of change, since they were last taken

  int classes() const { return int(counts.size()); }
  int outputs() const;
  int pool() const { return running_.pool; }

  /// Predict a row x (inputs,) which knows `row_past` (past,). Changes nothing.
  void predict(const double* x, const double* row_past, Prediction& out);
  /// (n, classes): the probabilities of n rows.
  void predict_rows(const double* X, const double* pasts, int n, double* out);
  /// Predict and learn the first of n rows X (n, inputs) of classes y (n,); how many, at least one. made :
  /// the prediction of the first row, if it was made before; learns : whether scaling has begun.
  int step(const double* X, const double* y, int n, bool learns, const Prediction* made,
           const StepRecord& record);

  /// What `step` would record of a prediction that was made just now.
  void write_record(const Prediction& prediction, const StepRecord& record) const;

  /// out (n, width) = scaled rows (n, width), with past labels as those for the output of class `positive`:
  /// 1, -1, and 0 where they are not known.
  void write_labels(const double* scaled, const double* pasts, int n, int positive, double* out) const;
  /// (pool,): the weights of the first output; equal ones before there is a bank.
  void write_weights(double* out) const;
  void visit(Archive& archive);

 private:
  int positive(int output) const { return outputs() == 1 ? 1 : output; }
  void write_probabilities(const double* scores, double* out);
  void ask_banks(const double* X, const double* pasts, int n);
  void make_room_for(int n);
  int keep_answers(int n, int first, int K);
  void learn_block(const double* y, int n);
  void score(std::int64_t row, int predicted, int label, bool counts, const double* weights);
  void note_levels(const std::vector<int>& levels);
  void count_row(const double* x, const double* row_past, double y, std::int64_t predicted_at);
  void past_slots(const Prediction& prediction, int offset, double* out) const;

  int lags_;
  RunningSlots running_;
  // scratch
  Matrix<double> rows_, pasts_, labelled_;
  Matrix<double> scores_;                      // (n, outputs)
  Array<double> labels_, predictions_, weights_, slots_, first_weights_, pool_row_;
  Array<double> all_slots_;                    // (n, outputs, P)
  Prediction made_;
};

/// The most probable class; -1 if no class is known.
int best_class(const double* probabilities, int classes);

}  // namespace kb
