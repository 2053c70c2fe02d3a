// Lanes are what a row adds to the sums of a joint tree: a vector of whole numbers, its gradient and its mass.
//
// A joint tree serves all classes. With few classes each has a lane of its own, with many they share lanes. Two more
// lanes may follow: one that counts rows, where leaves have a least number of them, and the mass, half the sum of the
// sizes of the gradient. A row of the sums has all lanes of one bin, so that adding a row to it is one instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "aligned_memory.hpp"
#include "binning.hpp"
#include "rows.hpp"
#include "vectorised.hpp"

namespace untwist {

using Lane = std::int32_t;

// A register has so many numbers, on which an instruction works at once.
template <typename Number, std::size_t count>
struct Register {
  typedef Number Type __attribute__((vector_size(count * sizeof(Number))));
};

// The features have their bins one after the other, without gaps.
struct BinLayout {
  std::vector<std::uint32_t> start;  // The bins of feature f are start[f] to start[f + 1].

  std::size_t bins() const { return start.back(); }
};

// Some features that are neighbours. The codes of two rows are `stride` apart.
struct FeatureBlock {
  std::size_t first, width;
  std::size_t stride;
};

// Adds the lanes of entries to the sums of some features, as [bin][lane]. `start` tells the first bin of every feature.
template <std::size_t lanes>
__attribute__((always_inline)) inline void add_lanes_plainly(const Code* codes, const FeatureBlock& block,
                                                             const std::uint32_t* start, const Entry* entries,
                                                             std::size_t count, const Lane* of_rows, Lane* sums) {
  using Lanes = typename Register<Lane, lanes>::Type;
  // The codes and lanes of a row so far ahead arrive from memory in time.
  constexpr std::size_t kRowsAhead = 16;
  codes += block.first;
  start += block.first;
  sums -= start[0] * lanes;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kRowsAhead < count) {
      const std::size_t next = entries[i + kRowsAhead].row;
      __builtin_prefetch(codes + next * block.stride);
      __builtin_prefetch(codes + next * block.stride + block.width - 1);
      __builtin_prefetch(of_rows + next * lanes);
    }
    const Code* code = codes + entries[i].row * block.stride;
    Lanes added;
    std::memcpy(&added, of_rows + entries[i].row * lanes, sizeof added);
    for (std::size_t feature = 0; feature < block.width; ++feature) {
      Lane* place = sums + (start[feature] + code[feature]) * lanes;
      Lanes sum;
      std::memcpy(&sum, place, sizeof sum);
      sum += added;
      std::memcpy(place, &sum, sizeof sum);
    }
  }
}

#if defined(__x86_64__)
template <std::size_t lanes>
__attribute__((target("avx2"))) void add_lanes_avx2(const Code* codes, const FeatureBlock& block,
                                                    const std::uint32_t* start, const Entry* entries, std::size_t count,
                                                    const Lane* of_rows, Lane* sums) {
  add_lanes_plainly<lanes>(codes, block, start, entries, count, of_rows, sums);
}
#endif

// Tells whether the machine has registers of 32 bytes.
inline bool has_wide_registers() {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  return has_avx2;
#else
  return false;
#endif
}

// Adds lanes with the widest registers that the machine has.
template <std::size_t lanes>
void add_lanes(const Code* codes, const FeatureBlock& block, const std::uint32_t* start, const Entry* entries,
               std::size_t count, const Lane* of_rows, Lane* sums) {
#if defined(__x86_64__)
  if (has_wide_registers()) {
    return add_lanes_avx2<lanes>(codes, block, start, entries, count, of_rows, sums);
  }
#endif
  add_lanes_plainly<lanes>(codes, block, start, entries, count, of_rows, sums);
}

// Adds the sizes of the gradients of rows to the sums of their leaves. Both have `stride` numbers.
UNTWIST_VECTORISED inline void add_sizes(const Lane* __restrict gradients, std::size_t stride,
                                         const std::uint32_t* __restrict leaf, std::size_t count,
                                         std::int64_t* __restrict sums) {
  constexpr std::size_t kStep = 4;  // Every stride is a multiple of it.
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t* sum = sums + leaf[i] * stride;
    const Lane* gradient = gradients + i * stride;
    for (std::size_t first = 0; first < stride; first += kStep) {
      for (std::size_t k = first; k < first + kStep; ++k) sum[k] += gradient[k] < 0 ? -gradient[k] : gradient[k];
    }
  }
}

}  // namespace untwist
