// Computes the softmax of the scores of several classes, and from it the gradient of the multi-class alpha-loss.
//
// With p = softmax(H) the loss of a row of class y is alpha/(alpha-1) (1 - p_y^r), r = 1 - 1/alpha, or -ln p_y at alpha
// = 1. Its gradient is v (p - e_y) with v = p_y^r. Rows come in blocks, class by class within a block, so that all rows
// of a block are computed by the same vector instructions, and no sum depends on the width of the registers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "alpha_link.hpp"
#include "vectorised.hpp"
#include "weights.hpp"

namespace untwist {

// So many rows make a block: they fill the widest registers, and all their classes stay in a near cache.
inline constexpr std::size_t kBlockRows = 64;

// Lower exponents count as this, which single precision can still tell from minus infinity.
inline constexpr double kLowestExponent = -1e3;

// A number of each row of a block.
template <typename T>
using OfRows = std::array<T, kBlockRows>;

// Writes exp(factor * (H_k - max H)) as [class][row], and the sum over the classes, which is at least 1.
UNTWIST_VECTORISED inline void exponentiate(const double* __restrict scores, std::size_t classes, double factor,
                                            float* __restrict shares, float* __restrict sum) {
  double top[kBlockRows];
  for (std::size_t i = 0; i < kBlockRows; ++i) top[i] = scores[i];
  for (std::size_t k = 1; k < classes; ++k) {
    const double* score = scores + k * kBlockRows;
    for (std::size_t i = 0; i < kBlockRows; ++i) top[i] = score[i] > top[i] ? score[i] : top[i];
  }
  for (std::size_t i = 0; i < kBlockRows; ++i) sum[i] = 0.0f;
  for (std::size_t k = 0; k < classes; ++k) {
    const double* score = scores + k * kBlockRows;
    float* share = shares + k * kBlockRows;
    for (std::size_t i = 0; i < kBlockRows; ++i) {
      const double below = (score[i] - top[i]) * factor;
      const float exponent = static_cast<float>(below < kLowestExponent ? kLowestExponent : below);
      share[i] = fast_exp(exponent);
      sum[i] += share[i];
    }
  }
}

// This is the emphasis v = p^r of rows whose label has the posterior p.
struct Emphasis {
  explicit Emphasis(double alpha)
      : power(static_cast<float>(inverse_clip(alpha))), size(power < 0.0f ? -power : power), is_root(alpha == 2.0) {}

  // For alpha < 1 the emphasis grows without bounds as p falls. It is held to kMost, so that no single row rules.
  UNTWIST_INLINED float operator()(float p) const {
    const float exponent = size * fast_log(p);
    const float bounded = exponent < -kLogMost ? -kLogMost : exponent;
    return power < 0.0f ? 1.0f / fast_exp(bounded) : fast_exp(exponent);
  }

  // Returns the largest emphasis that there can be.
  double most() const { return power < 0.0f ? kMost : 1.0; }

  static constexpr double kMost = 16.0;
  static constexpr float kLogMost = 2.7725887f;

  float power;  // This is r.
  float size;
  bool is_root;
};

// Writes the emphasis of posteriors.
UNTWIST_VECTORISED inline void emphasise(const Emphasis emphasis, const float* __restrict p, float* __restrict out) {
  if (emphasis.power == 0.0f) {
    for (std::size_t i = 0; i < kBlockRows; ++i) out[i] = 1.0f;
  } else if (emphasis.is_root) {
    for (std::size_t i = 0; i < kBlockRows; ++i) out[i] = std::sqrt(p[i]);
  } else {
    for (std::size_t i = 0; i < kBlockRows; ++i) out[i] = emphasis(p[i]);
  }
}

// Writes round(share * scale) as [class][row] and the sum over the classes.
UNTWIST_VECTORISED inline void round_shares(const float* __restrict shares, const float* __restrict scale,
                                            std::size_t classes, std::int32_t* __restrict out,
                                            std::int32_t* __restrict sum) {
  for (std::size_t i = 0; i < kBlockRows; ++i) sum[i] = 0;
  for (std::size_t k = 0; k < classes; ++k) {
    for (std::size_t i = 0; i < kBlockRows; ++i) {
      const std::int32_t rounded = static_cast<std::int32_t>(shares[k * kBlockRows + i] * scale[i] + 0.5f);
      out[k * kBlockRows + i] = rounded;
      sum[i] += rounded;
    }
  }
}

}  // namespace untwist
