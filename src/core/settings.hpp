// Settings by name, as Python gives them to the objects of the core.
#pragma once
#include <climits>
#include <map>

#include "arrays.hpp"

namespace kb {

class Settings {
 public:
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> words;
  std::map<std::string, Array<double>> arrays;
  std::map<std::string, std::shared_ptr<void>> objects;  // what only bindings know

  double number(const char* name) const { return find(numbers, name); }
  int whole(const char* name) const {
    const double number = find(numbers, name);
    if (!(number >= INT_MIN && number <= INT_MAX))
      throw std::invalid_argument(std::string("the setting is too large: ") + name);
    return int(number);
  }
  bool flag(const char* name) const { return find(numbers, name) != 0.0; }
  const std::string& word(const char* name) const { return find(words, name); }
  const Array<double>& array(const char* name) const { return find(arrays, name); }
  bool has(const char* name) const { return numbers.count(name) || words.count(name); }

 private:
  template <class T>
  static const T& find(const std::map<std::string, T>& items, const char* name) {
    const auto found = items.find(name);
    if (found == items.end()) throw std::invalid_argument(std::string("no setting ") + name);
    return found->second;
  }
};

}  // namespace kb
