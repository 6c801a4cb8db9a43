// The model of an AutoBank for targets that are numbers: K >= 1 of them, as outputs of one bank.
//
// A step scales rows, lets the bank predict and learn them, calibrates and scores the predictions, looks
// for changes, and remembers the rows. Rows with usual targets are done many at once; a row with a far
// target, or one that was predicted some rows ago, is a step of its own. No bit depends on how a stream is
// cut into steps.
#pragma once
#include "change_detection.hpp"
#include "held_targets.hpp"
#include "intervals.hpp"
#include "past.hpp"
#include "prediction.hpp"

namespace kb {

/// What is kept of one target beside its running statistics and what the bank has learned.
struct TargetTrack {
  TargetTrack(Bounds bounds, int recent, double limit) : intervals(bounds), detector(0, recent, limit) {}
  Intervals intervals;        // the calibration of its predictions
  ChangeDetector detector;    // of their errors, and of the weights
  std::int64_t unscored = 0;  // predictions before the first target was known: they do not count
  void visit(Archive& archive);
};

class NumberModel {
 public:
  /// outputs : a multiple of the targets of `past`; all outputs of a target stand together.
  NumberModel(int outputs, Past past, Replay replay, Bounds bounds, std::vector<double> levels,
              int recent, double limit);

  // Python lays these out, and puts others in their place: for more inputs, periods or slots.
  std::shared_ptr<Scaling> scaling;
  std::shared_ptr<ModelBank> bank;        // null before the first restart
  /// Slots of the pool, and the index in it of each slot that runs.
  void use_slots(int pool, std::vector<int> members);
  /// Forget the running means of the weights.
  void restart_weights() {
    for (TargetTrack& track : tracks) track.detector.restart_weights(pool());
  }

  Past past;
  Replay replay;
  HeldTargets held;
  std::vector<TargetTrack> tracks;
  std::vector<Signal> signals;            // of change, since they were last taken
  /// The newest values of the first target as forecasts should take them, the oldest first: far ones as
  /// they came if they are likely to stay, else as they are believed. None after a usual row.
  Array<double> readings;
  std::int64_t rows = 0;                  // learned so far

  int targets() const { return int(tracks.size()); }
  int pool() const { return running_.pool; }
  const std::vector<double>& levels() const { return levels_; }

  /// Predict a row x (inputs,) which knows `row_past` (past,). tail : probability beyond each end of the
  /// interval; late : whether rows before it still wait for their targets. Changes nothing.
  void predict(const double* x, const double* row_past, bool late, double tail, Prediction& out);
  /// outputs (n, 3 K): the same for n rows.
  void predict_rows(const double* X, const double* pasts, int n, bool late, double tail,
                    double* outputs);
  /// Predict and learn the first of n rows X (n, inputs), y (n, K), NaN where one is missing; how many, at
  /// least one. made : the prediction of the first row, if it was made before; then it is scored, and
  /// slots are judged by it.
  int step(const double* X, const double* y, int n, double tail, const Prediction* made,
           const StepRecord& record);

  /// What `step` would record of a prediction that was made just now.
  void write_record(const Prediction& prediction, const StepRecord& record) const;

  /// Let the newest `count` rows, which the bank has learned, enter the statistics.
  void add_newest(int count);
  void add_inputs(int count);
  /// Have room for so many held rows, before a state is written.
  void allocate(int held_rows);
  void visit(Archive& archive);
  /// (K, pool): the weights of the next prediction; equal ones before there is a bank.
  void write_weights(double* out) const;

 private:
  int scale_rows(const double* X, const double* y, int n, const Prediction* made);
  void count_row(const double* x, const double* row_past, const double* y, std::int64_t predicted_at);
  void ask_bank(const double* X, const double* pasts, int n);
  void write_outputs(const double* scores, const double* slots, const double* weights, bool late,
                     double tail, double* out, double* more);
  void calibrate_block(const double* y, int n, std::int64_t first, double tail, const StepRecord& record);
  void expect_far(int k, const Stay& stay, double tail, double* out);
  std::vector<bool> far_targets(const double* x, const double* row_past, const double* y);
  void score(std::int64_t row, const Prediction& prediction, const double* y, const double* scales,
             const std::vector<bool>& far);
  void score(int k, std::int64_t row, double predicted, double y, double mean, double sd,
             const double* weights, bool far, double delay = 0.0, const double* ends = nullptr);
  void detect(int k, std::int64_t row, double error, const double* weights);
  double center(int k) const;
  double scale(int k) const;
  const double* past_slots(const Prediction& prediction, const double* scales);
  struct ScaledRows {
    Matrix<double> inputs, targets;
  };
  ScaledRows scaled(const std::vector<HeldRow>& held_rows);
  void learn_or_hold(HeldRow row, const std::vector<bool>& far, const double* scales,
                     const double* earlier);
  void follow_change(int k, const double* scales);
  bool has_moved(int k, const double* scales);
  void rescale(int k, const double* scales);
  void learn_held(ScaledRows& scaled_rows, const std::vector<bool>& changed, const double* earlier);
  void read_held(int k, bool stays);
  void note(std::int64_t row, Change what, int of) { signals.push_back({row, what, of}); }

  std::vector<double> levels_;
  RunningSlots running_;
  // Scratch of a step: of rows that are learned at once, and of single ones.
  Matrix<double> rows_, pasts_, scaled_, scales_;          // (n, width), (n, past), (n, K), (n, 2 K)
  Array<double> predictions_, weights_, slots_, earlier_;  // (n, K), (n, K P) twice, (K P)
  Array<double> pool_row_;                                 // (pool,)
  Prediction made_;
};

}  // namespace kb
