#include "bank.hpp"

#include <atomic>
#include <climits>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "dense.hpp"

namespace kb {

/// Sums beside the bank's values on the window: norms, losses, effects of truncation.
static constexpr int EXTRA_SUMS = 3;
/// A truncation that moves a prediction by one part in a hundred matters.
static constexpr double VISIBLE_EFFECT = 0.01;
static constexpr double LARGEST_WEIGHT_SUM = 1e300;
/// Packs times samples, a microsecond each; fewer are done before a thread has started.
static constexpr int WORTH_THREADS = 512;

/// Bytes of a pack's records of a block: they are to stay in the cache until they are scored.
static constexpr std::size_t CACHED = 1 << 17;

/// The longest block for which there is room between calls: arrays of long ones would be most of it.
static constexpr int IDLE_ROOM = 8;

static std::string output_name(std::size_t k) { return "output" + std::to_string(k); }

/// rows[0] + ... + rows[count - 1], in this order.
static Lanes sum(const Lanes* rows, int count) {
  Lanes total = 0.0;
  for (int i = 0; i < count; ++i) total = total + rows[i];
  return total;
}

/// row[p] at the slots of a pack; 0 in empty lanes.
static Lanes at_slots(const double* row, const std::vector<int>& slots) {
  double lanes[WIDTH] = {};
  for (std::size_t i = 0; i < slots.size(); ++i) lanes[i] = row[slots[i]];
  return load(lanes);
}

// --- packs -------------------------------------------------------------------------------------

Pack::Output::Output(int block, int window, bool changes_target)
    : losses_before(block, Lanes(0.0)),
      targets(changes_target ? window + SLIDE_PERIOD : 0, Lanes(0.0)) {}

Pack::Pack(std::vector<int> slots, Cloned<Learner> learner, TargetChange change, int count, int block,
           int window)
    : slots(std::move(slots)),
      learner(std::move(learner)),
      change(std::move(change)),
      records(count, Record(block, window)),
      outputs(count, Output(block, window, this->change.is_used())),
      window_(window),
      losses_(window),
      answers_(count) {
  if (this->change.is_used()) learned_ = records;
}

void Pack::visit(Archive& archive) {
  archive.part("learner", *learner);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::string name = output_name(k) + "/";
    records[k].visit(archive, name);
    archive((name + "alive").c_str(), outputs[k].alive);
    if (!change.is_used()) continue;
    archive((name + "targets").c_str(), outputs[k].targets);
    learned_[k].visit(archive, name + "found_");
  }
}

void Pack::learn(const Block& block, const std::vector<Pack>& packs) {
  if (!change.is_used()) return learner->learn(block, records.data());
  set_targets(block, packs);
  Block changed = block;
  changed.targets = changed_targets_.data();
  learner->learn(changed, learned_.data());
  set_functions(block.count, packs);
}

void Pack::receive(const Block& block, const Trace& records_of_slots, std::int64_t first,
                   int slot_count) {
  for (int t = 0; t < block.count; ++t)
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const std::size_t place = std::size_t(block.first - first + t) * outputs.size() + k;
      const auto read = [&](Trace::Column column, std::size_t row) {
        return at_slots(records_of_slots.columns[column] + row * slot_count, slots);
      };
      Record& record = records[k];
      record.predictions[t] = read(Trace::SLOT_PREDICTIONS, place);
      record.effects[t] = read(Trace::EFFECTS, place);
      record.norms[t + 1] = read(Trace::NORMS, place);
      for (int i = 0; i < window_; ++i)
        record.values[t + 1][i] = read(Trace::VALUES, place * window_ + i);
    }
}

/// Targets of the learner: T(y) - T(b(x)), with b before it learned the sample.
void Pack::set_targets(const Block& block, const std::vector<Pack>& packs) {
  changed_targets_.clear();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    Array<Lanes>& targets = outputs[k].targets;
    slide(block.first, window_, targets.data());
    Lanes* now = targets.data() + window_ + block.first % SLIDE_PERIOD;
    const Record* b = base(packs, int(k));
    for (int t = 0; t < block.count; ++t)
      now[t] = change.forward(block.targets[k][t]) - of_base(b ? &b->predictions[t] : nullptr);
    changed_targets_.push_back(now);
  }
}

/// f = T^-1(T(b) + g): predictions and values on the window; |f|^2 = |b|^2 + |g|^2.
void Pack::set_functions(int count, const std::vector<Pack>& packs) {
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const Record* b = base(packs, int(k));
    Record &f = records[k], &g = learned_[k];
    for (int t = 0; t < count; ++t) {
      f.predictions[t] =
          change.inverse(g.predictions[t] + of_base(b ? &b->predictions[t] : nullptr));
      f.effects[t] = g.effects[t];
      for (int i = 0; i < window_; ++i)
        f.values[t + 1][i] =
            change.inverse(g.values[t + 1][i] + of_base(b ? &b->values[t + 1][i] : nullptr));
      f.norms[t + 1] = b ? g.norms[t + 1] + Lanes(b->norms[t + 1][change.base_lane])
                         : g.norms[t + 1] + Lanes(0.0);
    }
    g.close(count);
  }
}

