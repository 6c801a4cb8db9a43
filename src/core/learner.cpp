#include "learner.hpp"

#include <cstring>

namespace kb {

/// Pairs of entries with the same names and shapes.
static void copy_state(std::vector<Entry> to, const std::vector<Entry>& from, auto&& copy) {
  if (to.size() != from.size()) throw StateRefused("the learners differ");
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].name != from[i].name || to[i].shape != from[i].shape || to[i].kind != from[i].kind)
      throw StateRefused(to[i].name + " differs");
    copy(to[i], from[i]);
  }
}

void Learner::continue_from(Learner& narrower) {
  copy_state(list_state(*this), list_state(narrower), [](Entry& to, const Entry& from) {
    std::memcpy(to.numbers, from.numbers, from.bytes());
  });
}

void Learner::start_from(const Matrix<double>&, const Array<Lanes>&, Record*) {
  throw std::logic_error("this learner starts at 0");
}

bool Learner::shares_with(Learner& other) {
  bool same = true;
  copy_state(list_state(*this), list_state(other), [&](Entry& one, const Entry& two) {
    if (!one.lanes) same = same && std::memcmp(one.numbers, two.numbers, one.bytes()) == 0;
  });
  return same;
}

void Learner::take_slot(int to, Learner& source, int from, bool shared) {
  copy_state(list_state(*this), list_state(source), [=](Entry& into, const Entry& out_of) {
    if (!into.lanes) {
      if (shared) std::memcpy(into.numbers, out_of.numbers, out_of.bytes());
      return;
    }
    double* a = static_cast<double*>(into.numbers);
    const double* b = static_cast<const double*>(out_of.numbers);
    for (std::size_t i = 0; i < into.count(); i += WIDTH) a[i + to] = b[i + from];
  });
}

}  // namespace kb
