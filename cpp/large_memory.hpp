// An allocator for vectors of very many numbers. New numbers are not written first, so that the threads that write them
// are also the first to touch their memory, and the system is asked for large pages, which take far less time to fetch
// one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace untwist {

// Where it is cleared, numbers begin as 0, as the system hands out memory that is. Such a vector must not shrink and
// grow again: old numbers would come back.
template <typename T, bool is_cleared>
class LargeMemory {
 public:
  using value_type = T;

  template <typename U>
  struct rebind {
    using other = LargeMemory<U, is_cleared>;
  };

  LargeMemory() = default;
  template <typename U>
  LargeMemory(const LargeMemory<U, is_cleared>&) {}  // NOLINT: an allocator converts to that of another type.

  T* allocate(std::size_t count) {
    if (count > kMostBytes / sizeof(T)) throw std::bad_array_new_length();
    const std::size_t bytes = count * sizeof(T);
    void* memory = is_cleared ? std::calloc(bytes, 1) : allocate_aligned(bytes);
    if (memory == nullptr && bytes > 0) throw std::bad_alloc();
    ask_for_large_pages(memory, bytes);
    return static_cast<T*>(memory);
  }

  void deallocate(T* memory, std::size_t) { std::free(memory); }

  template <typename U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;  // This writes nothing.
  }
  template <typename U, typename... Arguments>
  void construct(U* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
  }

  friend bool operator==(const LargeMemory&, const LargeMemory&) { return true; }
  friend bool operator!=(const LargeMemory&, const LargeMemory&) { return false; }

 private:
  static constexpr std::size_t kLargePage = std::size_t{1} << 21;
  static constexpr std::size_t kMostBytes = std::size_t{1} << 62;

  // Returns memory of which all is in large pages, if it is large.
  static void* allocate_aligned(std::size_t bytes) {
    const std::size_t alignment = bytes < kLargePage ? alignof(std::max_align_t) : kLargePage;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }

  // It is a wish, and may be refused.
  static void ask_for_large_pages(void* memory, std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const auto place = reinterpret_cast<std::uintptr_t>(memory);
    const auto begin = (place + kLargePage - 1) / kLargePage * kLargePage;
    const auto end = (place + bytes) / kLargePage * kLargePage;
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
    static_cast<void>(memory), static_cast<void>(bytes);
#endif
  }
};

using ManyReals = std::vector<double, LargeMemory<double, false>>;

}  // namespace untwist