/// The evidence of every slot at each sample:
///
///     slot_loss   = l(f(x_t), y_t)                                   before sample t is learned
///     slot_cost   = sum_i l(f(x_i), y_i) + regularization / 2 |f|^2  before, i over the window
///     curvature   = a = regularization / 2 |f|^2                     after
///     window_loss = b = sum_i l(f(x_i), y_i)                         after
///
/// A slot is quarantined, for good, when one of these or a value is not finite.
void Pack::score(int k, const Block& block, const Objective& objective, Scores& scores) {
  const int window = window_;
  const double half = 0.5 * objective.regularization;
  const Loss& loss = *objective.losses[k];
  const Record& record = records[k];
  Lanes* losses = losses_.data();
  Lanes alive = outputs[k].alive, older = 0.0;
  for (int t = 0; t < block.count; ++t) {
    const int seen = int(std::min<std::int64_t>(block.first + t + 1, window));
    const Lanes* targets = block.targets[k] + t - seen + 1;
    const Lanes* before = record.values[t] + window - seen + 1;  // f on the older samples
    const Lanes* after = record.values[t + 1] + window - seen;
    const Lanes prediction = record.predictions[t];
    if (t == 0 || loss.in_python()) {  // else these losses were summed with b of sample t - 1
      if (seen > 1) loss.values(before, targets, seen - 1, losses);
      older = sum(losses, seen - 1);
    }
    Lanes ahead;
    loss.values(&prediction, targets + seen - 1, 1, &ahead);
    const Lanes total = older + ahead;
    outputs[k].losses_before[t] = total;
    loss.values(after, targets, seen, losses);
    Lanes b = 0.0, size = 0.0;
    older = 0.0;
    const int leaving = seen == window ? 1 : 0;  // samples that leave the window next
    for (int i = 0; i < seen; ++i) {
      b = b + losses[i];
      if (i >= leaving) older = older + losses[i];
      size = size + absolute(after[i]);
    }
    const Lanes curvature = half * record.norms[t + 1];
    const Lanes cost = total + half * record.norms[t];
    size = size + absolute(curvature) + absolute(b) + absolute(cost) + absolute(prediction);
    alive = where_less(size, INF, alive, 0.0);
    for (int i = 0; i < int(slots.size()); ++i) {
      const int p = slots[i];
      const bool good = alive[i] > 0.0;
      scores.curvature[t][p] = good ? curvature[i] : 0.0;
      scores.window_loss[t][p] = good ? b[i] : INF;
      scores.slot_cost[t][p] = good ? cost[i] : INF;
      scores.slot_loss[t][p] = good ? ahead[i] : INF;
      scores.slot_predictions[t][p] = prediction[i];
      if (scores.values.rows() == 0) continue;
      for (int j = 0; j < window; ++j)
        scores.values[t * window + j][p] = good ? record.values[t + 1][j][i] : 0.0;
    }
  }
  outputs[k].alive = alive;
}

/// The weighted sum over the slots of a pack, in order; over one slot, which is in lane 0. NaN of a slot
/// that is out must not get in.
static double weighted_sum(Lanes weight, Lanes x) {
  const Lanes product = where_less(0.0, absolute(weight), weight * x, 0.0);
  return ((product[0] + product[1]) + product[2]) + product[3];
}
static double weighted_sum(double weight, Lanes x) { return weight * x[0]; }

/// totals (count, window + EXTRA_SUMS): the first are sum_p w_p f_p(x_i) on the window before each
/// sample is learned, then norms with w_p^2, losses and effects with w_p.
void Pack::mix(int k, std::int64_t first, int count, const double* weights, int slot_count,
               double* totals) const {
  const int window = window_;
  const Record& record = records[k];
  const auto add = [&](auto weight, int t) {
    const int older = int(std::min<std::int64_t>(first + t, window - 1));
    const Lanes* before = record.values[t];
    for (int i = window - 1 - older; i < window - 1; ++i)
      totals[i] += weighted_sum(weight, before[i + 1]);
    totals[window - 1] += weighted_sum(weight, record.predictions[t]);
    totals[window] += weighted_sum(weight * weight, record.norms[t]);
    totals[window + 1] += weighted_sum(weight, outputs[k].losses_before[t]);
    totals[window + 2] += weighted_sum(weight, record.effects[t]);
  };
  for (int t = 0; t < count; ++t, weights += slot_count, totals += window + EXTRA_SUMS) {
    if (slots.size() == 1) {
      const double weight = weights[slots[0]];
      if (absolute(weight) > 0.0) add(weight, t);
    } else {
      const Lanes weight = at_slots(weights, slots);
      if (add_lanes(absolute(weight)) > 0.0) add(weight, t);
    }
  }
}

void Pack::predict(const Query& query, const std::vector<Pack>& packs) {
  learner->predict(query, answers_.data());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    outputs[k].query = answers_[k];
    if (!change.is_used()) continue;
    const Lanes* b = change.base_pack < 0 ? nullptr : &packs[change.base_pack].outputs[k].query;
    outputs[k].query = change.inverse(answers_[k] + of_base(b));
  }
}

/// The variances of b and g, in units of the noise's, add up as if they were independent; to first
/// order a transform scales both and the noise by the same factor.
void Pack::variance(const Query& query, const std::vector<Pack>& packs) {
  learner->variance(query, answers_.data(), int(outputs.size()));
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    outputs[k].variance = answers_[k];
    if (change.base_pack >= 0)
      outputs[k].variance += packs[change.base_pack].outputs[k].variance[change.base_lane];
  }
}

bool Pack::rescale(int k, double factor, double offset) {
  if (change.is_used() || !learner->rescale(k, factor, offset)) return false;
  for (int i = 0; i < window_; ++i) {
    Lanes& value = records[k].values[0][i];
    value = factor * value + offset;
  }
  return true;
}

/// The base goes on in other units, from values `before` on the window: f' = T^-1(T(b') + g).
void Pack::follow_base(int k, const Array<Lanes>& before, const std::vector<Pack>& packs) {
  const Record& b = *base(packs, k);
  for (int i = 0; i < window_; ++i) {
    Lanes& value = records[k].values[0][i];
    const Lanes learned = change.forward(value) - of_base(&before[i]);
    value = change.inverse(of_base(&b.values[0][i]) + learned);
  }
}

