// Lists the rows that grow a tree, those of each class together, and cuts the list into pieces for the threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "threads.hpp"

namespace untwist {

using Row = std::uint32_t;
using Sum = std::uint64_t;

// The rows of all other classes are the negative side of a round.
inline constexpr std::size_t kNegative = 0;

// The rows of the positive class are the positive side of a round.
inline constexpr std::size_t kPositive = 1;

// Each side has the sum of its weights.
using ClassWeights = std::array<Sum, 2>;

inline double difference(const ClassWeights& weight) {
  return static_cast<double>(static_cast<std::int64_t>(weight[kPositive] - weight[kNegative]));
}
inline double total(const ClassWeights& weight) { return static_cast<double>(weight[0] + weight[1]); }
inline ClassWeights operator+(const ClassWeights& a, const ClassWeights& b) { return {a[0] + b[0], a[1] + b[1]}; }
inline ClassWeights operator-(const ClassWeights& a, const ClassWeights& b) { return {a[0] - b[0], a[1] - b[1]}; }

// An entry has a row with its boosting weight, so that to sum up means to read weights in order.
struct Entry {
  Row row;
  std::uint32_t weight;
};

// The rows of a node are a range of the list on each side.
struct NodeRows {
  std::array<std::size_t, 2> first{}, last{};

  std::size_t size() const { return last[0] - first[0] + last[1] - first[1]; }
};

// These rows have a weight in this round. Growing a tree moves entries within their side and changes nothing else. No
// sum depends on their order, so a tree that was given up can be grown again from the same rows.
struct RoundRows {
  explicit RoundRows(std::size_t most) : entries(most), scratch(most) {}

  NodeRows all;
  ClassWeights weight{};
  double sample_weight = 0.0;  // The rows that were drawn have this sum, even those without a boosting weight.
  std::vector<Entry> entries;  // The entries of the negative side come first.
  std::vector<Entry> scratch;  // Entries are gathered here before they go to their new places.
};

// A piece has some rows of one side of one node. A thread takes one piece at a time.
struct Piece {
  std::size_t owner;  // The node has this place in a list of nodes.
  std::size_t side;
  std::size_t first, last;
};

// A piece has at most so many rows, whose codes stay in the second cache.
inline constexpr std::size_t kPieceRows = 2048;

// Pieces have a multiple of so many rows, which are done in a microsecond or less.
inline constexpr std::size_t kPieceStep = 256;

// Returns how many rows a piece should have for all threads to be done at about the same time.
inline std::size_t choose_piece_rows(std::size_t rows, const ThreadPool& pool) {
  constexpr std::size_t kPiecesPerThread = 4;
  const std::size_t pieces = kPiecesPerThread * static_cast<std::size_t>(pool.size());
  return std::clamp(rows / pieces / kPieceStep * kPieceStep, kPieceStep, kPieceRows);
}

// Appends the pieces of a range of rows, each of up to `size` rows.
template <typename SomePiece>
void cut(std::vector<SomePiece>& pieces, std::size_t owner, std::size_t side, std::size_t first, std::size_t last,
         std::size_t size) {
  for (; first < last; first += size) {
    SomePiece piece{};
    static_cast<Piece&>(piece) = {owner, side, first, std::min(last, first + size)};
    pieces.push_back(piece);
  }
}

// Appends the pieces of a node's rows.
template <typename SomePiece>
void cut(std::vector<SomePiece>& pieces, std::size_t owner, const NodeRows& rows, std::size_t size) {
  for (std::size_t side = 0; side < 2; ++side) cut(pieces, owner, side, rows.first[side], rows.last[side], size);
}

// Calls job(thread, piece) for all pieces.
template <typename SomePiece, typename Job>
void for_each_piece(ThreadPool& pool, std::vector<SomePiece>& pieces, const Job& job) {
  // Fewer rows than this are done before another thread has woken up.
  constexpr std::size_t kFewRows = 512;
  std::size_t rows = 0;
  for (const SomePiece& piece : pieces) rows += piece.last - piece.first;
  pool.chunks(pieces.size(), rows < kFewRows ? pieces.size() : 1, [&](int thread, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) job(thread, pieces[i]);
  });
}

}  // namespace untwist
