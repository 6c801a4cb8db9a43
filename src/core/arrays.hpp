// Arrays that own their numbers, and the one list of an object's state that everything uses.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "lanes.hpp"

namespace kb {

/// A bank that would need more memory than its maker allows.
struct TooLarge : std::length_error {
  using std::length_error::length_error;
};

/// While one exists, arrays that this thread makes may take so many bytes in all: settings from a
/// stranger's file may ask for any.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes) : before_(left) { left = &bytes_, bytes_ = bytes; }
  ~MemoryLimit() { left = before_; }
  MemoryLimit(const MemoryLimit&) = delete;
  /// Room for so many numbers of a size; their bytes must be a number too.
  static void take(std::size_t count, std::size_t size) {
    if (count > PTRDIFF_MAX / 2 / size) throw std::bad_alloc();
    if (!left) return;
    const std::size_t bytes = count * size;
    if (bytes > *left) throw TooLarge("the arrays need more memory than is allowed");
    *left -= bytes;
  }

 private:
  inline static thread_local std::size_t* left = nullptr;
  std::size_t bytes_, *before_;
};

/// Memory that begins where a line of the cache does.
template <class T>
struct CacheAligned {
  using value_type = T;
  static constexpr std::align_val_t line{64};
  CacheAligned() = default;
  template <class U>
  CacheAligned(const CacheAligned<U>&) {}
  T* allocate(std::size_t n) {
    MemoryLimit::take(n, sizeof(T));
    return static_cast<T*>(::operator new(n * sizeof(T), line));
  }
  void deallocate(T* p, std::size_t) { ::operator delete(p, line); }
  bool operator==(const CacheAligned&) const { return true; }
};

template <class T>
using Array = std::vector<T, CacheAligned<T>>;

/// Pages of zeros from the system, and their return.
void* map_pages(std::size_t bytes);
void unmap_pages(void* pages, std::size_t bytes);

/// to[:bytes] = from[:bytes]; where both are zeros nothing is written, so pages stay untouched.
void copy_sparse(void* to, const void* from, std::size_t bytes);

