// Makes whole numbers of sample weights, so that no sum of them depends on an order: once for the bins, once for the
// rounds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace untwist {

// Sample weights are whole multiples of 2^-32 of the power of two at or just above the largest.
inline constexpr int kSampleWeightBits = 32;

// A sample weight that is a whole number counts copies of its row. At most so many keep a histogram's 32-bit sums from
// overflowing after very few rows.
inline constexpr double kMaxCopies = 128.0;

// Returns the exponent of the power of two at or just above the largest weight. A weight divided by that power is still
// exact.
inline int scale_exponent(double largest) {
  int exponent = 0;
  const double fraction = std::frexp(largest, &exponent);
  return fraction == 0.5 ? exponent - 1 : exponent;
}

// Returns the largest weight, 0 if there are none.
inline double largest_weight(const double* weight, std::size_t count) {
  return count == 0 ? 0.0 : *std::max_element(weight, weight + count);
}

// Tells whether all weights are whole numbers, which count copies of rows.
inline bool are_whole(const std::vector<double>& weight) {
  return std::all_of(weight.begin(), weight.end(), [](double one) { return one == std::floor(one); });
}

// These sample weights place the thresholds. All rows weigh the same where none are given.
class WholeWeights {
 public:
  WholeWeights() = default;
  WholeWeights(const double* weight, std::size_t count) : WholeWeights(weight, count, largest_weight(weight, count)) {}

  // `largest` is the largest weight of all rows, some of which may come in other blocks.
  WholeWeights(const double* weight, std::size_t count, double largest) {
    const int scale = scale_exponent(largest);
    weight_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto whole = static_cast<std::uint64_t>(std::llround(std::ldexp(weight[i], kSampleWeightBits - scale)));
      // A row with a weight has a say, however small its weight.
      weight_.push_back(weight[i] > 0.0 ? std::max<std::uint64_t>(whole, 1) : 0);
    }
  }

  std::uint64_t operator[](std::size_t row) const {
    return weight_.empty() ? std::uint64_t{1} << kSampleWeightBits : weight_[row];
  }

 private:
  std::vector<std::uint64_t> weight_;
};

// These sample weights train. They are in the order of the dataset's rows, which `order` tells.
struct TrainingWeights {
  TrainingWeights(const std::vector<double>& given, const std::vector<std::uint32_t>& order)
      : rows(order.size()), total(static_cast<double>(order.size())) {
    if (given.empty()) return;
    std::uint64_t whole = 0;
    rows = 0;
    are_copies = true;
    weight.resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const double one = given[order[i]];
      weight[i] = static_cast<float>(one);
      whole += static_cast<std::uint64_t>(std::llround(std::ldexp(one, kSampleWeightBits)));
      rows += one > 0.0;
      are_copies = are_copies && one == std::floor(one);
      largest = std::max(largest, one);
    }
    total = std::ldexp(static_cast<double>(whole), -kSampleWeightBits);
  }

  // Counts the boosting weights that are rounded: one per row, or one per copy of a row.
  std::size_t roundings() const { return are_copies ? static_cast<std::size_t>(total) : rows; }

  const float* from(std::size_t row) const { return weight.empty() ? nullptr : weight.data() + row; }

  std::size_t rows;  // So many rows have a weight.
  double total;
  double largest = 1.0;

  // All weights are whole numbers. A row then has exactly so many times the fixed-point boosting weight of one copy.
  bool are_copies = false;

  std::vector<float> weight;  // Empty means 1 for all.
};

}  // namespace untwist
