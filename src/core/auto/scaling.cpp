#include "scaling.hpp"

#include "../transforms.hpp"
#include "seasons.hpp"

namespace kb {

int RowLayout::past() const { return targets + seasons * SEASON_PAST + previous; }

Scaling::Scaling(RowLayout layout)
    : relevance(layout.relevant_sources.size(), 1.0),
      layout_(std::move(layout)),
      columns_(layout_.inputs, Column::STATS),
      rings_(layout_.inputs, layout_.ring),
      target_(Column::STATS),
      target_ring_(layout_.target_ring),
      forms_(layout_.inputs, FORMS) {
  for (int source : layout_.relevant_sources) {
    bool found = false;
    for (int i = layout_.inputs; i < layout_.inputs + layout_.targets; ++i)
      found = found || layout_.places[STANDARD][i] == source || layout_.places[PLAIN][i] == source;
    is_past_target_.push_back(found);
  }
}

void Scaling::fit_inputs(const double* X, int n) {
  const int inputs = layout_.inputs;
  Array<double> values(n);
  for (int k = 0; k < inputs; ++k) {
    for (int t = 0; t < n; ++t) values[t] = X[std::size_t(t) * inputs + k];
    input(k).fit(values.data(), n);
  }
}

/// Write the forms of input or past target k to its columns; `plain` is its value as it is.
void Scaling::place(int k, const double* forms, double plain, double* out) const {
  const auto column = [&](int scaling) { return layout_.places[scaling][k]; };
  if (column(STANDARD) >= 0) out[column(STANDARD)] = forms[FIXED];
  if (column(ASINH) >= 0) out[column(ASINH)] = asinh(forms[MOVING]);
  if (column(RANKS) >= 0) out[column(RANKS)] = forms[RANK];
  if (column(PLAIN) >= 0) out[column(PLAIN)] = plain;
}

void Scaling::scale(const double* x, const double* past, double* out) {
  const RowLayout& own = layout_;
  for (int k = 0; k < own.inputs; ++k) {
    const Column column = input(k);
    column.normalize(x[k], forms_[k]);
    const bool filled_in = std::isnan(x[k]) || column.is_extreme(x[k]);
    const double plain = filled_in ? column.center + column.scale * forms_[k][FIXED] : x[k];
    place(k, forms_[k], plain, out);
  }
  for (int i = 0; own.has_target && i < own.targets; ++i) {
    double forms[FORMS] = {};
    // A far target is held back until it is clear what it means: only columns that the user asked for
    // have it meanwhile.
    const bool far = i >= own.shown && target().is_far(past[i]);
    if (!(std::isnan(past[i]) || far)) target().normalize(past[i], forms);
    place(own.inputs + i, forms, forms[FIXED], out);
  }
  for (int i = 0; i < own.seasons; ++i)
    scale_season(past + own.targets + i * SEASON_PAST, out + own.season_column + i * SEASON_INPUTS);
  for (int k = 0; k < own.previous; ++k) {
    const Column column = input(k);
    const double value = past[own.past() - own.previous + k];
    const bool known = !(std::isnan(value) || column.is_extreme(value));
    out[own.previous_column + k] = known ? clipped(column.deviation(value), CLIP) : 0.0;
  }
  for (std::size_t j = 0; j < relevance.size(); ++j) {
    double value = out[own.relevant_sources[j]];
    if (is_past_target_[j]) value = shifted_log(value, target_shift);
    out[own.relevant_column + j] = relevance[j] * value;
  }
}

/// The columns (SEASON_INPUTS,) of a period, from what a row knows of it (SEASON_PAST,).
void Scaling::scale_season(const double* past, double* out) {
  for (int i = 0; i < 2 * HARMONICS; ++i) {
    const double phase = past[RECALLED + i];
    out[2 + i] = -1.0 <= phase && phase <= 1.0 ? phase : 0.0;  // a forged file may claim anything
  }
  if (!layout_.has_target) return;
  double known = 0.0;
  out[0] = out[1] = 0.0;
  for (int i = 0; i < RECALLED; ++i) {
    if (std::isnan(past[i]) || target().is_extreme(past[i])) continue;
    const double z = clipped(target().deviation(past[i]), CLIP);
    if (i == 0) out[0] = z;
    out[1] += z;
    known += 1.0;
  }
  if (known > 0.0) out[1] /= known;
}

void Scaling::add_inputs(const double* x, int t, NewLevels& levels) {
  double forms[FORMS];
  for (int k = 0; k < layout_.inputs; ++k) {
    input(k).normalize(x[k], forms);
    if (input(k).update(x[k], forms)) levels.emplace_back(t, k);
  }
}

int Scaling::scale_and_add(const double* X, const double* past, const double* y, int n, double* out,
                           double* scaled, double* scale_before, NewLevels& levels) {
  const int inputs = layout_.inputs;
  for (int t = 0; t < n; ++t, X += inputs, past += layout_.past(), out += layout_.width) {
    if (y != nullptr) {
      if (target().is_far(y[t])) return t;
      scaled[t] = target().deviation(y[t]);
      scale_before[2 * t] = target().center;
      scale_before[2 * t + 1] = target().scale;
    }
    scale(X, past, out);
    for (int k = 0; k < inputs; ++k)
      if (input(k).update(X[k], forms_[k])) levels.emplace_back(t, k);
    if (y != nullptr) add_target(y[t]);
  }
  return n;
}

// --- the target ----------------------------------------------------------------------------------

int Scaling::outlier_level(double y) {
  if (target().is_extreme(y)) return EXTREME;
  return target().is_far(y) ? FAR : USUAL;
}

/// Add the targets that are held back, as if they were at most `most` deviations away.
void Scaling::add_held(Column target, double most) {
  const int held = std::min(int(target.streak), target.held());
  for (int i = held; i > 0; --i) target.add_to_moments(target.newest(i), most);
  target.streak = 0.0;
}

void Scaling::add_target(double y) {
  double forms[FORMS];
  Column own = target();
  own.normalize(y, forms);
  own.remember_last(y, forms);
  add_held(own, FAR_DEVIATIONS);
  own.add_to_moments(y, FAR_DEVIATIONS);
  own.push(y);
}

bool Scaling::hold_target(double y) {
  double forms[FORMS];
  Column own = target();
  own.normalize(y, forms);
  own.remember_last(y, forms);
  own.push(y);
  own.streak += 1.0;
  return own.streak >= CHANGE_AFTER;
}

void Scaling::shift_target(double shift) {
  Column own = target();
  own.mean += shift;
  own.center += shift;
  for (int i = CHANGE_AFTER + 1; i <= own.held(); ++i) own.newest(i) += shift;
  add_held(own, FAR_DEVIATIONS);
}

// --- state ---------------------------------------------------------------------------------------

void Scaling::continue_from(const Scaling& before) {
  std::copy(before.columns_.numbers.begin(), before.columns_.numbers.end(),
            columns_.numbers.begin());
  std::copy(before.rings_.numbers.begin(), before.rings_.numbers.end(), rings_.numbers.begin());
  target_ = before.target_;
  target_ring_ = before.target_ring_;
  target_shift = before.target_shift;
  if (relevance.size() == before.relevance.size()) relevance = before.relevance;  // else all are new
}

void Scaling::visit(Archive& archive) {
  archive("columns", columns_);
  archive("rings", rings_);
  archive("target", target_);
  archive("ring", target_ring_);
  if (!relevance.empty()) {
    archive("relevance", relevance);
    archive("target_shift", target_shift);
  }
  if (!archive.loaded) return;
  for (int k = 0; k < layout_.inputs; ++k) input(k).check(archive);
  target().check(archive);
  for (double factor : relevance)
    archive.require(0.0 < factor && factor <= double(relevance.size()), "relevance is a share");
  archive.require(std::isfinite(target_shift), "the shift of the target is finite");
}

}  // namespace kb