/// Targets T(y) - T(b) of past samples, whose base goes on in its units, become T(y') - T(b).
void Pack::rescale_targets(int k, double factor, double offset, const Samples& samples) {
  Array<Lanes>& targets = outputs[k].targets;
  const int shift = samples.length - window_;  // where the same sample is among all samples
  for (int i = std::max(0, -shift); i < int(targets.size()); ++i) {
    const Lanes y = samples.targets[k][i + shift];
    targets[i] = targets[i] + change.forward(factor * y + offset) - change.forward(y);
  }
}

void Pack::take_slot(int to, const Pack& source, int from) {
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    outputs[k].alive.set(to, source.outputs[k].alive[from]);
    records[k].take_lane(to, source.records[k], from);
    if (!change.is_used()) continue;
    const bool changed = source.change.is_used();  // else its learner had the bank's targets
    learned_[k].take_lane(to, changed ? source.learned_[k] : source.records[k], from);
    if (changed) outputs[k].targets = source.outputs[k].targets;
  }
}

void Pack::start_on_base(int lane, const std::vector<Pack>& packs) {
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const Record& b = packs[change.base_pack].records[k];
    for (int i = 0; i < window_; ++i) {
      const Lanes f = change.inverse(learned_[k].values[0][i] + of_base(&b.values[0][i]));
      records[k].values[0][i].v[lane] = f[lane];
    }
    records[k].norms[0].v[lane] = learned_[k].norms[0][lane] + b.norms[0][change.base_lane];
  }
}

// --- the bank ----------------------------------------------------------------------------------

Bank::Output::Output(Cloned<Combiner> combiner, std::vector<double> first_weights,
                     const BankSpec& spec)
    : combiner(std::move(combiner)),
      weights(first_weights.begin(), first_weights.end()),
      weight_sums(spec.sums_weights ? spec.slots : 0),
      recent(spec.objective.window - 1),
      ledger(spec.slots) {
  ledger.missing = spec.first_sample;  // samples before had no target
  reserve(1, spec);
}

void Bank::Output::reserve(int block, const BankSpec& spec) {
  block_targets = Array<double>(spec.objective.window - 1 + block);  // resize would keep the memory
  for (auto* rows : {&scores.curvature, &scores.window_loss, &scores.slot_cost, &scores.slot_loss,
                     &scores.slot_predictions, &chosen, &proposed})
    *rows = BlockRows<double>(block, spec.slots);
  scores.values = BlockRows<double>(spec.needs_values ? block * spec.objective.window : 0, spec.slots);
  totals = BlockRows<double>(block, spec.objective.window + EXTRA_SUMS);
  best = Array<double>(block);
  metrics = BlockRows<double>(block, Trace::WEIGHTS);
}

Bank::Bank(const BankSpec& spec, Samples samples, std::vector<Pack> packs_of_slots,
           std::vector<Cloned<Combiner>> combiners, std::vector<double> first_weights)
    : packs(std::move(packs_of_slots)),
      newest(std::move(samples)),
      spec_(spec),
      seen_(spec.first_sample),
      targets_(spec.objective.outputs()),
      query_weights_(spec.slots),
      query_values_(spec.slots) {
  check(combiners.size(), first_weights.size());
  for (Cloned<Combiner>& combiner : combiners)
    outputs.emplace_back(std::move(combiner), first_weights, spec_);
  window_f_.assign(padded_length(spec.objective.window), 1.0);
  window_y_ = window_loss_ = window_f_;
  std::vector<int> task(packs.size());
  for (std::size_t i = 0; i < packs.size(); ++i) {
    const int base = packs[i].change.base_pack;
    task[i] = base < 0 ? int(tasks_.size()) : task[base];
    if (base < 0) tasks_.emplace_back();
    tasks_[task[i]].push_back(int(i));
  }
}

/// Refuse parts that do not fit together: loops over them would leave their arrays.
void Bank::check(std::size_t combiners, std::size_t weights) const {
  const int window = spec_.objective.window, slots = spec_.slots;
  auto require = [](bool holds, const char* rule) {
    if (!holds) throw std::invalid_argument(rule);
  };
  require(window >= 1 && spec_.dimension >= 1 && slots >= 1 && spec_.threads >= 1 &&
              spec_.first_sample >= 0 && spec_.block >= 1,
          "a length of the bank is out of range");
  require(std::int64_t(spec_.block) * window < INT_MAX, "the window is too long");
  require(spec_.objective.outputs() >= 1 && combiners == spec_.objective.losses.size() &&
              weights == std::size_t(slots),
          "each output needs a combiner, and each slot a first weight");
  require(newest.dimension == spec_.dimension && newest.length >= window &&
              newest.targets.size() == combiners,
          "the newest samples are not those of the bank");
  std::vector<int> packs_of(slots);
  for (std::size_t i = 0; i < packs.size(); ++i) {
    const Pack& pack = packs[i];
    require(!pack.slots.empty() && pack.slots.size() <= WIDTH, "a pack has one to four slots");
    for (int slot : pack.slots) {
      require(slot >= 0 && slot < slots, "there is no such slot");
      ++packs_of[slot];
    }
    require(newest.length >= pack.learner->history(), "the history is too short");
    require(pack.outputs.size() == combiners, "a pack has other outputs");
    const int base = pack.change.base_pack, lane = pack.change.base_lane;
    require(base < int(i) && (base < 0 || (lane >= 0 && lane < int(packs[base].slots.size()))),
            "there is no such base before the pack");
  }
  for (int count : packs_of) require(count == 1, "each slot is in one pack");
}