/// The same for numbers that are 0 until they are written. What a tree or a memory may need one day
/// costs neither time nor memory before: many numbers are pages of the system, which it gives when
/// they are first touched. (calloc does so in a new process; later it fills freed memory with zeros.)
template <class T>
struct Zeros {
  using value_type = T;
  static constexpr std::size_t PAGES = 3 << 14;  // bytes
  Zeros() = default;
  template <class U>
  Zeros(const Zeros<U>&) {}
  T* allocate(std::size_t n) {
    MemoryLimit::take(n, sizeof(T));
    if (is_paged(n)) return static_cast<T*>(map_pages(n * sizeof(T)));
    void* numbers = ::operator new(n * sizeof(T), CacheAligned<T>::line);
    return static_cast<T*>(std::memset(numbers, 0, n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t n) {
    if (is_paged(n))
      unmap_pages(p, n * sizeof(T));
    else
      ::operator delete(p, CacheAligned<T>::line);
  }
  template <class U>
  void construct(U*) {}  // it is 0 already
  bool operator==(const Zeros&) const { return true; }

 private:
  static bool is_paged(std::size_t n) { return n * sizeof(T) >= PAGES; }
};

/// Rows of numbers; m[i] is a pointer to row i.
template <class T, class Allocator = Zeros<T>>
class Matrix {
 public:
  Matrix() = default;
  Matrix(int rows, int columns) : numbers(std::size_t(rows) * columns), rows_(rows), columns_(columns) {}
  Matrix(int rows, int columns, T value) : Matrix(rows, columns) {
    std::fill(numbers.begin(), numbers.end(), value);
  }
  Matrix(const Matrix& other) : Matrix(other.rows_, other.columns_) {
    copy_sparse(numbers.data(), other.numbers.data(), numbers.size() * sizeof(T));
  }
  Matrix(Matrix&&) = default;
  Matrix& operator=(const Matrix& other) { return *this = Matrix(other); }
  Matrix& operator=(Matrix&&) = default;
  T* operator[](int row) { return numbers.data() + start(row); }
  const T* operator[](int row) const { return numbers.data() + start(row); }
  int rows() const { return rows_; }
  int columns() const { return columns_; }
  std::vector<T, Allocator> numbers;  // never resized

 private:
  std::size_t start(int row) const {
#if defined(KB_CHECKED)
    if (row < 0 || (row >= rows_ && row > 0)) std::abort();  // an empty one has a row 0, of nothing
#endif
    return std::size_t(row) * columns_;
  }
  int rows_ = 0, columns_ = 0;
};

/// For a block of samples. It is freed and made anew at every call, and written whole: pages of the system
/// would take longer than the numbers.
template <class T>
using BlockRows = Matrix<T, CacheAligned<T>>;

/// Let scratch have at least so many rows of this length; what it holds is lost if it has not.
template <class T>
void make_room(Matrix<T>& scratch, int rows, int columns) {
  if (scratch.rows() < rows || scratch.columns() != columns) scratch = Matrix<T>(rows, columns);
}

/// Give back the memory of these arrays; an assignment alone may keep it.
template <class... Arrays>
void release(Arrays&... arrays) {
  ((arrays = Arrays()), ...);
}

/// A pointer whose copy is a copy of what it points to: objects with such parts can be copied.
template <class T>
class Cloned {
 public:
  Cloned() = default;
  /// Part is the type of the object itself.
  template <class Part>
  Cloned(std::unique_ptr<Part> owned)
      : owned_(std::move(owned)), copy_([](const T& part) -> std::unique_ptr<T> {
          return std::make_unique<Part>(static_cast<const Part&>(part));
        }) {}
  Cloned(const Cloned& other)
      : owned_(other.owned_ ? other.copy_(*other.owned_) : nullptr), copy_(other.copy_) {}
  Cloned(Cloned&&) = default;
  Cloned& operator=(Cloned other) {
    std::swap(owned_, other.owned_);
    std::swap(copy_, other.copy_);
    return *this;
  }
  T* operator->() const { return owned_.get(); }
  T& operator*() const { return *owned_; }

 private:
  std::unique_ptr<T> owned_;
  std::unique_ptr<T> (*copy_)(const T&) = nullptr;
};

/// The same, but the copy is made when one of the two is about to change: until then both are one.
template <class T>
class ClonedLater {
 public:
  ClonedLater(Cloned<T> part) : part_(std::make_shared<Cloned<T>>(std::move(part))) {}
  T& operator*() {
    if (part_.use_count() > 1) part_ = std::make_shared<Cloned<T>>(*part_);
    std::atomic_thread_fence(std::memory_order_acquire);  // after another thread has made its copy
    return **part_;
  }
  T* operator->() { return &**this; }
  const T& operator*() const { return **part_; }
  const T* operator->() const { return &**part_; }

 private:
  std::shared_ptr<Cloned<T>> part_;
};

/// What a state from outside is refused with.
struct StateRefused : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

enum class Number { float64, float32, int64, int32 };

/// An array of a state: where its numbers are, and what they are called.
struct Entry {
  std::string name;
  Number kind;
  void* numbers;
  std::vector<std::size_t> shape;  // the last axis of `lanes` is the slot's
  bool lanes;
  int slot_axes = 0;               // bit i: axis i has an entry for every slot of the bank
  std::size_t count() const {
    std::size_t n = 1;
    for (std::size_t length : shape) n *= length;
    return n;
  }
  std::size_t bytes() const {
    return count() * (kind == Number::float32 || kind == Number::int32 ? 4 : 8);
  }
};

/// Visits the state of an object, which lists it once, in `visit`. Saving, loading, copying slots,
/// adding outputs and sending to other processes all use that list.
///
/// An object is visited a second time after numbers from outside were written (`loaded`): then it
/// refuses, by `require`, counts and indices that its loops could not work with.
class Archive {
 public:
  std::vector<Entry> entries;
  bool loaded = false;

  /// A number, or a number of each slot.
  template <class T>
  void operator()(const char* name, T& x) {
    numbers(name, &x, {});
  }
  template <class T>
  void operator()(const char* name, Array<T>& x) {
    numbers(name, x.data(), {x.size()});
  }
  template <class T>
  void operator()(const char* name, Matrix<T>& x) {
    numbers(name, x.numbers.data(), {std::size_t(x.rows()), std::size_t(x.columns())});
  }
  /// How many of something there are so far; refused if it is no such number, or below `least`.
  void count(const char* name, std::int64_t& number, std::int64_t least = 0) {
    (*this)(name, number);
    if (!loaded) return;
    const std::string rule = std::string(name) + " is not a count";
    require(number >= least && number < std::int64_t(1) << 53, rule.c_str());
  }
  /// Numbers that are part of a larger array.
  template <class T>
  void numbers(const char* name, T* x, std::vector<std::size_t> shape) {
    constexpr bool lanes = std::is_same_v<T, Lanes>;
    if (lanes) shape.push_back(WIDTH);
    add(name, std::is_same_v<T, std::int64_t>   ? Number::int64
              : std::is_same_v<T, std::int32_t> ? Number::int32
              : std::is_same_v<T, float>        ? Number::float32
                                                : Number::float64,
        x, std::move(shape), lanes);
  }

  /// An array with an entry for every slot of the bank, along the first axis or those of `axes`.
  template <class T>
  void by_slot(const char* name, T& x, int axes = 1) {
    (*this)(name, x);
    if (!loaded) entries.back().slot_axes = axes;
  }

  /// Visit a part, whose names begin with its own.
  template <class Part>
  void part(const std::string& name, Part& part) {
    const std::string before = prefix_;
    prefix_ += name + "/";
    part.visit(*this);
    prefix_ = before;
  }

  /// The same for parts that are numbered: "name0", "name1" ...
  template <class Parts>
  void parts(const std::string& name, Parts& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) part(name + std::to_string(i), parts[i]);
  }

  /// Refuse a loaded state that breaks a rule.
  void require(bool holds, const char* rule) const {
    if (loaded && !holds) throw StateRefused(prefix_ + ": " + rule);
  }

 private:
  [[gnu::noinline]] void add(const char* name, Number kind, void* numbers,
                             std::vector<std::size_t> shape, bool lanes) {
    if (!loaded) entries.push_back({prefix_ + name, kind, numbers, std::move(shape), lanes, 0});
  }
  std::string prefix_;
};

/// The list of an object's state.
template <class Object>
std::vector<Entry> list_state(Object& object) {
  Archive archive;
  object.visit(archive);
  return std::move(archive.entries);
}

/// Let an object check what was written to its state from outside.
template <class Object>
void check_state(Object& object) {
  Archive archive;
  archive.loaded = true;
  object.visit(archive);
}

}  // namespace kb
