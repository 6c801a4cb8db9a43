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
        const int seen = int(std::min<std::int64_t>(number + 1, window_));
        const int column = outputs_[k].column;
        Lanes& last = outputs_[k].last;
        Lanes* newest = records[k].values[t + 1] + window_ - 1;
        std::fill_n(records[k].values[t + 1], window_, Lanes(0.0));
        records[k].norms[t + 1] = 0.0;
        if (column == NONE) {
          const Lanes target = block.targets[k][t];
          records[k].predictions[t] = last;
          if (!std::isnan(target[0])) last = target;
          std::fill_n(newest - seen + 1, seen, last);
        } else {  // the inputs of the window are its values; the first one says nothing of a target
          if (number > 0) last = block.x(t)[column];
          records[k].predictions[t] = last;
          const double* inputs = block.samples.inputs(column) + block.samples.place(number);
          for (int age = 0; age < seen; ++age) newest[-age] = inputs[-age];
        }
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

  int window_;
  std::vector<Output> outputs_;
};

}  // namespace

std::vector<NamedLearner> last_value_family() { return {{"LastValue", make<LastValue>, true}}; }

}  // namespace kb