void Bank::visit(Archive& archive) {
  archive.count("seen", seen_, spec_.first_sample);
  archive("begun", started_);
  archive.require(started_ == 0 || started_ == 1, "begun is neither 0 nor 1");
  archive.part("samples", newest);
  archive.parts("pack", packs);
  archive.parts("output", outputs);
}

bool Bank::may_fail() const {
  for (const Pack& pack : packs)
    if (pack.learner->may_fail()) return true;
  for (const auto& loss : spec_.objective.losses)
    if (loss->in_python()) return true;
  return newest.may_fail() || outputs[0].combiner->may_fail();
}

void Bank::start_from(const double* points, int count, const double* coefficients) {
  begin(points, points, count);
  Matrix<double> rows(count, spec_.dimension);
  std::copy_n(points, rows.numbers.size(), rows[0]);
  for (Pack& pack : packs) {
    Array<Lanes> of_pack(count);
    for (int j = 0; j < count; ++j)
      of_pack[j] = at_slots(coefficients + std::size_t(j) * spec_.slots, pack.slots);
    pack.learner->start_from(rows, of_pack, pack.records.data());
  }
}

std::pair<int, int> Bank::place(int slot) const {
  for (std::size_t i = 0; i < packs.size(); ++i)
    for (std::size_t lane = 0; lane < packs[i].slots.size(); ++lane)
      if (packs[i].slots[lane] == slot) return {int(i), int(lane)};
  throw std::invalid_argument("there is no such slot");
}

void Bank::reserve(int block) {
  newest.reserve(block);
  for (Pack& pack : packs) pack.reserve(block);
  for (Output& output : outputs) output.reserve(block, spec_);
  room_ = block;
}

// --- continuing from other banks -----------------------------------------------------------------

void Bank::continue_with(Bank& before, const SlotPlan& plan, const std::vector<NewSlots>& added) {
  seen_ = before.seen_;
  started_ = before.started_;
  newest.continue_from(before.newest);
  for (std::size_t k = 0; k < outputs.size(); ++k)
    outputs[k].continue_with(before.outputs[k], plan, spec_);
  continue_targets(before, plan);
  struct Source {
    Bank* bank;
    int slot;
    bool operator==(const Source&) const = default;
  };
  std::vector<Source> slots_from;  // from which slot each one goes on
  for (int slot = 0; slot < spec_.slots; ++slot)
    slots_from.push_back({&before, plan.continued[slot]});
  for (const NewSlots& group : added)
    for (std::size_t i = 0; i < group.indices.size(); ++i)
      slots_from.at(group.indices[i]) = {group.bank, int(i)};
  for (Pack& pack : packs) {
    std::vector<int> lanes(pack.slots.size());
    std::iota(lanes.begin(), lanes.end(), 0);
    std::stable_partition(lanes.begin(), lanes.end(),
                          [&](int lane) { return !plan.is_new(pack.slots[lane]); });
    Pack* shared = nullptr;  // from which what its slots share is
    bool whole = false;      // whether its learner is that of another pack, as it is
    for (int lane : lanes) {
      const Source source = slots_from[pack.slots[lane]];
      const auto [from, from_lane] = source.bank->place(source.slot);
      Pack& origin = source.bank->packs[from];
      const bool first = !shared;
      if (first) {
        shared = &origin;
        whole = origin.slots.size() == pack.slots.size() && origin.learner->history() == 0;
        for (int i = 0; i < int(pack.slots.size()); ++i)
          whole = whole && slots_from[pack.slots[i]] == Source{source.bank, origin.slots[i]};
        if (whole) pack.learner = origin.learner;
      }
      if (shared != &origin && source.bank == &before &&
          !shared->learner->shares_with(*origin.learner))
        throw StateRefused("slots that share what they have learned are taken apart");
      if (!whole) pack.learner->take_slot(lane, *origin.learner, from_lane, first);
      pack.take_slot(lane, origin, from_lane);
    }
  }
  for (const NewSlots& group : added) {
    if (!group.on_base) continue;
    for (int slot : group.indices) {
      const auto [pack, lane] = place(slot);
      packs[pack].start_on_base(lane, packs);
    }
  }
}

/// Targets of learners of the past, the same for all slots of one base and transform; 0 if no slot
/// has had this base and transform before.
void Bank::continue_targets(Bank& before, const SlotPlan& plan) {
  for (Pack& pack : packs) {
    if (!pack.change.is_used()) continue;
    int base = -1;  // the slot of the bank before that the base goes on from
    if (pack.change.base_pack >= 0) {
      const int slot = packs[pack.change.base_pack].slots[pack.change.base_lane];
      if (plan.is_new(slot)) continue;
      base = plan.continued[slot];
    }
    for (const Pack& other : before.packs) {
      const TargetChange& change = other.change;
      const int its_base =
          change.base_pack < 0 ? -1 : before.packs[change.base_pack].slots[change.base_lane];
      if (!change.is_used() || its_base != base || change.transform != pack.change.transform) continue;
      for (std::size_t k = 0; k < outputs.size(); ++k)
        pack.outputs[k].targets = other.outputs[k].targets;
      break;
    }
  }
}

