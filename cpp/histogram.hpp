// Histograms: for every feature and bin the sum of the weights, one class at a time, as whole numbers.
//
// Rows are added into 32-bit sums, at most 2^(31 - bits) of them so that weights of up to 2^bits cannot overflow, and
// these are then added to 64-bit ones. Whole numbers have no rounding, so neither threads nor the order of the rows matter, and a
// sibling is its parent minus its sibling, exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "binning.hpp"

namespace untwist {

using Row = std::uint32_t;
using Sum = std::uint64_t;

inline constexpr std::size_t kBins = 256;

// Adds `count` rows to the 32-bit sums of all features, kBins apart.
inline void add_rows(const Code* codes, std::size_t features, const Row* rows, std::size_t count,
                     const std::uint32_t* weight, std::uint32_t* sums) {
  constexpr std::size_t kAhead = 24;
  const std::size_t whole = features / 8 * 8;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) __builtin_prefetch(codes + rows[i + kAhead] * features);
    const std::uint32_t w = weight[rows[i]];
    const Code* row = codes + rows[i] * features;
    std::uint32_t* sum = sums;
    std::size_t feature = 0;
    for (; feature < whole; feature += 8, sum += 8 * kBins) {
      std::uint64_t eight;
      std::memcpy(&eight, row + feature, sizeof eight);
      sum[0 * kBins + (eight & 255)] += w;
      sum[1 * kBins + (eight >> 8 & 255)] += w;
      sum[2 * kBins + (eight >> 16 & 255)] += w;
      sum[3 * kBins + (eight >> 24 & 255)] += w;
      sum[4 * kBins + (eight >> 32 & 255)] += w;
      sum[5 * kBins + (eight >> 40 & 255)] += w;
      sum[6 * kBins + (eight >> 48 & 255)] += w;
      sum[7 * kBins + (eight >> 56)] += w;
    }
    for (; feature < features; ++feature, sum += kBins) sum[row[feature]] += w;
  }
}

}  // namespace untwist
