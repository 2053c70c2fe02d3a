// A histogram has for every feature and bin the sum of the weights, one class at a time, as whole numbers.
//
// Where the sums of a node have 64 bits, rows are first added to sums of 32 bits, only so many at a time that these
// cannot overflow. Whole numbers have no rounding, so neither threads nor the order of the rows matter, and the
// histogram of a node is that of its parent minus that of its sibling, exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "binning.hpp"
#include "rows.hpp"
#include "vectorised.hpp"

namespace untwist {

// Sums up the weights of entries.
struct WeightOnly {
  using Cell = std::uint32_t;
  Cell operator()(const Entry& entry) const { return entry.weight; }
};

// Sums up the weights of entries, and in the upper half of the same sums their sample weights too.
struct WeightAndRows {
  using Cell = std::uint64_t;
  Cell operator()(const Entry& entry) const {
    const Cell rows = sample_weight == nullptr ? one_row : sample_weight[entry.row];
    return rows << kRowsShift | entry.weight;
  }

  // The sums of weights have the lower 32 bits.
  static constexpr int kRowsShift = 32;

  const std::uint32_t* sample_weight;  // Null means that all rows weigh one_row.
  std::uint32_t one_row;
};

// Codes are read eight at a time, as one word.
inline constexpr std::size_t kCodesPerWord = 8;

// Adds `count` codes, packed into `codes` from the lowest byte up, to sums that are kBins apart.
template <std::size_t count, typename Cell>
inline void add_codes(std::uint64_t codes, Cell weight, Cell* sums) {
  if constexpr (count > 0) {
    sums[static_cast<Code>(codes)] += weight;
    add_codes<count - 1>(codes >> 8, weight, sums + kBins);
  }
}

// Adds entries to the sums of `width` features, the last `rest` of which do not fill a word. The codes of two rows are
// `stride` apart.
template <std::size_t rest, typename Summand>
void add_rows(const Code* codes, std::size_t stride, std::size_t width, const Entry* entries, std::size_t count,
              const Summand& summand, typename Summand::Cell* sums) {
  // The codes of a row so far ahead arrive from memory in time.
  constexpr std::size_t kRowsAhead = 20;
  const std::size_t whole = width - rest;
  const Row first = entries[0].row;
  const Row last = entries[count - 1].row;
  const Row span = first < last ? last - first : first - last;
  const bool scattered = span > 2 * count;  // Rows that are close together the hardware fetches by itself.
  for (std::size_t i = 0; i < count; ++i) {
    if (scattered && i + kRowsAhead < count) {
      const Code* next = codes + entries[i + kRowsAhead].row * stride;
      __builtin_prefetch(next);
      __builtin_prefetch(next + width - 1);
    }
    const auto weight = summand(entries[i]);
    const Code* row = codes + entries[i].row * stride;
    auto* sum = sums;
    std::uint64_t word;
    for (std::size_t feature = 0; feature < whole; feature += kCodesPerWord, sum += kCodesPerWord * kBins) {
      std::memcpy(&word, row + feature, sizeof word);
      add_codes<kCodesPerWord>(word, weight, sum);
    }
    if constexpr (rest > 0) {
      std::memcpy(&word, row + whole, sizeof word);
      add_codes<rest>(word, weight, sum);
    }
  }
}

// Takes some sums away from others.
UNTWIST_VECTORISED inline void subtract_sums(std::uint32_t* __restrict from, const std::uint32_t* __restrict part,
                                             std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) from[i] -= part[i];
}
UNTWIST_VECTORISED inline void subtract_sums(std::uint64_t* __restrict from, const std::uint64_t* __restrict part,
                                             std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) from[i] -= part[i];
}

// The sums of so many features at a time stay in a fast cache, and their codes are a line of it.
inline constexpr std::size_t kMaxFeatures = 64;

// Adds entries to the sums of up to kMaxFeatures features. The codes of two rows are `stride` apart. Reads up to 7
// bytes past the last code.
template <typename Summand>
void add_rows(const Code* codes, std::size_t stride, std::size_t width, const Entry* entries, std::size_t count,
              const Summand& summand, typename Summand::Cell* sums) {
  const auto add = [&](auto rest) {
    add_rows<decltype(rest)::value>(codes, stride, width, entries, count, summand, sums);
  };
  switch (width % kCodesPerWord) {
    case 0: add(std::integral_constant<std::size_t, 0>{}); break;
    case 1: add(std::integral_constant<std::size_t, 1>{}); break;
    case 2: add(std::integral_constant<std::size_t, 2>{}); break;
    case 3: add(std::integral_constant<std::size_t, 3>{}); break;
    case 4: add(std::integral_constant<std::size_t, 4>{}); break;
    case 5: add(std::integral_constant<std::size_t, 5>{}); break;
    case 6: add(std::integral_constant<std::size_t, 6>{}); break;
    default: add(std::integral_constant<std::size_t, 7>{}); break;
  }
}

}  // namespace untwist