/// Totals of a new slot go on from those of the slot by which it is judged; it has no weight.
void Bank::Output::continue_with(Output& before, const SlotPlan& plan, const BankSpec& spec) {
  recent = before.recent;
  const Ledger& totals = before.ledger;
  Array<double> slot_cost(spec.slots), slot_loss(spec.slots), next(spec.slots);
  double total = 0.0;
  for (int p = 0; p < spec.slots; ++p) {
    const int source = plan.source(p);
    slot_cost[p] = totals.slot_cost[source];
    slot_loss[p] = totals.slot_loss[source];
    if (plan.is_new(p) && !std::isfinite(slot_cost[p])) slot_cost[p] = totals.cost;
    if (plan.is_new(p) && !std::isfinite(slot_loss[p])) slot_loss[p] = totals.loss;
    next[p] = plan.is_new(p) ? 0.0 : before.weights[source];
    total += next[p];
  }
  ledger = totals;
  ledger.slot_cost = slot_cost;
  ledger.slot_loss = slot_loss;
  ledger.quarantined = std::count(slot_cost.begin(), slot_cost.end(), INF);
  bool lost = false;  // whether a slot with weight is retired
  for (std::size_t p = 0; p < before.weights.size(); ++p)
    lost = lost || (before.weights[p] != 0.0 &&
                    std::find(plan.continued.begin(), plan.continued.end(), int(p)) == plan.continued.end());
  if (!spec.on_simplex || !lost)
    weights = next;
  else if (total > 0.0)
    for (int p = 0; p < spec.slots; ++p) weights[p] = next[p] / total;
  // else all weights are those of a new bank
  combiner->change_slots(*before.combiner, plan);
}

/// `name` with another number after "output", where that is a part of it; `without`: it is left out.
static std::string of_output(const std::string& name, int from, int to, bool without) {
  const std::string part = output_name(from) + "/";
  std::size_t at = name.compare(0, part.size(), part) == 0 ? 0 : name.find("/" + part);
  if (at == std::string::npos) return "";
  at += name[at] == '/';
  return name.substr(0, at) + (without ? "" : output_name(to) + "/") + name.substr(at + part.size());
}

void Bank::continue_with_output(Bank& before, Bank& alone, int output, double past) {
  auto by_name = [](Bank& bank) {
    std::map<std::string, Entry> entries;
    for (Entry& entry : list_state(bank)) entries.emplace(entry.name, entry);
    return entries;
  };
  const auto old = by_name(before), single = by_name(alone);
  started_ = before.started_;
  for (const Entry& entry : list_state(*this)) {
    const Entry* source = nullptr;
    auto look = [&](const std::map<std::string, Entry>& entries, const std::string& name) {
      const auto entry = entries.find(name);
      if (!source && !name.empty() && entry != entries.end()) source = &entry->second;
    };
    for (int k = 0; k < int(outputs.size()); ++k) {
      const auto& entries = k == output ? single : old;
      const int number = k == output ? 0 : k - (k > output);
      look(entries, of_output(entry.name, k, number, false));
      look(entries, of_output(entry.name, k, number, true));  // a learner of one output
    }
    look(old, entry.name);
    if (!source || source->shape != entry.shape || source->kind != entry.kind)
      throw StateRefused(entry.name + " differs");
    copy_sparse(entry.numbers, source->numbers, entry.bytes());
  }
  for (std::size_t i = 0; i < packs.size(); ++i) {
    const TargetChange& change = packs[i].change;
    const double target = change.base_pack >= 0 ? NOT_A_NUMBER : change.forward(past)[0];
    packs[i].learner->fit_output(output, *alone.packs[i].learner, target);
  }
  newest.forget();
}

void Bank::continue_from(Bank& narrower) {
  if (packs.size() != narrower.packs.size() || outputs.size() != narrower.outputs.size())
    throw std::invalid_argument("the banks differ");
  seen_ = narrower.seen_;
  started_ = narrower.started_;
  newest.continue_from(narrower.newest);
  for (std::size_t i = 0; i < packs.size(); ++i) packs[i].continue_from(narrower.packs[i]);
  outputs = narrower.outputs;
  reserve(room_);
}

void Bank::learn(const double* X, const double* y, std::size_t n, const double* past,
                 const Trace& trace, double delay, const Trace* elsewhere) {
  const std::int64_t first = seen_;
  const int outputs_count = spec_.objective.outputs();
  if (!started_ && n > 0) begin(X);
  auto is_missing = [&](std::size_t row) {
    for (int k = 0; k < outputs_count; ++k)
      if (std::isnan(y[row * outputs_count + k])) return true;
    return false;
  };
  const std::size_t bytes = sizeof(Lanes) * (spec_.objective.window + 3) * outputs_count;
  const std::size_t longest =
      std::min<std::size_t>(spec_.block, std::max<std::size_t>(CACHED / bytes, 16));
  for (std::size_t done = 0; done < n;) {
    // A block lies in one slide period; a sample with a missing target is a block of its own.
    std::size_t count = std::min<std::size_t>(longest, SLIDE_PERIOD - seen_ % SLIDE_PERIOD);
    count = std::min(count, n - done);
    if (int(count) > room_)
      reserve(int(std::min(longest, std::max(count, 2 * std::size_t(room_)))));
    for (std::size_t t = 0; t < count; ++t)
      if (is_missing(done + t)) count = std::max<std::size_t>(t, 1);
    learn_block(X + done * spec_.dimension, y + done * outputs_count, int(count),
                past ? past + done * outputs_count * spec_.slots : nullptr, delay, elsewhere,
                first);
    for (int k = 0; k < outputs_count; ++k) write(k, done, int(count), trace);
    done += count;
  }
  if (room_ > IDLE_ROOM && n < std::size_t(room_)) reserve(IDLE_ROOM);  // a stream ends with fewer
}

