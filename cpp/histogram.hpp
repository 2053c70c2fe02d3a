// Histograms: for every feature and bin the sum of the weights, one class at a time, as whole numbers.
//
// Rows are added into sums of a thread's own, only so many at a time that 32 bits cannot overflow, and these to the
// node's. Whole numbers have no rounding, so neither threads nor the order of the rows matter, and a sibling is its
// parent minus its sibling, exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "binning.hpp"

namespace untwist {

using Row = std::uint32_t;
using Sum = std::uint64_t;

inline constexpr std::size_t kBins = 256;

// A row in the list of a node, with its weight: summing up then reads weights in order.
struct Entry {
  Row row;
  std::uint32_t weight;
};

// What is summed up of an entry: its weight,
struct WeightOnly {
  using Cell = std::uint32_t;
  Cell operator()(const Entry& entry) const { return entry.weight; }
};

// or in the upper half of the same sum its sample weight too.
struct WeightAndRows {
  using Cell = std::uint64_t;
  Cell operator()(const Entry& entry) const { return Cell{own == nullptr ? one : own[entry.row]} << 32 | entry.weight; }

  const std::uint32_t* own;
  std::uint32_t one;
};

// Adds `count` codes, packed into `codes` from the lowest byte up, to sums kBins apart.
template <int count, typename Cell>
inline void add_codes(std::uint64_t codes, Cell weight, Cell* sums) {
  if constexpr (count > 0) {
    sums[codes & 255] += weight;
    add_codes<count - 1>(codes >> 8, weight, sums + kBins);
  }
}

// Adds entries to the sums of `width` features, whose codes stand `stride` apart from row to row.
template <int rest, typename Summand>
void add_rows(const Code* codes, std::size_t stride, std::size_t width, const Entry* entries, std::size_t count,
              const Summand& summand, typename Summand::Cell* sums) {
  constexpr std::size_t kAhead = 20;
  const std::size_t whole = width - rest;
  const Row first = entries[0].row;
  const Row last = entries[count - 1].row;
  const bool scattered =
      (first < last ? last - first : first - last) > 2 * count;  // else the hardware sees the pattern
  for (std::size_t i = 0; i < count; ++i) {
    if (scattered && i + kAhead < count) {
      const Code* next = codes + entries[i + kAhead].row * stride;
      __builtin_prefetch(next);
      __builtin_prefetch(next + width - 1);
    }
    const auto weight = summand(entries[i]);
    const Code* row = codes + entries[i].row * stride;
    auto* sum = sums;
    std::uint64_t eight;
    for (std::size_t feature = 0; feature < whole; feature += 8, sum += 8 * kBins) {
      std::memcpy(&eight, row + feature, sizeof eight);
      add_codes<8>(eight, weight, sum);
    }
    if constexpr (rest > 0) {
      std::memcpy(&eight, row + whole, sizeof eight);
      add_codes<rest>(eight, weight, sum);
    }
  }
}

// Adds entries to the sums of all features, so many features at a time that their sums stay in a fast cache. Reads up
// to 7 bytes past the last code.
template <typename Summand>
void add_rows(const Code* codes, std::size_t features, const Entry* entries, std::size_t count, const Summand& summand,
              typename Summand::Cell* sums) {
  constexpr std::size_t kMost = 64;
  const std::size_t blocks = (features + kMost - 1) / kMost;
  const std::size_t block = (features + blocks - 1) / blocks;
  for (std::size_t start = 0; start < features; start += block) {
    const std::size_t width = features - start < block ? features - start : block;
    const auto add = [&](auto rest) {
      add_rows<decltype(rest)::value>(codes + start, features, width, entries, count, summand, sums + start * kBins);
    };
    switch (width % 8) {
      case 0: add(std::integral_constant<int, 0>{}); break;
      case 1: add(std::integral_constant<int, 1>{}); break;
      case 2: add(std::integral_constant<int, 2>{}); break;
      case 3: add(std::integral_constant<int, 3>{}); break;
      case 4: add(std::integral_constant<int, 4>{}); break;
      case 5: add(std::integral_constant<int, 5>{}); break;
      case 6: add(std::integral_constant<int, 6>{}); break;
      default: add(std::integral_constant<int, 7>{}); break;
    }
  }
}

}  // namespace untwist
