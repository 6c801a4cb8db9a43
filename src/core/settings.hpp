// Settings by name, as Python gives them to the objects of the core.
#pragma once
#include <climits>
#include <map>

#include "arrays.hpp"
#include "math.hpp"

namespace kb {

class Settings {
 public:
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> words;
  std::map<std::string, Array<double>> arrays;

  double number(const char* name) const { return find(numbers, name); }
  double number_or(const char* name, double otherwise) const {
    return numbers.count(name) ? numbers.at(name) : otherwise;
  }
  /// At least `least`, and so small that twice as many is a number too.
  int whole(const char* name, int least = INT_MIN / 2) const {
    const double number = find(numbers, name);
    if (!(least <= number && number <= INT_MAX / 2))
      throw std::invalid_argument(
          (number < least ? "the setting is too small: " : "the setting is too large: ") +
          std::string(name));
    return int(number);
  }
  /// How many of something there are, at least one.
  int count(const char* name) const { return whole(name, 1); }
  /// An array of indices below `end`.
  std::vector<int> indices(const char* name, int end) const {
    std::vector<int> indices;
    for (double number : array(name)) {
      if (!(number >= 0.0 && number < end))
        throw std::invalid_argument(std::string("the setting has an index out of range: ") + name);
      indices.push_back(int(number));
    }
    return indices;
  }
  const std::string& word(const char* name) const { return find(words, name); }
  const Array<double>& array(const char* name) const { return find(arrays, name); }
  /// The key of random numbers: from the seed, whose upper and lower 32 bits are `seed_parts`, and from
  /// what the learner is, as a number.
  std::uint64_t random_key() const {
    const Array<double>& seed = array("seed_parts");
    const double identity = number("identity");
    for (double number : {seed.at(0), seed.at(1), identity})
      if (!(number >= 0.0 && number < 0x1p53)) throw std::invalid_argument("no seed");
    const std::uint64_t whole_seed = std::uint64_t(seed[0]) << 32 | std::uint64_t(seed[1]);
    return mix_key(mix_key(0, whole_seed), std::uint64_t(identity));
  }
  bool has(const char* name) const { return numbers.count(name); }

 private:
  template <class T>
  static const T& find(const std::map<std::string, T>& items, const char* name) {
    const auto item = items.find(name);
    if (item == items.end()) throw std::invalid_argument(std::string("no setting ") + name);
    return item->second;
  }
};

}  // namespace kb
