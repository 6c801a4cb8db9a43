#include "arrays.hpp"

// A build with checks leaves all memory to operator new, which AddressSanitizer watches.
#if (defined(__unix__) || defined(__APPLE__)) && !defined(KB_CHECKED)
#include <sys/mman.h>
#define KB_PAGES
#endif

namespace kb {

#if defined(KB_PAGES)

void* map_pages(std::size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return pages;
}
void unmap_pages(void* pages, std::size_t bytes) { munmap(pages, bytes); }

#else

void* map_pages(std::size_t bytes) {
  return std::memset(::operator new(bytes, CacheAligned<double>::line), 0, bytes);
}
void unmap_pages(void* pages, std::size_t) { ::operator delete(pages, CacheAligned<double>::line); }

#endif

void copy_sparse(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t PIECE = 4096;
  for (std::size_t start = 0; start < bytes; start += PIECE) {
    const std::size_t size = std::min(PIECE, bytes - start);
    char* target = static_cast<char*>(to) + start;
    const char* source = static_cast<const char*>(from) + start;
    // All are 0 if the first is, and each equals the next.
    const bool zeros = *source == 0 && std::memcmp(source, source + 1, size - 1) == 0;
    if (!zeros || std::memcmp(target, source, size) != 0) std::memcpy(target, source, size);
  }
}

}  // namespace kb
