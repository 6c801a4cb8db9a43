// Banks of the core without Python: a line per case, its name and a hash of every number that it
// has written for a generated stream. The same lines from every compiler and processor.
//
//     plain            all cases
//     plain TEXT N     the cases with TEXT in their names, N times: to measure
#include <cstdio>
#include <cstdlib>

#include "bank.hpp"
#include "combiner.hpp"
#include "learner.hpp"
#include "math.hpp"

using namespace kb;

/// Pseudo-random numbers in [0, 1), by integers only (splitmix64).
struct Draw {
  std::uint64_t state;
  double operator()() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return double((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
};

/// FNV-1a of the bytes of numbers, the lowest first; all NaNs are one.
struct Hash {
  std::uint64_t value = 0xcbf29ce484222325;
  void add(const double* numbers, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t bits = 0x7ff8000000000000;
      if (!std::isnan(numbers[i])) std::memcpy(&bits, numbers + i, sizeof bits);
      for (int byte = 0; byte < 8; ++byte, bits >>= 8) value = (value ^ (bits & 255)) * 0x100000001b3;
    }
  }
};

KernelSpec formula(const char* name, const char* statistic, std::vector<double> constants,
                   std::vector<int> coordinates, double parameter = 0.0) {
  return {name, {statistic, parameter, std::move(coordinates), nullptr, nullptr}, constants, {}};
}

KernelSpec gaussian(double width, std::vector<int> coordinates) {
  return formula("exponential", "squared_distance", {-0.5 * LOG2_E / (width * width)}, coordinates);
}

KernelSpec composed(const char* name, std::vector<KernelSpec> parts,
                    std::vector<double> constants = {}) {
  return {name, {}, std::move(constants), std::move(parts)};
}

struct Slots {
  std::string learner;
  Settings settings;
  std::vector<KernelSpec> kernels;  // up to four
  int base_pack = -1;
  double shift = 0.0;               // of a ShiftedLog
  std::string loss = "";            // the bank's
};

struct Case {
  std::string name;
  std::vector<Slots> packs;
  std::string combiner = "Simplex";
  Settings rule;
  int outputs = 1, dimension = 2, window = 5, threads = 1;
  double regularization = 0.01;
  std::string loss = "squared";
  bool on_simplex = true;
  double far = 1.0;                 // some targets are this many times larger
  int samples = 400;
};

std::vector<double> parameters(const std::string& loss) {
  return loss == "huber" ? std::vector<double>{0.5} : std::vector<double>{};
}

std::unique_ptr<Bank> make(const Case& given) {
  BankSpec spec{};
  spec.objective = {given.window, given.regularization, {}};
  for (int k = 0; k < given.outputs; ++k)
    spec.objective.losses.push_back(make_loss(given.loss, parameters(given.loss)));
  spec.dimension = given.dimension;
  spec.block = 64;
  spec.threads = given.threads;
  spec.on_simplex = given.on_simplex;
  spec.needs_values = true;
  Statistics statistics;
  std::vector<Pack> packs;
  int history = given.window;
  for (const Slots& slots : given.packs) {
    LearnerSpec learner{slots.settings, slots.kernels, spec.objective,
                        given.dimension, 0, &statistics};
    if (!slots.loss.empty())
      learner.objective.losses.assign(given.outputs, make_loss(slots.loss, parameters(slots.loss)));
    if (slots.settings.numbers.count("budget"))
      history = std::max(history, slots.settings.whole("budget"));
    TargetChange change;
    change.base_pack = slots.base_pack;
    if (slots.shift > 0.0) change.transform = ShiftedLog{slots.shift};
    std::vector<int> places;
    for (std::size_t i = 0; i < std::max<std::size_t>(slots.kernels.size(), 1); ++i)
      places.push_back(spec.slots++);
    packs.emplace_back(places, make_learner(slots.learner, learner), change, given.outputs, spec.block,
                       given.window);
  }
  std::vector<Cloned<Combiner>> combiners;
  for (int k = 0; k < given.outputs; ++k)
    combiners.push_back(make_combiner(given.combiner,
                                      {given.rule, spec.slots, given.window, given.regularization,
                                       spec.objective.losses[k]}));
  Samples samples(history, given.dimension, given.outputs, std::move(statistics), spec.block);
  const std::vector<double> weights(spec.slots, 1.0 / spec.slots);
  return std::make_unique<Bank>(spec, std::move(samples), std::move(packs), std::move(combiners),
                                weights);
}

/// Learns in blocks of several lengths; every number of the trace, then predictions and the state.
std::uint64_t run(const Case& given) {
  const auto bank = make(given);
  const int n = given.samples, d = given.dimension, K = given.outputs, P = bank->spec().slots;
  std::vector<double> X(std::size_t(n) * d), y(std::size_t(n) * K);
  Draw draw{7};
  for (int t = 0; t < n; ++t) {
    double total = 0.0;
    for (int k = 0; k < d; ++k) {
      X[t * d + k] = d == 1 ? t + 1.0 : 1.5 * draw();
      total += sine(3.0 * X[t * d + k]);
    }
    for (int k = 0; k < K; ++k) {
      double target = total / d + 0.3 * (draw() - 0.5) + 0.2 * k;
      if (given.loss == "logistic") target = target > 0.3 ? 1.0 : -1.0;
      if (t % 170 == 40) target *= given.far;
      y[t * K + k] = given.window == 1 && t % 90 == 33 ? NOT_A_NUMBER : target;  // missing
    }
  }
  Hash hash;
  std::vector<std::vector<double>> arrays;
  auto array = [&](std::size_t length) { return arrays.emplace_back(length, 0.0).data(); };
  for (int start = 0, length = 1; start < n; start += length, length = length * 3 % 101 + 1) {
    length = std::min(length, n - start);
    arrays.clear();
    const std::size_t one = std::size_t(length) * K, all = one * P;
    Trace trace;
    for (int column = 0; column < Trace::COLUMNS; ++column)
      trace.columns[column] =
          array(column < Trace::WEIGHTS ? one : column == Trace::VALUES ? all * given.window : all);
    bank->learn(X.data() + start * d, y.data() + start * K, length, nullptr, trace);
    for (const std::vector<double>& numbers : arrays) hash.add(numbers.data(), numbers.size());
  }
  std::vector<double> asked(20 * d), found(20 * K), slots(20 * K * P);
  for (double& x : asked) x = 1.4 * draw();
  bank->predict_rows(asked.data(), 20, found.data());
  hash.add(found.data(), found.size());
  for (auto method : {&Bank::predict_slots, &Bank::variance_slots}) {
    (*bank.*method)(asked.data(), 20, slots.data());
    hash.add(slots.data(), slots.size());
  }
  return hash.value;
}

// --- the cases -----------------------------------------------------------------------------------

Settings norma(double rate = 0.05, int budget = 50, const char* step_size = "constant") {
  return {{{"learning_rate", rate}, {"budget", budget}}, {{"step_size", step_size}}, {}};
}

Settings centres(std::map<std::string, double> more, int budget = 30) {
  Settings s = norma(0.2, budget);
  for (const auto& [name, number] : more) s.numbers[name] = number;
  return s;
}

Settings fourier(int size, int coordinates, const char* forget) {
  Draw draw{3};
  Array<double> frequencies(size * coordinates), phases(size), amplitudes(size), places;
  for (int k = 0; k < coordinates; ++k) {
    places.push_back(k);
    for (int m = 0; m < size; m += 8)  // four angles: their cosines, and their sines
      for (int i = 0; i < 4; ++i)
        frequencies[k * size + m + i] = frequencies[k * size + m + 4 + i] = 4.0 * (draw() - 0.5);
  }
  for (double& a : amplitudes) a = kb::sqrt(2.0 / size);
  return {{{"trigonometric", size}, {"forgetting", 0.99}, {"ridge", 0.1}},
          {{"forget", forget}},
          {{"frequencies", frequencies}, {"phases", phases}, {"amplitudes", amplitudes},
           {"coordinates", places}}};
}

Settings joint(const char* evidence, int horizon, int rows) {
  Settings s{{{"horizon", horizon}, {"ridge", 0.01}, {"tolerance", 1e-8}, {"steps", 100}},
             {{"evidence", evidence}}, {}};
  double power = 1.0;
  for (int i = 0; i < rows; ++i, power *= 0.98) s.arrays["powers"].push_back(power);
  return s;
}

std::vector<Case> cases() {
  const Settings simplex{{{"horizon", 1}}, {{"evidence", "window"}, {"bound", "separable"}}, {}};
  const Settings jensen{{{"horizon", 30}}, {{"evidence", "prequential"}, {"bound", "jensen"}}, {}};
  const Settings stacking{{{"discount", 0.99}, {"ridge", 0.01}, {"tolerance", 1e-8}, {"steps", 100},
                           {"degrees_of_freedom", 4.0}}, {}, {}};
  const Settings omkr{{{"learning_rate", 0.01}, {"least_rate", 1e-4}, {"halve_every", 50}},
                      {{"gradient", "exact"}}, {}};
  const Settings share{{{"learning_rate", 1.0}, {"share", 0.01}}, {}, {}};

  const std::vector<int> both{0, 1}, line{0};
  const std::vector<KernelSpec> four{gaussian(0.2, both), gaussian(0.5, both), gaussian(1.0, both),
                                     gaussian(2.0, both)};
  const std::vector<KernelSpec> one{gaussian(0.6, both)};
  std::vector<Slots> paper;
  for (int i = 0; i < 5; ++i) {
    std::vector<KernelSpec> kernels;
    for (int j = 0; j < 4; ++j)
      kernels.push_back(gaussian(0.1 + (10.0 - 0.1) * (4 * i + j) / 19.0, line));
    paper.push_back({"Norma", norma(0.05, 100), kernels});
  }
  auto sum_of = [&](double width, double period) {
    return composed("sum", {composed("scaled", {gaussian(width, both)}, {0.7}),
                            formula("exponential", "squared_sines", {-1.5}, {0}, period)});
  };
  auto product_of = [&](double width, double offset) {
    return composed("product", {formula("matern5", "squared_distance", {2.23 / width}, both),
                                formula("polynomial", "dot_product", {0.5, offset, 2.0}, both)});
  };
  Settings tracker = centres({{"forgetting", 0.999}, {"noise", 0.1}, {"jitter", 1e-6}});
  tracker.words["forget_when"] = "after";
  const Settings tree{{{"nodes", 63}, {"split_after", 8}, {"noise", 0.1}, {"identity", 5}},
                      {},
                      {{"variances", {1.0, 0.5, 0.3, 0.2, 0.1, 0.1}}, {"coordinates", {0, 1}},
                       {"seed_parts", {1, 2}}}};
  const Settings neighbors{{{"neighbors", 8}, {"memory", 100}, {"noise", 0.1}, {"constant", 1.0}},
                           {},
                           {{"coordinates", {0, 1}}}};
  const Settings last{{{"per_output", 0}}, {}, {}};
  Settings fourier_sgd = fourier(32, 2, "prior");
  fourier_sgd.numbers["learning_rate"] = 0.2;
  fourier_sgd.words["step_size"] = "adagrad";
  const std::vector<Slots> mixed{{"Norma", norma(), four},
                                 {"FourierRLS", fourier(32, 2, "prior"), {one[0]}},
                                 {"LastValue", last, {composed("none", {})}}};

  std::vector<Case> all;
  auto add = [&](const char* name, std::vector<Slots> packs, const char* combiner = "Simplex",
                 Settings rule = {}) -> Case& {
    Case made;
    made.name = name, made.packs = std::move(packs);
    made.combiner = combiner;
    made.rule = std::string(combiner) == "Simplex" && rule.words.empty() ? simplex : rule;
    return all.emplace_back(std::move(made));
  };
  for (const char* loss : {"squared", "huber"}) {
    Case& c = add(loss == std::string("huber") ? "paper, huber" : "paper", paper);
    c.dimension = 1, c.window = 10, c.loss = loss, c.samples = 700;
  }
  Case& far = add("paper, targets far away", paper);
  far.dimension = 1, far.window = 10, far.far = 1e12;
  add("kernel sums", {{"Norma", norma(), {sum_of(0.3, 1.0), sum_of(0.8, 0.7), sum_of(2.0, 2.0)}}});
  add("kernel products", {{"Norma", norma(0.02), {product_of(0.3, 1.0), product_of(1.0, 0.5)}}});
  add("other kernels",
      {{"Norma", norma(),
        {formula("rational_quadratic", "squared_distance", {0.7, -1.3}, both)}},
       {"Norma", norma(), {formula("matern3", "squared_distance", {1.7}, both)}},
       {"Norma", norma(), {formula("matern1", "squared_distance", {-LOG2_E}, both)}},
       {"Norma", norma(), {formula("exponential", "distance", {-LOG2_E}, both)}}});
  add("adagrad", {{"Norma", norma(0.5, 50, "adagrad"), four},
                  {"Norma", norma(0.5, 50, "inverse_sqrt"), four}});
  for (const char* forget : {"exponential", "prior", "random_walk"})
    add(forget, {{"FourierRLS", fourier(40, 2, forget), {one[0]}},
                 {"FourierRLS", fourier(104, 2, forget), {one[0]}}});
  add("fourier gradients", {{"FourierSGD", fourier_sgd, {one[0]}}});
  add("tree", {{"PartitionTree", tree, {one[0]}}});
  add("neighbours", {{"NearestNeighborGP", neighbors, {one[0]}}});
  add("tracker", {{"KRLSTracker", tracker, {one[0]}}});
  add("least squares on centres",
      {{"KRLS", centres({{"novelty", 0.01}, {"jitter", 1e-8}}), {one[0]}},
       {"SlidingWindowKRLS", centres({{"ridge", 0.1}}), {one[0]}},
       {"FixedBudgetKRLS", centres({{"ridge", 0.1}, {"label_rate", 0.1}}), {one[0]}}});
  add("gradients on centres",
      {{"KLMS", centres({}), {one[0]}},
       {"QKLMS", centres({{"quantization", 0.1}}), {one[0]}},
       {"KNLMS", centres({{"coherence", 0.9}, {"epsilon", 0.01}}), {one[0]}}})
      .far = 1e6;
  Case& labels = add("labels", {{"Norma", norma(), four}});
  labels.loss = "logistic";
  add("prequential", mixed, "Simplex", jensen);
  Case& stacked = add("stacking", mixed, "Stacking", stacking);
  stacked.threads = 2;
  add("robust stacking", mixed, "RobustStacking", stacking);
  add("joint", mixed, "Joint", joint("window", 1, 5));
  Case& kinked = add("joint, absolute", mixed, "Joint", joint("prequential", 20, 20));
  kinked.loss = "absolute";
  add("hedge", mixed, "Hedge", {{}, {{"evidence", "loss"}}, {}});
  add("fixed share", mixed, "FixedShare", share);
  add("omkr", mixed, "OMKR", omkr).on_simplex = false;
  add("best", mixed, "Best", {});
  Case& outputs = add("three outputs", {{"Norma", norma(), four},
                                        {"FourierRLS", fourier(40, 2, "prior"), {one[0]}},
                                        {"NearestNeighborGP", neighbors, {one[0]}},
                                        {"KRLSTracker", tracker, {one[0]}},
                                        {"PartitionTree", tree, {one[0]}}},
                      "Stacking", stacking);
  outputs.outputs = 3;
  add("missing targets", mixed, "Stacking", stacking).window = 1;
  std::vector<Slots> residual{{"FourierRLS", fourier(32, 2, "prior"), {one[0]}},
                              {"Norma", norma(), four}};
  residual[1].base_pack = 0;
  add("residual slots", residual);
  std::vector<Slots> transformed{{"Norma", norma(), four}, {"PartitionTree", tree, {one[0]}}};
  transformed[0].shift = transformed[1].shift = 2.0;
  transformed[0].loss = "huber";
  add("transform", transformed);
  return all;
}

int main(int count, char** words) {
  for (const Case& one : cases()) {
    if (count > 1 && one.name.find(words[1]) == std::string::npos) continue;
    std::uint64_t found = 0;
    for (int i = count > 2 ? std::atoi(words[2]) : 1; i > 0; --i) found = run(one);
    std::printf("%s: %016llx\n", one.name.c_str(), (unsigned long long)found);
  }
}
