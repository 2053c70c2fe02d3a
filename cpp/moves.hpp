// Sends many rows at once through a tree of a forest, whose splits are moves.
//
// Every row stands in a slot, at first all of them in slot 0. A move compares a column of codes, 16 or 32 rows to an
// instruction, and sends the rows of one slot that go right to a new slot. In the end a slot is a leaf. That beats
// walking down row by row by far, even though each row meets every split of the tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace untwist {

// Moves the rows of slot `from` whose masked code is above the threshold to slot `to`. The numbers of slots are bytes,
// taken as signed here because vectors of signed bytes are what the comparisons need.
struct Move {
  std::uint32_t column;
  std::int8_t mask, threshold;
  std::int8_t from = 0, to = 0;
};

// Every move makes a slot, and a byte tells 256 slots apart, the first of which needs no move.
inline constexpr std::size_t kMaxMoves = 255;

// The codes of so many rows are kept at a time, as codes[column][row]. It is a multiple of what find_slots takes at
// once.
inline constexpr std::size_t kCodedRows = 256;

// Finds the slots of the first `rows` rows after all moves. The slots are kept in kRegisters registers of `width` bytes
// meanwhile.
template <int width>
__attribute__((always_inline)) inline void find_slots(const Move* moves, std::size_t count, const std::int8_t* codes,
                                                      std::size_t rows, std::uint8_t* slots) {
  // This is half of the 16 vector registers that every x86-64 machine has. The others hold the operands.
  constexpr int kRegisters = 8;
  typedef std::int8_t Lanes __attribute__((vector_size(width)));
  Lanes slot[kRegisters];
  static_assert(kCodedRows % sizeof slot == 0, "the last rows of a block must be whole registers");
  for (std::size_t start = 0; start < rows; start += sizeof slot) {
    for (Lanes& each : slot) each = Lanes{};
    for (std::size_t i = 0; i < count; ++i) {
      const Move& move = moves[i];
      const Lanes mask = Lanes{} + move.mask;
      const Lanes threshold = Lanes{} + move.threshold;
      const Lanes from = Lanes{} + move.from;
      const Lanes to = Lanes{} + move.to;
      const std::int8_t* column = codes + move.column * kCodedRows + start;
      for (Lanes& each : slot) {
        Lanes code;
        std::memcpy(&code, column, sizeof code);
        column += sizeof code;
        each = ((each == from) & ((code & mask) > threshold)) ? to : each;
      }
    }
    std::memcpy(slots + start, slot, sizeof slot);
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) inline void find_slots_avx2(const Move* moves, std::size_t count,
                                                            const std::int8_t* codes, std::size_t rows,
                                                            std::uint8_t* slots) {
  find_slots<32>(moves, count, codes, rows, slots);
}
#endif

// Finds slots with the widest registers that pay off. The width is chosen by hand, because left to itself the compiler
// keeps the slots in memory, if it finds vectors at all.
inline void find_slots(const Move* moves, std::size_t count, const std::int8_t* codes, std::size_t rows,
                       std::uint8_t* slots) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return find_slots_avx2(moves, count, codes, rows, slots);
#endif
  find_slots<16>(moves, count, codes, rows, slots);
}

}  // namespace untwist
