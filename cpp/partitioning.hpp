// Sends the rows of nodes that split to their children.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "dataset.hpp"
#include "rows.hpp"
#include "threads.hpp"
#include "tree.hpp"

namespace untwist {

// A division is a node that splits, and tells where the rows of its children are afterwards.
struct Division {
  NodeRows rows;
  CodeColumn column;
  CodeSet goes_left;
  NodeRows left, right;
};

// A divided piece has some rows of such a node.
struct DividedPiece : Piece {
  std::size_t count_left;
  std::size_t to_left, to_right;  // Its entries go to these places.
};

// Packs the entries of a piece that go left at its start in the scratch list, and the others at its end.
inline void divide_piece(RoundRows& rows, const Division& division, DividedPiece& piece) {
  const CodeSet goes_left = division.goes_left;
  const CodeColumn column = division.column;
  const Entry* entries = rows.entries.data();
  Entry* left = rows.scratch.data() + piece.first;
  Entry* right = rows.scratch.data() + piece.last;  // This end is filled backwards, as no order matters.
  for (std::size_t i = piece.first; i < piece.last; ++i) {
    const Entry entry = entries[i];
    const bool is_left = goes_left.has(column[entry.row]);
    *left = entry;
    right[-1] = entry;
    left += is_left;
    right -= !is_left;
  }
  piece.count_left = static_cast<std::size_t>(left - rows.scratch.data()) - piece.first;
}

// Finds the ranges of the children and the places of all pieces in them. Pieces of one side of one node are neighbours.
inline void place_divided_pieces(std::vector<Division>& divisions, std::vector<DividedPiece>& pieces) {
  for (std::size_t start = 0; start < pieces.size();) {
    const std::size_t owner = pieces[start].owner;
    const std::size_t side = pieces[start].side;
    std::size_t end = start;
    std::size_t count_left = 0;
    for (; end < pieces.size() && pieces[end].owner == owner && pieces[end].side == side; ++end) {
      count_left += pieces[end].count_left;
    }
    Division& division = divisions[owner];
    std::size_t to_left = division.rows.first[side];
    std::size_t to_right = to_left + count_left;
    division.left.first[side] = to_left;
    division.left.last[side] = to_right;
    division.right.first[side] = to_right;
    division.right.last[side] = division.rows.last[side];
    for (; start < end; ++start) {
      DividedPiece& piece = pieces[start];
      piece.to_left = to_left;
      piece.to_right = to_right;
      to_left += piece.count_left;
      to_right += piece.last - piece.first - piece.count_left;
    }
  }
}

// Moves the rows of every node so that those of its left child come first on each side, and notes the ranges.
inline void partition(RoundRows& rows, std::vector<Division>& divisions, ThreadPool& pool) {
  std::size_t count = 0;
  for (const Division& division : divisions) count += division.rows.size();
  const std::size_t piece_rows = choose_piece_rows(count, pool);
  std::vector<DividedPiece> pieces;
  for (std::size_t i = 0; i < divisions.size(); ++i) cut(pieces, i, divisions[i].rows, piece_rows);
  for_each_piece(pool, pieces, [&](int, DividedPiece& piece) { divide_piece(rows, divisions[piece.owner], piece); });
  place_divided_pieces(divisions, pieces);
  for_each_piece(pool, pieces, [&](int, const DividedPiece& piece) {
    const Entry* from = rows.scratch.data() + piece.first;
    const Entry* end = rows.scratch.data() + piece.last;
    std::copy(from, from + piece.count_left, rows.entries.data() + piece.to_left);
    std::copy(from + piece.count_left, end, rows.entries.data() + piece.to_right);
  });
}

}  // namespace untwist
