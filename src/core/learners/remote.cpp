#include "remote.hpp"

#include "../learner.hpp"

namespace kb {

void Remote::take(const HandedOver& handed) {
  if (column_ + width_ > handed.slots) throw std::invalid_argument("a slot was not handed over");
  handed_ = handed;
}

void Remote::learn(const Block& block, Record* records) {
  if (block.first < handed_.first || block.first + block.count > handed_.first + handed_.count)
    throw std::logic_error("the records of a block were not handed over");
  auto lanes = [&](const double* numbers, std::size_t row) {
    double found[WIDTH] = {};
    std::copy_n(numbers + row * handed_.slots + column_, width_, found);
    return load(found);
  };
  for (int t = 0; t < block.count; ++t)
    for (int k = 0; k < outputs_; ++k) {
      const std::size_t row = std::size_t(block.first - handed_.first + t) * outputs_ + k;
      Record& record = records[k];
      record.predictions[t] = lanes(handed_.predictions, row);
      record.effects[t] = lanes(handed_.effects, row);
      record.norms[t + 1] = lanes(handed_.norms, row);
      for (int i = 0; i < window_; ++i)
        record.values[t + 1][i] = lanes(handed_.values, row * window_ + i);
    }
}

void Remote::predict(const Query&, Lanes*) {
  throw std::logic_error("slots of another process are asked there");
}

std::unique_ptr<Learner> make_remote(const LearnerSpec& spec) {
  const int column = spec.settings.whole("column"), width = spec.settings.whole("width");
  if (column < 0 || width < 1 || width > WIDTH) throw std::invalid_argument("no such slots");
  return std::make_unique<Remote>(column, width, spec.objective);
}

}  // namespace kb