/// pack(i) for each pack, bases first, by as many threads as are allowed and worth it: no result depends
/// on their number. The first exception is passed on after all have ended.
void Bank::run_tasks(int samples, const std::function<void(int)>& pack) {
  const int tasks = int(tasks_.size());
  const bool worth = samples * std::ssize(packs) >= WORTH_THREADS;
  std::atomic<int> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&, outer = inside] {
    inside = outer;
    try {
      for (int task; (task = next++) < tasks;)
        for (int i : tasks_[task]) pack(i);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = tasks;
    }
  };
  std::vector<std::thread> helpers;
  try {
    while (worth && int(helpers.size()) < std::min(spec_.threads, tasks) - 1)
      helpers.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads: those that there are do it
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  if (error) std::rethrow_exception(error);
}

/// The order of a sample's steps.
void Bank::learn_block(const double* X, const double* y, int count, const double* past,
                       double delay, const Trace* elsewhere, std::int64_t first) {
  newest.append(seen_, X, y, count);
  for (std::size_t k = 0; k < outputs.size(); ++k)
    targets_[k] = newest.targets[k].data() + newest.place(seen_);
  const Block block{seen_, count, X, newest, targets_.data()};
  run_tasks(count, [&](int i) {  // slots learn, and are scored, on their own
    if (elsewhere)
      packs[i].receive(block, *elsewhere, first, spec_.slots);
    else
      packs[i].learn(block, packs);
    score(packs[i], block);
  });
  for (int k = 0; k < int(outputs.size()); ++k) {
    if (std::isnan(y[k])) {
      skip_sample(k);
      continue;
    }
    if (past) use_past_predictions(k, block, past);
    choose_weights(k, block, delay);  // after each sample, from the evidence
    mix(k, block);             // the bank's function before each sample, with the weights before it
    charge(k, block);          // its cost, and that of every slot
  }
  for (Pack& pack : packs) pack.close(count);
  seen_ += count;
}

void Bank::score(Pack& pack, const Block& block) {
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (!std::isnan((*block.targets[k])[0]))  // a sample without a target is not scored
      pack.score(int(k), block, spec_.objective, outputs[k].scores);
}

/// Delayed targets: slots are judged by what they predicted when the input came. A slot that is out
/// stays out, and a past prediction that is not finite does not count.
void Bank::use_past_predictions(int k, const Block& block, const double* past) {
  Scores& scores = outputs[k].scores;
  const Loss& loss = *spec_.objective.losses[k];
  for (int t = 0; t < block.count; ++t) {
    const double* row = past + (std::size_t(t) * outputs.size() + k) * spec_.slots;
    for (int p = 0; p < spec_.slots; ++p) {
      if (!(scores.slot_loss[t][p] < INF && std::fabs(row[p]) < INF)) continue;
      const Lanes f = row[p];
      Lanes value;
      loss.values(&f, block.targets[k] + t, 1, &value);
      scores.slot_predictions[t][p] = row[p];
      scores.slot_loss[t][p] = value[0];
    }
  }
}

/// Set the weights of slots with non-finite predictions to 0; on a simplex, renormalise.
static void mask_nonfinite(double* weights, const double* predictions, int slots, bool on_simplex) {
  double total = 0.0;
  for (int p = 0; p < slots; ++p) total += predictions[p] * 0.0;  // NaN from NaN and infinity
  if (total == 0.0) return;
  bool lost = false;
  double rest = 0.0;
  int finite = 0;
  for (int p = 0; p < slots; ++p) {
    if (std::isfinite(predictions[p])) {
      ++finite;
      rest += weights[p];
    } else if (weights[p] != 0.0) {
      weights[p] = 0.0;
      lost = true;
    }
  }
  if (!(lost && on_simplex && finite > 0)) return;
  for (int p = 0; p < slots; ++p) {
    if (rest > 0.0)
      weights[p] /= rest;
    else if (std::isfinite(predictions[p]))
      weights[p] = 1.0 / finite;
  }
}

/// chosen[t]: the weights after sample t; proposed[t]: those of its prediction.
void Bank::choose_weights(int k, const Block& block, double delay) {
  Output& o = outputs[k];
  const int window = spec_.objective.window, slots = spec_.slots;
  std::copy(o.recent.begin(), o.recent.end(), o.block_targets.begin());
  for (int t = 0; t < block.count; ++t) o.block_targets[window - 1 + t] = block.targets[k][t][0];
  const Scores& scores = o.scores;
  const EvidenceBlock evidence{
      block.first, block.count, slots, window, o.block_targets.data(),
      spec_.needs_values ? scores.values[0] : nullptr,
      {scores.curvature[0], scores.window_loss[0], scores.slot_cost[0], scores.slot_loss[0],
       scores.slot_predictions[0]},
      spec_.objective.losses[k].get(), {delay, spec_.late_prices.data()}};
  o.combiner->choose_block(evidence, o.weights.data(), o.chosen[0]);
  for (int t = 0; t < block.count; ++t) {
    std::copy_n(t == 0 ? o.weights.data() : o.chosen[t - 1], slots, o.proposed[t]);
    mask_nonfinite(o.proposed[t], scores.slot_predictions[t], slots, spec_.on_simplex);
  }
  std::copy_n(o.chosen[block.count - 1], slots, o.weights.data());
  for (std::size_t p = 0; p < o.weight_sums.size(); ++p) {
    for (int t = 0; t < block.count; ++t) o.weight_sums[p] += std::fabs(o.proposed[t][p]);
    o.weight_sums[p] = std::min(o.weight_sums[p], LARGEST_WEIGHT_SUM);
  }
}

void Bank::mix(int k, const Block& block) {
  Output& o = outputs[k];
  std::fill_n(o.totals[0], std::size_t(block.count) * o.totals.columns(), 0.0);
  for (const Pack& pack : packs)  // in their order: the same bits everywhere
    pack.mix(k, block.first, block.count, o.proposed[0], spec_.slots, o.totals[0]);
}

