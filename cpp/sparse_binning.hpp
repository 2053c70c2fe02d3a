// Bins the columns of a sparse table, of which only the listed cells are looked at: the other rows all have a 0. Bins
// and codes are those of the same table with all its zeros written out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "binning.hpp"
#include "hashing.hpp"
#include "matrix.hpp"
#include "sample_weights.hpp"
#include "sketch.hpp"
#include "threads.hpp"

namespace untwist {

// A thread takes so many sparse columns at a time.
inline constexpr std::size_t kSparseColumnsTogether = 256;

// Tells which rows place the thresholds: all that have a weight, or a sample of them where they are many. The sample is
// that of Dataset::observe, as a 0 adds nothing to the hash of its row.
template <typename Real>
class SparseSample {
 public:
  SparseSample(const SparseMatrix<Real>& X, const WholeWeights& weight) {
    std::size_t rows_with_weight = 0;
    for (std::size_t row = 0; row < X.rows; ++row) {
      rows_with_weight += weight[row] > 0;
      total_weight += weight[row];
    }
    weight_of_chosen = total_weight;
    is_sample = rows_with_weight > kSampleRows;
    if (!is_sample) return;
    std::vector<std::uint64_t> sums(X.rows, 0);
    std::uint64_t constant_sum = 0;
    for (std::size_t column = 0; column < X.columns; ++column) {
      std::size_t listed = 0;
      std::uint64_t first_hash = 0;
      bool varies = false;
      for (auto i = X.start[column]; i < X.start[column + 1]; ++i) {
        const auto row = static_cast<std::size_t>(X.row[i]);
        const std::uint64_t hash = hash_value(X.value[i]);
        sums[row] += hash;
        if (weight[row] == 0) continue;
        if (listed++ == 0) first_hash = hash;
        varies |= hash != first_hash;
      }
      varies |= listed < rows_with_weight && first_hash != 0;
      if (!varies) constant_sum += first_hash;
    }
    const std::uint64_t largest_hash = largest_sampled_hash(rows_with_weight);
    chosen_.resize(X.rows);
    weight_of_chosen = 0;
    for (std::size_t row = 0; row < X.rows; ++row) {
      chosen_[row] = weight[row] > 0 && mix(sums[row] - constant_sum) <= largest_hash;
      if (chosen_[row]) weight_of_chosen += weight[row];
    }
  }

  bool has(std::size_t row) const { return !is_sample || chosen_[row]; }

  bool is_sample = false;
  std::uint64_t total_weight = 0;
  std::uint64_t weight_of_chosen = 0;

 private:
  std::vector<char> chosen_;
};

// Finds the bins of one column, and notes what kinds of values it has.
template <typename Real>
Column find_sparse_bins(const SparseMatrix<Real>& X, std::size_t index, const WholeWeights& weight,
                        const SparseSample<Real>& sample, int max_bins) {
  std::vector<WeightedKey<typename Ordered<Real>::Key>> values, spare;
  Column column;
  std::uint64_t zero_weight = sample.weight_of_chosen;
  std::uint64_t zero_weight_of_all = sample.total_weight;
  for (auto i = X.start[index]; i < X.start[index + 1]; ++i) {
    const auto row = static_cast<std::size_t>(X.row[i]);
    const bool missing = std::isnan(X.value[i]);
    zero_weight_of_all -= weight[row];
    if (missing) column.seen |= Column::kMissing;
    if (weight[row] > 0) column.seen |= missing ? Column::kMissingWithWeight : Column::kKnownWithWeight;
    if (weight[row] == 0 || !sample.has(row)) continue;
    zero_weight -= weight[row];
    if (!missing) values.push_back({to_key(X.value[i]), weight[row]});
  }
  if (zero_weight > 0) values.push_back({to_key(Real{0}), zero_weight});
  if (zero_weight_of_all > 0) column.seen |= Column::kKnownWithWeight;
  radix_sort(values, spare);
  merge_equal(values);
  if (sample.is_sample && values.size() <= static_cast<std::size_t>(max_bins)) {
    DrawnValues drawn;
    for (auto i = X.start[index]; i < X.start[index + 1]; ++i) {
      const std::uint64_t one = weight[static_cast<std::size_t>(X.row[i])];
      if (!std::isnan(X.value[i]) && one > 0) drawn.add(static_cast<double>(X.value[i]), one);
    }
    if (zero_weight_of_all > 0) drawn.add(0.0, zero_weight_of_all);
    join<Real>(values, drawn);
  }
  column.thresholds = place_thresholds<Real>(values, max_bins);
  column.missing = (column.seen & Column::kMissing) != 0;
  const bool some_missing = (column.seen & Column::kMissingWithWeight) && (column.seen & Column::kKnownWithWeight);
  column.varies = values.size() > 1 || some_missing;
  return column;
}

// Returns the code of a value in a column of numbers.
inline Code find_code(const Column& column, double value) {
  if (std::isnan(value)) return column.missing_code();
  const auto found = std::lower_bound(column.thresholds.begin(), column.thresholds.end(), value);
  return static_cast<Code>(found - column.thresholds.begin());
}

}  // namespace untwist
