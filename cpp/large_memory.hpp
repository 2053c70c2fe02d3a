// An allocator for vectors of very many numbers that are written once. New numbers are not set to 0 first, so that the
// threads that write them are also the first to touch their memory, and the system is asked for large pages, which take
// far less time to fetch one by one.
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

template <typename T>
class LargeMemory {
 public:
  using value_type = T;

  LargeMemory() = default;
  template <typename U>
  LargeMemory(const LargeMemory<U>&) {}  // NOLINT: an allocator converts to that of another type.

  T* allocate(std::size_t count) {
    if (count > kMostBytes / sizeof(T)) throw std::bad_array_new_length();
    const std::size_t alignment = count * sizeof(T) < kLargePage ? alignof(std::max_align_t) : kLargePage;
    const std::size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (alignment == kLargePage) madvise(memory, bytes, MADV_HUGEPAGE);  // It is a wish, and may be refused.
#endif
    return static_cast<T*>(memory);
  }

  void deallocate(T* memory, std::size_t) { std::free(memory); }

  template <typename U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
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
};

// An allocator for vectors of very many numbers that begin as 0 because the system hands out cleared memory. Nobody
// need write it, and the threads that write other numbers are the first to touch it. Such a vector must not shrink and
// grow again: old numbers would come back.
template <typename T>
class ZeroedMemory {
 public:
  using value_type = T;

  ZeroedMemory() = default;
  template <typename U>
  ZeroedMemory(const ZeroedMemory<U>&) {}  // NOLINT: an allocator converts to that of another type.

  T* allocate(std::size_t count) {
    void* memory = std::calloc(count, sizeof(T));
    if (memory == nullptr && count > 0) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + kLargePage - 1) / kLargePage * kLargePage;
    const auto end = (reinterpret_cast<std::uintptr_t>(memory) + count * sizeof(T)) / kLargePage * kLargePage;
    // It is a wish, and may be refused.
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
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

  friend bool operator==(const ZeroedMemory&, const ZeroedMemory&) { return true; }
  friend bool operator!=(const ZeroedMemory&, const ZeroedMemory&) { return false; }

 private:
  static constexpr std::size_t kLargePage = std::size_t{1} << 21;
};

using ManyReals = std::vector<double, LargeMemory<double>>;

}  // namespace untwist
