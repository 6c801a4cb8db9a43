#include "scaling.hpp"

#include "../transforms.hpp"
#include "past.hpp"

namespace kb {

int RowLayout::past() const { return targets + seasons * SEASON_PAST + previous; }

Scaling::Scaling(RowLayout layout)
    : relevance(layout.relevant_sources.size(), 1.0),
      target_shift(std::max(layout.outputs, 1)),
      layout_(std::move(layout)),
      columns_(layout_.inputs, Column::STATS),
      rings_(layout_.inputs, layout_.ring),
      targets_(std::max(layout_.outputs, 1), Column::STATS),
      target_rings_(std::max(layout_.outputs, 1), layout_.target_ring),
      forms_(layout_.inputs, FORMS) {
  for (int source : layout_.relevant_sources) {
    int found = -1;
    for (int i = 0; i < layout_.targets; ++i)
      for (int scaling : {STANDARD, PLAIN})
        if (layout_.places[scaling][layout_.inputs + i] == source)
          found = layout_.output_of(i);
    past_target_.push_back(found);
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
  for (int i = 0; own.outputs > 0 && i < own.targets; ++i) {
    const Column target = this->target(own.output_of(i));
    double forms[FORMS] = {};
    // A far target is held back until it is clear what it means: only columns that the user asked for
    // have it meanwhile.
    const bool far = i >= own.shown && target.is_far(past[i]);
    if (!(std::isnan(past[i]) || far)) target.normalize(past[i], forms);
    place(own.inputs + i, forms, forms[FIXED], out);
  }
  for (int i = 0; i < own.seasons; ++i)
    scale_season(past + own.targets + i * SEASON_PAST, own.output_of(i),
                 out + own.season_column + i * SEASON_INPUTS);
  for (int k = 0; k < own.previous; ++k) {
    const Column column = input(k);
    const double value = past[own.past() - own.previous + k];
    const bool known = !(std::isnan(value) || column.is_extreme(value));
    out[own.previous_column + k] = known ? clipped(column.deviation(value), CLIP) : 0.0;
  }
  for (std::size_t j = 0; j < relevance.size(); ++j) {
    double value = out[own.relevant_sources[j]];
    if (past_target_[j] >= 0) value = shifted_log(value, target_shift[past_target_[j]]);
    out[own.relevant_column + j] = relevance[j] * value;
  }
}

/// The columns (SEASON_INPUTS,) of a period, from what a row knows of it and target k (SEASON_PAST,).
void Scaling::scale_season(const double* past, int k, double* out) {
  for (int i = 0; i < 2 * HARMONICS; ++i) {
    const double phase = past[RECALLED + i];
    out[2 + i] = -1.0 <= phase && phase <= 1.0 ? phase : 0.0;  // a forged file may claim anything
  }
  if (layout_.outputs == 0) return;
  const Column target = this->target(k);
  double known = 0.0;
  out[0] = out[1] = 0.0;
  for (int i = 0; i < RECALLED; ++i) {
    if (std::isnan(past[i]) || target.is_extreme(past[i])) continue;
    const double z = clipped(target.deviation(past[i]), CLIP);
    if (i == 0) out[0] = z;
    out[1] += z;
    known += 1.0;
  }
  if (known > 0.0) out[1] /= known;
}

void Scaling::add_inputs(const double* x, std::vector<int>& levels) {
  double forms[FORMS];
  for (int k = 0; k < layout_.inputs; ++k) {
    input(k).normalize(x[k], forms);
    if (input(k).update(x[k], forms)) levels.push_back(k);
  }
}

bool Scaling::scale_and_add(const double* x, const double* past, const double* y, double* out,
                            double* deviations, double* scales, std::vector<int>& levels) {
  for (int k = 0; k < layout_.outputs; ++k)
    if (outlier_level(y[k], k) != USUAL) return false;
  scale(x, past, out);
  for (int k = 0; k < layout_.inputs; ++k)
    if (input(k).update(x[k], forms_[k])) levels.push_back(k);
  for (int k = 0; k < layout_.outputs; ++k) {
    const bool known = target(k).count > 0.0;
    deviations[k] = known && !std::isnan(y[k]) ? target(k).deviation(y[k]) : NOT_A_NUMBER;
    scales[2 * k] = known ? target(k).center : NOT_A_NUMBER;
    scales[2 * k + 1] = target(k).scale;
    add_usual(y[k], k);
  }
  return true;
}

double Scaling::mean_square(const double* row) {
  double total = 0.0;
  for (int k = 0; k < layout_.inputs; ++k) {
    const auto place = [&](int scaling) { return layout_.places[scaling][k]; };
    double z = 0.0;
    if (place(STANDARD) >= 0) {
      z = row[place(STANDARD)];
    } else if (place(ASINH) >= 0) {
      z = row[place(ASINH)];
    } else if (place(RANKS) >= 0) {
      z = row[place(RANKS)];
    } else if (input(k).scale > 0.0) {
      z = (row[place(PLAIN)] - input(k).center) / input(k).scale;
    }
    total += z * z;
  }
  return total / layout_.inputs;
}

// --- targets -------------------------------------------------------------------------------------

int Scaling::outlier_level(double y, int k) {
  if (std::isnan(y) || target(k).count == 0.0) return USUAL;
  if (target(k).is_extreme(y)) return EXTREME;
  return target(k).is_far(y) ? FAR : USUAL;
}

/// Add a target that may be missing. The first ones of a target that comes late are held back, until
/// they have a mean and a scale.
void Scaling::add_usual(double y, int k) {
  if (std::isnan(y)) return;
  if (target(k).count > 0.0) return add_target(y, k);
  if (hold_target(y, k)) restart_target(k);
}

double Scaling::scaled_target(double y, int k) {
  const Column own = target(k);
  if (std::isnan(y) || own.count == 0.0) return NOT_A_NUMBER;
  return own.scale == 0.0 ? 0.0 : clipped((y - own.center) / own.scale, FAR_DEVIATIONS);
}

double Scaling::target_correlation(int k) {
  const Column own = target(k);
  return own.power > 0.0 ? std::min(std::max(own.product / own.power, 0.0), 1.0) : 0.0;
}

/// Add the targets that are held back, as if they were at most `most` deviations away.
void Scaling::add_held(Column target, double most) {
  const int held = std::min(int(target.streak), target.held());
  for (int i = held; i > 0; --i) target.add_to_moments(target.newest(i), most);
  target.streak = 0.0;
}

void Scaling::add_target(double y, int k) {
  double forms[FORMS];
  Column own = target(k);
  own.normalize(y, forms);
  own.remember_last(y, forms);
  add_held(own, FAR_DEVIATIONS);
  own.add_to_moments(y, FAR_DEVIATIONS);
  own.push(y);
}

bool Scaling::hold_target(double y, int k) {
  double forms[FORMS];
  Column own = target(k);
  own.normalize(y, forms);
  own.remember_last(y, forms);
  own.push(y);
  own.streak += 1.0;
  return own.streak >= CHANGE_AFTER;
}

void Scaling::replace_held(const std::vector<double>& believed, int k) {
  const Column own = target(k);
  const int held = std::min(int(own.streak), own.held());
  for (int i = 0; i < held && i < int(believed.size()); ++i) own.newest(i + 1) = believed[i];
}

void Scaling::shift_target(double shift, int k) {
  Column own = target(k);
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
  targets_ = before.targets_;
  target_rings_ = before.target_rings_;
  target_shift = before.target_shift;
  if (relevance.size() == before.relevance.size()) relevance = before.relevance;  // else all are new
}

void Scaling::visit(Archive& archive) {
  archive("columns", columns_);
  archive("rings", rings_);
  archive("targets", targets_);
  archive("target_rings", target_rings_);
  if (!relevance.empty()) {
    archive("relevance", relevance);
    archive("target_shift", target_shift);
  }
  if (!archive.loaded) return;
  for (int k = 0; k < layout_.inputs; ++k) input(k).check(archive);
  for (int k = 0; k < targets_.rows(); ++k) target(k).check(archive);
  for (double factor : relevance)
    archive.require(0.0 < factor && factor <= double(relevance.size()), "relevance is a share");
  archive.require(all_finite(target_shift.data(), target_shift.size()), "shifts are finite");
}

}  // namespace kb
