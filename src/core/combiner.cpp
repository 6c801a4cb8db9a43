#include "combiner.hpp"

#include <cstring>

namespace kb {

void Combiner::change_slots(Combiner& before, const SlotPlan& plan) {
  const std::vector<Entry> to = list_state(*this), from = list_state(before);
  for (std::size_t e = 0; e < to.size(); ++e) {
    const Entry &into = to[e], &out_of = from[e];
    // (rows, columns); an array of one axis is a column
    const std::size_t axes = into.shape.size();
    const std::size_t rows = axes > 0 ? into.shape[0] : 1, columns = axes > 1 ? into.shape[1] : 1;
    const std::size_t width = axes > 1 ? out_of.shape[1] : 1;
    auto source = [&](int axis, std::size_t i) {
      return into.slot_axes >> axis & 1 ? std::size_t(plan.source(int(i))) : i;
    };
    double* target = static_cast<double*>(into.numbers);  // or counts of as many bytes
    const double* numbers = static_cast<const double*>(out_of.numbers);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        std::memcpy(target + i * columns + j, numbers + source(0, i) * width + source(1, j),
                    sizeof(double));
  }
}

Cloned<Combiner> make_combiner(const std::string& name, const CombinerSpec& spec) {
  for (const auto& family : {experts_family(), joint_family(), omkr_family(), simplex_family(),
                             stacking_family()})
    for (const NamedCombiner& kind : family)
      if (name == kind.name) return kind.make(spec);
  throw std::invalid_argument("unknown combiner " + name);
}

}  // namespace kb