/// totals += row; returns the least total.
static double add_row(double* totals, const double* row, int slots) {
  const int even = slots - slots % WIDTH;
  Lanes least = INF;
  for (int p = 0; p < even; p += WIDTH) {
    const Lanes total = load(totals + p) + load(row + p);
    store(totals + p, total);
    least = where_less(total, least, total, least);
  }
  double best = std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
  for (int p = even; p < slots; ++p) {
    totals[p] += row[p];
    best = std::min(best, totals[p]);
  }
  return best;
}

/// With F the bank's function before sample t, f_p those of the slots:
///
///     cost = sum_i l(F(x_i), y_i) + regularization / 2 * sum_p w_p^2 |f_p|^2
///     gap  = sum_p w_p sum_i l(f_p(x_i), y_i) - sum_i l(F(x_i), y_i)
void Bank::charge(int k, const Block& block) {
  Output& o = outputs[k];
  Ledger& ledger = o.ledger;
  const int window = spec_.objective.window;
  const double half = 0.5 * spec_.objective.regularization;
  const Loss& loss = *spec_.objective.losses[k];
  for (int t = 0; t < block.count; ++t) {
    add_row(ledger.slot_loss.data(), o.scores.slot_loss[t], spec_.slots);
    o.best[t] = add_row(ledger.slot_cost.data(), o.scores.slot_cost[t], spec_.slots);
  }
  for (int t = 0; t < block.count; ++t) {
    const int seen = int(std::min<std::int64_t>(block.first + t + 1, window));
    const int unseen = window - seen;
    double* total = o.totals[t];
    for (int i = 0; i < seen; ++i) {
      window_f_[i] = total[unseen + i];
      window_y_[i] = o.block_targets[t + unseen + i];
    }
    loss.values(window_f_, window_y_, seen, window_loss_);
    double sum = 0.0;
    for (int i = 0; i < seen; ++i) sum += window_loss_[i];
    double* metrics = o.metrics[t];
    metrics[Trace::PREDICTION] = total[window - 1];
    ledger.cost += metrics[Trace::COST] = sum + half * total[window];
    ledger.loss += metrics[Trace::LOSS] = window_loss_[seen - 1];
    ledger.gap += metrics[Trace::GAP] = total[window + 1] - sum;
    if (ledger.effect <= VISIBLE_EFFECT)  // kept from then on: the same figure for any blocks
      ledger.effect = std::max(ledger.effect, total[window + 2]);
    metrics[Trace::CUMULATIVE_COST] = ledger.cost;
    metrics[Trace::REGRET] = ledger.cost - o.best[t];
  }
  std::copy_n(o.block_targets.begin() + block.count, window - 1, o.recent.begin());
  ledger.quarantined = 0;
  for (double cost : ledger.slot_cost) ledger.quarantined += cost == INF;
}

/// A sample whose target is missing: slots have taken the input, and decay or forget as always; it
/// is neither scored nor charged.
void Bank::skip_sample(int k) {
  Output& o = outputs[k];
  Scores& scores = o.scores;
  for (const Pack& pack : packs)
    for (std::size_t i = 0; i < pack.slots.size(); ++i)
      scores.slot_predictions[0][pack.slots[i]] = pack.records[k].predictions[0][int(i)];
  std::copy(o.weights.begin(), o.weights.end(), o.proposed[0]);
  for (auto* rows : {&scores.slot_cost, &scores.slot_loss, &scores.window_loss, &scores.curvature})
    std::fill_n((*rows)[0], spec_.slots, NOT_A_NUMBER);
  ++o.ledger.missing;
  const double least = *std::min_element(o.ledger.slot_cost.begin(), o.ledger.slot_cost.end());
  double* metrics = o.metrics[0];
  std::fill_n(metrics, int(Trace::WEIGHTS), NOT_A_NUMBER);
  metrics[Trace::PREDICTION] = combine(o.proposed[0], scores.slot_predictions[0]);
  metrics[Trace::CUMULATIVE_COST] = o.ledger.cost;
  metrics[Trace::REGRET] = o.ledger.cost - least;
}

void Bank::write(int k, std::size_t row, int count, const Trace& trace) const {
  const Output& o = outputs[k];
  const std::size_t slots = spec_.slots, window = spec_.objective.window;
  const BlockRows<double>* by_slot[] = {&o.proposed, &o.scores.slot_cost, &o.scores.slot_loss,
                                     &o.scores.slot_predictions, &o.scores.curvature,
                                     &o.scores.window_loss};
  double* const* columns = trace.columns;
  const bool asks_records = columns[Trace::VALUES] || columns[Trace::NORMS] || columns[Trace::EFFECTS];
  const auto put = [&](Trace::Column column, std::size_t place, const Pack& pack, Lanes numbers) {
    double* out = columns[column];
    for (std::size_t i = 0; out && i < pack.slots.size(); ++i)
      out[place * slots + pack.slots[i]] = numbers[int(i)];
  };
  for (int t = 0; t < count; ++t) {
    const std::size_t place = (row + t) * outputs.size() + k;
    for (int c = Trace::PREDICTION; c < Trace::WEIGHTS; ++c)
      if (double* out = columns[c]) out[place] = o.metrics[t][c];
    for (int c = Trace::WEIGHTS; c < Trace::VALUES; ++c)
      if (double* out = columns[c])
        std::copy_n((*by_slot[c - Trace::WEIGHTS])[t], slots, out + place * slots);
    for (const Pack& pack : packs) {
      if (!asks_records) break;
      const Record& record = pack.records[k];
      put(Trace::NORMS, place, pack, record.norms[t + 1]);
      put(Trace::EFFECTS, place, pack, record.effects[t]);
      for (std::size_t i = 0; columns[Trace::VALUES] && i < window; ++i)
        put(Trace::VALUES, place * window + i, pack, record.values[t + 1][i]);
    }
  }
}

