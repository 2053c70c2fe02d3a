// Draws the rows, the columns and the splits of a round, by hashes alone: neither threads nor the order of the rows
// have a say.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "hashing.hpp"
#include "settings.hpp"

namespace untwist {

// Every round has a key of its own, by which it draws.
inline std::uint64_t key_of_round(const TreeGrowth& growth, std::uint64_t round) {
  return mix(growth.seed ^ mix(round));
}

// Returns by what a column is drawn, the smallest first: an exponential variable over its weight, so that chances are
// in proportion to weights. Those of equal weights are in the order of their hashes.
inline double find_place_in_draw(std::uint64_t hash, double weight) {
  constexpr int kDroppedBits = 11;  // A double holds 53 of the 64 bits.
  const double share = std::ldexp(static_cast<double>(hash >> kDroppedBits), kDroppedBits - 64);
  return -std::log1p(-share) / weight;
}

// Keeps the smallest so many entries, in the order that they have.
template <typename Entry>
void keep_smallest(std::vector<Entry>& entries, std::size_t count) {
  if (count >= entries.size()) return;
  auto sorted = entries;
  const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(sorted.begin(), last, sorted.end());
  const auto is_larger = [&](const Entry& entry) { return *last < entry; };
  entries.erase(std::remove_if(entries.begin(), entries.end(), is_larger), entries.end());
}

// Draws the columns of a round: of those that vary the ones with the smallest hashes of their place, over their weights
// where they have some.
inline std::vector<std::uint32_t> draw_columns(const TreeGrowth& growth, const std::vector<std::uint32_t>& varying,
                                               std::uint64_t key) {
  // This number keeps the draw of the columns apart from that of the rows, which has the same key.
  constexpr std::uint64_t kColumnSalt = 0x5851F42D4C957F2DULL;
  if (growth.max_features >= 1.0 || (varying.size() < 2 && growth.feature_weights.empty())) return varying;
  const std::uint64_t column_key = mix(key ^ kColumnSalt);
  const double wanted = std::ceil(growth.max_features * static_cast<double>(varying.size()));
  const std::size_t count = std::max<std::size_t>(1, static_cast<std::size_t>(wanted));
  std::vector<std::uint32_t> drawn;
  if (growth.feature_weights.empty()) {
    std::vector<std::uint64_t> hash_of_place(varying.size());
    for (std::size_t i = 0; i < varying.size(); ++i) hash_of_place[i] = mix(column_key ^ mix(i));
    // Mixing is one to one, so that no two places have the same hash and exactly `count` are drawn.
    std::vector<std::uint64_t> sorted = hash_of_place;
    const auto largest_drawn = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(count, sorted.size()) - 1);
    std::nth_element(sorted.begin(), largest_drawn, sorted.end());
    for (std::size_t i = 0; i < varying.size(); ++i) {
      if (hash_of_place[i] <= *largest_drawn) drawn.push_back(varying[i]);
    }
    return drawn;
  }
  struct Place {
    double weighted;
    std::uint64_t hash;
    std::uint32_t column;
    bool operator<(const Place& other) const {
      return std::tie(weighted, hash, column) < std::tie(other.weighted, other.hash, other.column);
    }
  };
  std::vector<Place> hashed;
  for (std::size_t i = 0; i < varying.size(); ++i) {
    const std::uint64_t hash = mix(column_key ^ mix(i));
    const double weight = growth.feature_weights[varying[i]];
    if (weight > 0.0) hashed.push_back({find_place_in_draw(hash, weight), hash, varying[i]});
  }
  keep_smallest(hashed, count);
  for (const Place& place : hashed) drawn.push_back(place.column);
  return drawn;
}

// A split of a column is drawn by this hash. Nothing means that all splits of the column are candidates.
using SplitDraw = std::optional<std::uint64_t>;

// Draws the splits of a tree, if its growth asks for that.
class SplitDraws {
 public:
  SplitDraws(const TreeGrowth& growth, std::uint64_t key) : extra_(growth.extra), root_key_(mix(key ^ kSplitSalt)) {}

  // Returns what the root of the tree draws by. Those of other nodes follow from it.
  std::uint64_t root_key() const { return root_key_; }

  // Returns the draw of a node for the column at a place among those of the tree.
  SplitDraw draw(std::uint64_t node_key, std::size_t place) const {
    return extra_ ? SplitDraw(mix(node_key ^ mix(place))) : std::nullopt;
  }

 private:
  // This number keeps the draws of splits apart from those of rows and columns, which have the same key.
  static constexpr std::uint64_t kSplitSalt = 0x73706C6974206F66ULL;

  bool extra_;
  std::uint64_t root_key_;
};

// A row is drawn if its hash, mixed with the key of the round, is below the limit.
struct RowDraw {
  RowDraw(const TreeGrowth& growth, const std::vector<std::uint64_t>& row_hashes, std::uint64_t key)
      : hashes(row_hashes.data()),
        key(key),
        limit(static_cast<std::uint64_t>(std::ldexp(growth.subsample, kHashBits))) {}

  bool has(std::size_t row) const { return mix(hashes[row] ^ key) < limit; }

  static constexpr int kHashBits = 64;

  const std::uint64_t* hashes;
  std::uint64_t key;
  std::uint64_t limit;
};

}  // namespace untwist
