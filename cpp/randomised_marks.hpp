// Marks which rows of a node go left by a split, one bit each, and counts those of every class, 64 rows at a time.
//
// This is where randomised trees spend their time. Each of these functions has a plain version and one for registers or
// instructions that a machine may have. They give the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "binning.hpp"
#include "tree.hpp"

namespace untwist::randomised {

// Codes are compared so many at a time, one bit each.
inline constexpr std::size_t kWord = 64;

// A class that a node has rows of. In a list they come in the order of the classes.
struct ClassRows {
  std::uint32_t label;
  std::uint32_t rows;
  std::uint64_t weight;
};

// These codes are found in a node.
struct CodeRange {
  Code least, largest;  // Missing values are left out.
  bool has_known, has_missing;
};

// A split as it is drawn: rows with codes up to last_left go left, and those with also_left. A split of categories has
// a set instead.
struct Cut {
  Code last_left = 0;
  Code also_left = 0;
  bool by_set = false;
  bool missing_left = false;
  CodeSet goes_left;

  // Tells where a code goes that is a number.
  bool takes_left(Code code) const { return code <= last_left || code == also_left; }
};

// Finds the range of the first `count` codes. Up to the next multiple of kWord the codes must repeat others.
inline CodeRange find_range(const Code* codes, std::size_t count, bool may_miss, Code missing) {
  Code least = 255;
  Code largest = 0;
  bool has_missing = false;
#if defined(__SSE2__)
  constexpr std::size_t kLanes = 16;
  __m128i low = _mm_set1_epi8(-1);
  __m128i high = _mm_setzero_si128();
  __m128i any = _mm_setzero_si128();
  const __m128i gap = _mm_set1_epi8(static_cast<char>(missing));
  for (std::size_t i = 0; i < count; i += kLanes) {
    __m128i code = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i));
    low = _mm_min_epu8(low, code);
    if (may_miss) {
      const __m128i is_missing = _mm_cmpeq_epi8(code, gap);
      any = _mm_or_si128(any, is_missing);
      code = _mm_andnot_si128(is_missing, code);
    }
    high = _mm_max_epu8(high, code);
  }
  low = _mm_min_epu8(low, _mm_srli_si128(low, 8));
  low = _mm_min_epu8(low, _mm_srli_si128(low, 4));
  low = _mm_min_epu8(low, _mm_srli_si128(low, 2));
  low = _mm_min_epu8(low, _mm_srli_si128(low, 1));
  high = _mm_max_epu8(high, _mm_srli_si128(high, 8));
  high = _mm_max_epu8(high, _mm_srli_si128(high, 4));
  high = _mm_max_epu8(high, _mm_srli_si128(high, 2));
  high = _mm_max_epu8(high, _mm_srli_si128(high, 1));
  least = static_cast<Code>(_mm_cvtsi128_si32(low));
  largest = static_cast<Code>(_mm_cvtsi128_si32(high));
  has_missing = _mm_movemask_epi8(any) != 0;
#else
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_missing = may_miss && codes[i] == missing;
    least = std::min(least, codes[i]);
    largest = is_missing ? largest : std::max(largest, codes[i]);
    has_missing |= is_missing;
  }
#endif
  return {least, largest, !(may_miss && least == missing), has_missing};
}

// Sets a bit for each of kWord codes that goes left.
__attribute__((always_inline)) inline std::uint64_t mark_word(const Code* codes, const Cut& cut) {
  std::uint64_t bits = 0;
#if defined(__SSE2__)
  constexpr std::size_t kLanes = 16;
  const __m128i last = _mm_set1_epi8(static_cast<char>(cut.last_left));
  const __m128i also = _mm_set1_epi8(static_cast<char>(cut.also_left));
  for (std::size_t i = 0; i < kWord; i += kLanes) {
    const __m128i code = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i));
    const __m128i left = _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(code, last), code), _mm_cmpeq_epi8(code, also));
    bits |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(left))) << i;
  }
#else
  for (std::size_t i = 0; i < kWord; ++i) {
    bits |= static_cast<std::uint64_t>((codes[i] <= cut.last_left) | (codes[i] == cut.also_left)) << i;
  }
#endif
  return bits;
}

// The bits tell which of a node's rows go left, and `before` how many do before each word of bits.
struct Marks {
  explicit Marks(std::size_t rows) : bits(rows / kWord + 1), before(rows / kWord + 1) {}

  std::vector<std::uint64_t> bits;
  std::vector<std::uint32_t> before;
};

// Marks the rows that go left and returns their number. There is always a word after the last row, perhaps an empty
// one, so that a class may end where a word begins.
__attribute__((always_inline)) inline std::uint32_t mark(const Code* codes, std::size_t count, const Cut& cut,
                                                         Marks& marks) {
  std::uint32_t sum = 0;
  const std::size_t words = count / kWord + 1;
  for (std::size_t word = 0; word < words; ++word) {
    const Code* some = codes + word * kWord;
    const std::size_t rows = std::min(kWord, count - word * kWord);
    std::uint64_t bits = 0;
    if (cut.by_set) {
      for (std::size_t i = 0; i < rows; ++i) bits |= static_cast<std::uint64_t>(cut.goes_left.has(some[i])) << i;
    } else if (rows > 0) {
      bits = mark_word(some, cut) & (~std::uint64_t{0} >> (kWord - rows));
    }
    marks.bits[word] = bits;
    marks.before[word] = sum;
    sum += static_cast<std::uint32_t>(__builtin_popcountll(bits));
  }
  return sum;
}

// Counts the marked rows of each class.
__attribute__((always_inline)) inline void count(const Marks& marks, const ClassRows* classes, std::size_t class_count,
                                                 std::uint32_t* left) {
  std::uint32_t last = 0;
  std::size_t end = 0;
  for (std::size_t k = 0; k < class_count; ++k) {
    end += classes[k].rows;
    const std::uint64_t earlier = (std::uint64_t{1} << (end % kWord)) - 1;
    const std::uint64_t bits = marks.bits[end / kWord] & earlier;
    const std::uint32_t next = marks.before[end / kWord] + static_cast<std::uint32_t>(__builtin_popcountll(bits));
    left[k] = next - last;
    last = next;
  }
}

#if defined(__x86_64__)
__attribute__((target("popcnt"))) inline std::uint32_t mark_by_popcnt(const Code* codes, std::size_t count,
                                                                      const Cut& cut, Marks& marks) {
  return mark(codes, count, cut, marks);
}
__attribute__((target("popcnt"))) inline void count_by_popcnt(const Marks& marks, const ClassRows* classes,
                                                              std::size_t class_count, std::uint32_t* left) {
  count(marks, classes, class_count, left);
}

// Tells whether this machine counts bits in one instruction, as all do that were built since 2008.
inline bool has_popcnt() {
  static const bool has = __builtin_cpu_supports("popcnt");
  return has;
}
#endif

inline std::uint32_t mark_quickly(const Code* codes, std::size_t count, const Cut& cut, Marks& marks) {
#if defined(__x86_64__)
  if (has_popcnt()) return mark_by_popcnt(codes, count, cut, marks);
#endif
  return mark(codes, count, cut, marks);
}

inline void count_quickly(const Marks& marks, const ClassRows* classes, std::size_t class_count, std::uint32_t* left) {
#if defined(__x86_64__)
  if (has_popcnt()) return count_by_popcnt(marks, classes, class_count, left);
#endif
  count(marks, classes, class_count, left);
}

}  // namespace untwist::randomised
