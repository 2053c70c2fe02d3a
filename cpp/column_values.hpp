// Sorts the distinct values of a column, each with the weight of its rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "hashing.hpp"

namespace untwist {

// A key is a whole number that stands for a floating-point number of the same width.
template <typename Real>
struct Ordered;
template <>
struct Ordered<float> {
  using Key = std::uint32_t;
};
template <>
struct Ordered<double> {
  using Key = std::uint64_t;
};

// Makes a whole number of a floating-point number, in the same order. -0.0 counts as 0.0.
template <typename Real, typename Key = typename Ordered<Real>::Key>
Key to_key(Real value) {
  const Real plain = value + Real{0};
  Key bits;
  std::memcpy(&bits, &plain, sizeof bits);
  constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);
  return bits & sign ? ~bits : bits | sign;
}

// Returns the floating-point number of a key.
template <typename Real, typename Key = typename Ordered<Real>::Key>
Real from_key(Key key) {
  constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);
  const Key bits = key & sign ? key ^ sign : ~key;
  Real value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename Key>
struct WeightedKey {
  Key key;
  std::uint64_t weight;
};

// Sorts by key, one digit at a time from the lowest up. A digit that is the same in all keys costs one look.
template <typename Key>
void radix_sort(std::vector<WeightedKey<Key>>& entries, std::vector<WeightedKey<Key>>& spare) {
  // Fewer entries than this are compared with each other before the counts of a digit are cleared.
  constexpr std::size_t kFewEntries = 256;
  if (entries.size() < kFewEntries) {
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    return;
  }
  // Digits of 11 bits sort 32 bits in three passes and 64 bits in six, with counts that fit into the first cache.
  constexpr int kDigitBits = 11;
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  spare.resize(entries.size());
  for (int shift = 0; shift < static_cast<int>(8 * sizeof(Key)); shift += kDigitBits) {
    std::array<std::size_t, kDigits> start{};
    for (const auto& entry : entries) ++start[entry.key >> shift & (kDigits - 1)];
    if (std::find(start.begin(), start.end(), entries.size()) != start.end()) continue;
    std::size_t sum = 0;
    for (auto& count : start) sum += std::exchange(count, sum);
    for (const auto& entry : entries) spare[start[entry.key >> shift & (kDigits - 1)]++] = entry;
    entries.swap(spare);
  }
}

// Makes one entry of neighbours with the same key.
template <typename Key>
void merge_equal(std::vector<WeightedKey<Key>>& entries) {
  std::size_t distinct = 0;
  for (const auto& entry : entries) {
    if (distinct > 0 && entries[distinct - 1].key == entry.key) {
      entries[distinct - 1].weight += entry.weight;
    } else {
      entries[distinct++] = entry;
    }
  }
  entries.resize(distinct);
}

// Keeps up to kMaxValues distinct values of a column, each with all of its weight, for columns that are too long to
// sort. If there are more, those with the smallest hashes are kept. None of these is ever crowded out, so neither the
// order of the rows nor the order of merging matters.
class DrawnValues {
 public:
  using Entry = WeightedKey<std::uint64_t>;

  // This is many times the largest number of bins, so a column with few values is seen whole.
  static constexpr std::size_t kMaxValues = 2048;

  void add(double value, std::uint64_t weight) {
    const std::uint64_t hash = hash_value(value);
    if (!takes(hash)) return;
    Entry& slot = find_slot(hash, to_key(value));
    slot.key = to_key(value);
    count_ += slot.weight == 0;
    slot.weight += weight;
    if (2 * count_ >= slots_.size()) make_room();
  }

  // Adds all that another one has drawn.
  void add_all(const DrawnValues& other) {
    for (const Entry& entry : other.slots_) {
      if (entry.weight > 0) add(from_key<double>(entry.key), entry.weight);
    }
  }

  // Tells whether a value with this hash would be kept.
  bool takes(std::uint64_t hash) const { return hash <= largest_hash_; }

  // Returns the entries in the order of their values.
  std::vector<Entry> sort() const {
    auto values = draw();
    std::sort(values.begin(), values.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    return values;
  }

 private:
  // The values that stay have small hashes, so their highest bits are all alike and cannot choose a slot.
  static constexpr int kSlotShift = 20;

  // The table begins small, as most columns that come here have few values, and doubles when it is half full.
  static constexpr std::size_t kFirstSlots = 64;

  static std::uint64_t hash_key(std::uint64_t key) { return hash_value(from_key<double>(key)); }

  Entry& find_slot(std::uint64_t hash, std::uint64_t key) {
    std::size_t slot = hash >> kSlotShift & (slots_.size() - 1);
    while (slots_[slot].weight > 0 && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
    return slots_[slot];
  }

  // Returns the kMaxValues entries with the smallest hashes, that with the largest of these last, or all entries if
  // there are no more.
  std::vector<Entry> draw() const {
    std::vector<Entry> values;
    std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(values),
                 [](const Entry& slot) { return slot.weight > 0; });
    if (values.size() <= kMaxValues) return values;
    std::nth_element(values.begin(), values.begin() + (kMaxValues - 1), values.end(),
                     [](const Entry& a, const Entry& b) { return hash_key(a.key) < hash_key(b.key); });
    values.resize(kMaxValues);
    return values;
  }

  void make_room() {
    const auto values = draw();
    const bool some_left_out = values.size() < count_;
    if (some_left_out) largest_hash_ = hash_key(values.back().key);
    slots_.assign(some_left_out ? slots_.size() : 2 * slots_.size(), {});
    for (const Entry& entry : values) find_slot(hash_key(entry.key), entry.key) = entry;
    count_ = values.size();
  }

  std::vector<Entry> slots_ = std::vector<Entry>(kFirstSlots);  // An entry without weight is an empty slot.
  std::size_t count_ = 0;
  std::uint64_t largest_hash_ = ~std::uint64_t{0};  // Values with a larger hash are not kept.
};

// Adds drawn values to values in order. Of a value that is in both the drawn one stays, as its weight is complete.
template <typename Real, typename Key>
void join(std::vector<WeightedKey<Key>>& values, const DrawnValues& drawn) {
  std::vector<WeightedKey<Key>> all;
  for (const auto& entry : drawn.sort()) {
    all.push_back({to_key(static_cast<Real>(from_key<double>(entry.key))), entry.weight});
  }
  all.insert(all.end(), values.begin(), values.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  const auto end = std::unique(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.key == b.key; });
  all.erase(end, all.end());
  values = std::move(all);
}

}  // namespace untwist
