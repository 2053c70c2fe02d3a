// Vectors that begin where a cache line does, so that a group of numbers that divides a line never lies across two.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace untwist {

// A cache line has so many bytes.
inline constexpr std::size_t kCacheLineBytes = 64;

template <typename T>
struct CacheLineAllocator {
  using value_type = T;

  CacheLineAllocator() = default;
  template <typename Other>
  CacheLineAllocator(const CacheLineAllocator<Other>&) {}

  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{kCacheLineBytes}));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, std::align_val_t{kCacheLineBytes}); }

  template <typename Other>
  bool operator==(const CacheLineAllocator<Other>&) const {
    return true;
  }
  template <typename Other>
  bool operator!=(const CacheLineAllocator<Other>&) const {
    return false;
  }
};

template <typename T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace untwist