// --- predicting --------------------------------------------------------------------------------

/// sum_p w_p f_p in the order of `mix`; weights of values that are not finite become 0.
double Bank::combine(double* weights, const double* values) const {
  mask_nonfinite(weights, values, spec_.slots, spec_.on_simplex);
  double total = 0.0;
  for (const Pack& pack : packs) {
    const Lanes weight = at_slots(weights, pack.slots);
    total += weighted_sum(weight, at_slots(values, pack.slots));
  }
  return total;
}

void Bank::combine_rows(const double* slots, std::size_t n, double* predictions) {
  for (std::size_t t = 0; t < n; ++t)
    for (const Output& output : outputs) {
      std::copy(output.weights.begin(), output.weights.end(), query_weights_.begin());
      *predictions++ = combine(query_weights_.data(), slots);
      slots += spec_.slots;
    }
}

void Bank::gather(int k, Lanes Pack::Output::*member, double* values) const {
  for (const Pack& pack : packs)
    for (std::size_t i = 0; i < pack.slots.size(); ++i)
      values[pack.slots[i]] = (pack.outputs[k].*member)[int(i)];
}

/// Ends a query, also if a user's function fails: what packs have kept of it may be incomplete.
struct ForgetQuery {
  Samples& samples;
  bool keep = false;
  ~ForgetQuery() {
    if (!keep) samples.forget_query();
  }
};

void Bank::rescale(int k, double factor, double offset) {
  std::vector<Array<Lanes>> before;  // values on the window, by pack
  std::vector<bool> rescaled;
  for (Pack& pack : packs) {
    const Lanes* values = pack.records[k].values[0];
    before.emplace_back(values, values + spec_.objective.window);
    const int b = pack.change.base_pack;
    rescaled.push_back(pack.rescale(k, factor, offset) || (b >= 0 && rescaled[b]));
    if (b >= 0 && rescaled[b])
      pack.follow_base(k, before[b], packs);  // its residuals stay as they are
    else
      pack.rescale_targets(k, factor, offset, newest);
  }
  for (Lanes& target : newest.targets[k]) target = factor * target + offset;
  for (double& target : outputs[k].recent) target = factor * target + offset;
  newest.forget_query();
}

void Bank::predict(const double* x, double* predictions, double* slots) {
  const Query query = newest.query(seen_, x);
  ForgetQuery if_failed{newest};
  run_tasks(1, [&](int i) { packs[i].predict(query, packs); });
  if_failed.keep = true;
  for (int k = 0; k < int(outputs.size()); ++k, slots += spec_.slots) {
    gather(k, &Pack::Output::query, slots);
    std::copy(outputs[k].weights.begin(), outputs[k].weights.end(), query_weights_.begin());
    predictions[k] = combine(query_weights_.data(), slots);
  }
}

/// out (n, K, P): what the packs say of each row of X, in a member of their outputs.
void Bank::ask(const double* X, std::size_t n, double* out, Lanes Pack::Output::*member,
               void (Pack::*question)(const Query&, const std::vector<Pack>&)) {
  const ForgetQuery at_end{newest};
  for (std::size_t t = 0; t < n; ++t) {
    const Query query = newest.query(seen_, X + t * spec_.dimension);
    for (Pack& pack : packs) (pack.*question)(query, packs);
    for (int k = 0; k < int(outputs.size()); ++k, out += spec_.slots) gather(k, member, out);
  }
}

void Bank::predict_slots(const double* X, std::size_t n, double* slots) {
  ask(X, n, slots, &Pack::Output::query, &Pack::predict);
}

void Bank::variance_slots(const double* X, std::size_t n, double* variances) {
  ask(X, n, variances, &Pack::Output::variance, &Pack::variance);
}

/// Only slots with weight, and their bases, are asked, unless one of them is not finite.
void Bank::predict_rows(const double* X, std::size_t n, double* predictions) {
  const ForgetQuery at_end{newest};
  std::vector<char> needed(packs.size());
  for (std::size_t i = packs.size(); i-- > 0;) {
    for (const Output& output : outputs)
      if (add_lanes(absolute(at_slots(output.weights.data(), packs[i].slots))) != 0.0) needed[i] = 1;
    if (needed[i] && packs[i].change.base_pack >= 0) needed[packs[i].change.base_pack] = 1;
  }
  Array<double>& values = query_values_;
  for (std::size_t t = 0; t < n; ++t) {
    const Query query = newest.query(seen_, X + t * spec_.dimension);
    for (std::size_t i = 0; i < packs.size(); ++i) {
      if (needed[i])
        packs[i].predict(query, packs);
      else
        for (Pack::Output& output : packs[i].outputs) output.query = 0.0;
    }
    for (int k = 0; k < int(outputs.size()); ++k) {
      gather(k, &Pack::Output::query, values.data());
      double total = 0.0;
      for (int p = 0; p < spec_.slots; ++p)
        if (outputs[k].weights[p] != 0.0) total += values[p] * 0.0;
      if (total != 0.0) {  // the weight of a slot that failed goes to all others
        for (std::size_t i = 0; i < packs.size(); ++i) packs[i].predict(query, packs);
        gather(k, &Pack::Output::query, values.data());
      }
      std::copy(outputs[k].weights.begin(), outputs[k].weights.end(), query_weights_.begin());
      *predictions++ = combine(query_weights_.data(), values.data());
    }
  }
}

}  // namespace kb
