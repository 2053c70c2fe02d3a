// Finds the loss of the validation rows after each round.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows.hpp"
#include "sample_weights.hpp"
#include "threads.hpp"

namespace untwist {

// Both numbers are weighted means over the validation rows.
struct ValidationLoss {
  double log_loss;  // It is that of the rows' own labels under the twisted posterior.
  double error;     // It is the share of wrong signs.
};

// This is how a validation row fares.
struct Verdict {
  double posterior;  // It is the twisted posterior of the row's own label.
  bool right;        // The row's own label is the one that is guessed.
};

// Sums are whole numbers here too, so the order of the rows does not matter.
class ValidationRows {
 public:
  // `weight` is in the order of the given data, and `order` tells where each row of the dataset was there.
  ValidationRows(const std::vector<double>& weight, const std::vector<std::uint32_t>& order, double posterior_floor)
      : posterior_floor_(posterior_floor) {
    const int scale = scale_exponent(largest_weight(weight.data(), weight.size()));
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const double share = std::ldexp(weight[order[i]], -scale);
      if (share > 0.0) {
        entries_.push_back({static_cast<Row>(i), static_cast<std::uint32_t>(std::llround(share * kWeightUnit))});
      }
    }
  }

  bool empty() const { return entries_.empty(); }

  // Returns the loss where judge(entries, count, verdicts) tells how each of up to kPieceRows rows fares.
  template <typename Judge>
  ValidationLoss find_loss(const Judge& judge, ThreadPool& pool) const {
    std::vector<Sums> sums(static_cast<std::size_t>(pool.size()));
    pool.chunks(
        entries_.size(), choose_piece_rows(entries_.size(), pool), [&](int thread, std::size_t begin, std::size_t end) {
          Sums& sum = sums[static_cast<std::size_t>(thread)];
          std::vector<Verdict> verdicts(std::min(kPieceRows, end - begin));
          for (std::size_t first = begin; first < end; first += kPieceRows) {
            const Entry* entries = entries_.data() + first;
            const std::size_t count = std::min(kPieceRows, end - first);
            judge(entries, count, verdicts.data());
            for (std::size_t i = 0; i < count; ++i) {
              const double p = std::min(std::max(verdicts[i].posterior, posterior_floor_), 1.0 - posterior_floor_);
              const double loss = -std::log(p);
              sum.loss += static_cast<WideSum>(std::llround(loss * kLossUnit)) * entries[i].weight;
              sum.wrong += verdicts[i].right ? 0 : entries[i].weight;
              sum.weight += entries[i].weight;
            }
          }
        });
    Sums all;
    for (const Sums& sum : sums) {
      all.loss += sum.loss;
      all.wrong += sum.wrong;
      all.weight += sum.weight;
    }
    const double weight = static_cast<double>(all.weight);
    return {static_cast<double>(all.loss) / kLossUnit / weight, static_cast<double>(all.wrong) / weight};
  }

 private:
  // The product of a loss and a weight has up to 50 bits, so the sum of many may need more than 64.
  using WideSum = unsigned __int128;

  struct Sums {
    WideSum loss = 0, wrong = 0, weight = 0;
  };

  // Weights are whole multiples of 2^-17 of a power of two at or just above the largest.
  static constexpr double kWeightUnit = 0x1p17;

  // A loss is a whole multiple of 2^-20, about a millionth.
  static constexpr double kLossUnit = 0x1p20;

  double posterior_floor_;
  std::vector<Entry> entries_;
};

}  // namespace untwist
