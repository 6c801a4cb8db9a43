// LastValue: the last target again, or an input that is the last target already.
//
//     f = y_(t-1) at every input, or f(x) = x_column; 0 before the first sample.
//
// It has no kernel: norm^2 is 0, which means none.
#include <cmath>

#include "../learner.hpp"

namespace kb {

namespace {

class LastValue final : public Learner {
 public:
  explicit LastValue(const LearnerSpec& spec) : window_(spec.objective.window) {
    const bool remembers = !spec.settings.has("column");
    const bool per_output = spec.settings.number("per_output") != 0.0;
    for (int k = 0; k < spec.objective.outputs(); ++k) {
      const int column = remembers ? NONE : spec.settings.whole("column") + (per_output ? k : 0);
      if (!remembers && (column < 0 || column >= spec.dimension))
        throw std::invalid_argument("the column is not one of the inputs");
      outputs_.push_back({column});
    }
  }

  void visit(Archive& archive) override {
    archive.parts("output", outputs_);
  }

  void learn(const Block& block, Record* records) override {
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      for (int t = 0; t < block.count; ++t) {
        const std::int64_t number = block.first + t;
        if (outputs_[k].column == NONE)
          repeat_target(outputs_[k], number, block.targets[k][t], records[k], t);
        else
          repeat_input(outputs_[k], number, block.x(t), block.samples, records[k], t);
      }
  }

  bool rescale(int k, double factor, double offset) override {
    outputs_[k].last = factor * outputs_[k].last + offset;
    return true;
  }

  void predict(const Query& query, Lanes* out) override {
    for (const Output& output : outputs_)
      *out++ = output.column != NONE && query.seen > 0 ? Lanes(query.x[output.column]) : output.last;
  }

 private:
  static constexpr int NONE = -1;

  /// What belongs to one output.
  struct Output {
    int column;        // of the input that is the last target, or NONE: remember targets
    Lanes last = 0.0;  // f
    void visit(Archive& archive) { archive("last", last); }
  };

  /// How many samples of the window there are after this one.
  int seen(std::int64_t number) const { return int(std::min<std::int64_t>(number + 1, window_)); }

  void repeat_target(Output& output, std::int64_t number, Lanes target, Record& record, int t) {
    record.predictions[t] = output.last;
    if (!std::isnan(target[0])) output.last = target;
    const int unseen = window_ - seen(number);
    std::fill_n(record.values[t + 1], unseen, Lanes(0.0));
    std::fill_n(record.values[t + 1] + unseen, seen(number), output.last);
    record.norms[t + 1] = 0.0;
  }

  /// The inputs of the window are its values. That of the first sample says nothing of a target.
  void repeat_input(Output& output, std::int64_t number, const double* x, const Samples& samples,
                    Record& record, int t) {
    if (number > 0) output.last = x[output.column];
    record.predictions[t] = output.last;
    Lanes* values = record.values[t + 1];
    std::fill_n(values, window_, Lanes(0.0));
    const double* newest = samples.inputs(output.column) + samples.place(number);
    for (int age = 0; age < seen(number); ++age) values[window_ - 1 - age] = *(newest - age);
    record.norms[t + 1] = 0.0;
  }

  int window_;
  std::vector<Output> outputs_;
};

}  // namespace

std::vector<NamedLearner> last_value_family() { return {{"LastValue", make<LastValue>, true}}; }

}  // namespace kb
