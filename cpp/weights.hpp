// Computes boosting weights in fixed point: round(unit * weight(margin) * sample weight), where unit is a power of two.
//
// The clipped link of the alpha-loss is computed in single precision, by polynomials that the compiler can vectorise.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "alpha_link.hpp"
#include "settings.hpp"
#include "vectorised.hpp"

namespace untwist {

// The fixed point has at least so many bits. A histogram adds up at most 2^14 weights of 2^17 in 32 bits.
inline constexpr int kMinWeightBits = 17;

// The fixed point has at most so many bits, which is all that single precision has to give.
inline constexpr int kMaxWeightBits = 24;

// All weights together must stay below this, for sums in signed numbers of 32 bits.
inline constexpr double kSumLimit = 0x1p31;

// Returns the largest possible sum of all weights, each rounded up by half a unit, given the total sample weight.
inline double largest_sum(double total_weight, std::size_t rows, int bits) {
  return std::ldexp(total_weight, bits) + 0.5 * static_cast<double>(rows);
}

// Returns the most bits of the fixed point for which the sum of all weights stays within 32 bits, or the fewest where
// none does.
inline int weight_bits(double total_weight, std::size_t rows) {
  int bits = kMaxWeightBits;
  while (bits > kMinWeightBits && largest_sum(total_weight, rows, bits) >= kSumLimit) --bits;
  return bits;
}

inline bool fits_32_bits(double total_weight, std::size_t rows) {
  return largest_sum(total_weight, rows, weight_bits(total_weight, rows)) < kSumLimit;
}

// Returns 2 + 2/3 s + 2/5 s^2 + 2/7 s^3 + 2/9 s^4: with s = t^2, t times this series is log((1 + t) / (1 - t)).
UNTWIST_INLINED float log_series(float s) {
  return 2.0f + s * (0.66666667f + s * (0.4f + s * (0.28571430f + s * 0.2222221f)));
}

// Returns log(x) for normal x > 0.
UNTWIST_INLINED float fast_log(float x) {
  constexpr std::int32_t kSqrtHalfBits = 0x3F3504F3;  // These are the bits of sqrt(1/2).
  constexpr std::uint32_t kExponentBits = 0xFF800000U;
  constexpr int kMantissaLength = 23;
  constexpr float kSingleLn2 = 0.69314718f;
  std::int32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const std::int32_t shifted = bits - kSqrtHalfBits;  // This puts the mantissa into [sqrt(1/2), sqrt(2)).
  const float exponent = static_cast<float>(shifted >> kMantissaLength);
  const std::int32_t mantissa_bits = bits - (shifted & static_cast<std::int32_t>(kExponentBits));
  float mantissa;
  std::memcpy(&mantissa, &mantissa_bits, sizeof mantissa);
  const float t = (mantissa - 1.0f) / (mantissa + 1.0f);
  return t * log_series(t * t) + exponent * kSingleLn2;
}

// Returns exp(x) for x <= 0. Below kLowest it is exp(kLowest), which no weight can tell from 0.
UNTWIST_INLINED float fast_exp(float x) {
  constexpr float kLowest = -87.0f;  // Below it the result would be no normal number.
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;     // These are the first bits of log(2), so that multiples of it are exact.
  constexpr float kLn2Rest = -2.12194440e-4f;  // This is the rest of log(2).
  constexpr int kExponentBias = 127;
  constexpr int kMantissaLength = 23;
  const float clamped = x < kLowest ? kLowest : x;
  const float whole = static_cast<float>(static_cast<std::int32_t>(clamped * kLog2E - 0.5f));
  const float f = (clamped - whole * kLn2High) - whole * kLn2Rest;
  const float p =
      1.0f + f * (1.0f + f * (0.5f + f * (0.16666667f + f * (0.041666645f + f * (0.008333452f + f * 0.0013888f)))));
  const std::int32_t bits = (static_cast<std::int32_t>(whole) + kExponentBias) << kMantissaLength;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

// Computes weights by the clipped link of one alpha in (0, inf]: weight(m) = f(-m) = a / (1 + a) with a = (x / (2 -
// x))^(1/alpha) and x = (1 - |m|/c)^c for m >= 0, and its complement for m < 0.
struct ClippedWeight {
  explicit ClippedWeight(double alpha)
      : margin_scale(alpha < 1.0 ? std::exp2(untwist::inverse_clip(alpha)) : 1.0),
        inverse_clip(untwist::inverse_clip(alpha)),
        clip(inverse_clip > 0.0 ? 1.0 / inverse_clip : kInfinity),
        always_near(std::abs(inverse_clip) < kTinyInverseClip ? 1.0f : 0.0f),
        power_of_gap(always_near > 0.0f ? 0.0f : static_cast<float>(1.0 / inverse_clip)),
        power(static_cast<float>(1.0 / alpha)),
        is_two(alpha == 2.0) {}

  // Returns the same at alpha = 2, where powers are squares and roots: (x / (2 - x))^(1/2) = g / sqrt(2 - g^2), g = 1 -
  // |m|/2.
  UNTWIST_INLINED static float at_two(double margin) {
    const double gap = 1.0 - 0.5 * std::abs(margin);
    const float g = static_cast<float>(gap < 0.0 ? 0.0 : gap);
    const float a = g / std::sqrt(2.0f - g * g);
    const float wrong = margin < 0.0 ? 1.0f : 0.0f;
    const float right = a / (1.0f + a);
    return right + wrong * (1.0f - 2.0f * right);
  }

  // Masks are numbers, not branches, so that the loop over margins becomes vector instructions.
  UNTWIST_INLINED float operator()(double margin) const {
    const double scaled = std::abs(margin) * margin_scale;
    const double size = scaled < kLargestSize ? scaled : kLargestSize;
    const double gap = 1.0 - inverse_clip * size;  // This is in double precision, as it cancels near the clip.
    const float u = static_cast<float>(inverse_clip * size);
    // log(x) = log(1 - r*size) / r. Far from 0 it is computed as it stands, near 0 by the series of log1p, which needs
    // no 1/r.
    const float far = power_of_gap * fast_log(static_cast<float>(gap < kSmallestGap ? kSmallestGap : gap));
    const float t = u / (2.0f - u);
    const float near = -static_cast<float>(size) / (2.0f - u) * log_series(t * t);
    const bool is_near = (u < kNear) & (u > -kNear);
    const float mask = is_near ? 1.0f : always_near;
    const float log_x = mask > 0.0f ? near : far;
    const float x = fast_exp(log_x < 0.0f ? log_x : 0.0f);
    const float a = fast_exp(power * (log_x - fast_log(2.0f - x)));
    const float inside = size < clip ? 1.0f : 0.0f;
    const float wrong = margin < 0.0 ? 1.0f : 0.0f;
    const float right = inside * a / (1.0f + a);
    return right + wrong * (1.0f - 2.0f * right);
  }

  // Where the size of r is below this, 1/r has no use in single precision, and the series is exact at every margin.
  static constexpr double kTinyInverseClip = 1e-6;

  // Larger margins count as this, so that nothing overflows in single precision.
  static constexpr double kLargestSize = 1e30;

  // Smaller gaps count as this, so that the logarithm sees a normal number.
  static constexpr double kSmallestGap = 1e-30;

  // Up to this size of r*margin the series of log1p has all the digits of single precision.
  static constexpr float kNear = 0.3f;

  double margin_scale;  // Margins are multiplied by 2^r below alpha = 1, and by 1 from there on.
  double inverse_clip;  // This is r = 1 - 1/alpha.
  double clip;          // Margins beyond it have weight 0 or 1.
  float always_near, power_of_gap, power;
  bool is_two;
};

// Writes round(unit * weight(margin) * sample_weight). Null sample weights are all 1.
UNTWIST_VECTORISED inline void clipped_weights(const ClippedWeight weight, float unit, const double* __restrict margin,
                                               const float* __restrict sample_weight, std::size_t count,
                                               std::uint32_t* __restrict out) {
  const auto round = [unit](float share) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(share * unit + 0.5f));
  };
  if (weight.is_two && sample_weight == nullptr) {
    for (std::size_t i = 0; i < count; ++i) out[i] = round(ClippedWeight::at_two(margin[i]));
  } else if (weight.is_two) {
    for (std::size_t i = 0; i < count; ++i) out[i] = round(ClippedWeight::at_two(margin[i]) * sample_weight[i]);
  } else if (sample_weight == nullptr) {
    for (std::size_t i = 0; i < count; ++i) out[i] = round(weight(margin[i]));
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = round(weight(margin[i]) * sample_weight[i]);
  }
}

// Writes weight(-margin), the posterior of a row's own label.
UNTWIST_VECTORISED inline void clipped_posteriors(const ClippedWeight weight, const double* __restrict margin,
                                                  std::size_t count, float* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = weight(-margin[i]);
}

// Returns the weight of a margin under the exact link, in double precision.
inline double exact_weight(double alpha, double margin) { return weight_at_logit(exact_logit(-margin, alpha), alpha); }

// Writes round(unit * weight(margin) * sample_weight) under the exact link. Null sample weights are all 1.
inline void exact_weights(double alpha, float unit, const double* margin, const float* sample_weight, std::size_t count,
                          std::uint32_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = exact_weight(alpha, margin[i]);
    const double share = sample_weight == nullptr ? weight : weight * static_cast<double>(sample_weight[i]);
    out[i] = static_cast<std::uint32_t>(share * static_cast<double>(unit) + 0.5);
  }
}

// Computes weights where scores are log-odds, for alpha >= 1: the slope p^r (1 - p) of the alpha-loss at p = sigma(m).
// It falls off for large margins of either sign, so that labels which contradict the scores hardly count.
struct LogitWeight {
  explicit LogitWeight(double alpha) : power(static_cast<float>(inverse_clip(alpha))) {}

  UNTWIST_INLINED float operator()(double margin) const {
    const double size = std::abs(margin) < kLargestSize ? std::abs(margin) : kLargestSize;
    const float e = fast_exp(static_cast<float>(-size));
    const float wrong = margin < 0.0 ? 1.0f : 0.0f;
    const float log_p = -fast_log(1.0f + e) - wrong * static_cast<float>(size);
    const float right = e / (1.0f + e);
    return fast_exp(power * log_p) * (right + wrong * (1.0f - 2.0f * right));
  }

  // Larger margins count as this, so that nothing overflows in single precision.
  static constexpr double kLargestSize = 1e30;

  float power;  // This is r = 1 - 1/alpha.
};

// Writes round(unit * weight(margin) * sample_weight) where scores are log-odds. Null sample weights are all 1.
UNTWIST_VECTORISED inline void logit_weights(const LogitWeight weight, float unit, const double* __restrict margin,
                                             const float* __restrict sample_weight, std::size_t count,
                                             std::uint32_t* __restrict out) {
  const auto round = [unit](float share) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(share * unit + 0.5f));
  };
  if (sample_weight == nullptr) {
    for (std::size_t i = 0; i < count; ++i) out[i] = round(weight(margin[i]));
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = round(weight(margin[i]) * sample_weight[i]);
  }
}

// A weigher computes the weights of rows under any link of the alpha-loss.
class Weigher {
 public:
  Weigher(double alpha, LinkKind link) : alpha_(alpha), link_(link), clipped_(alpha), logit_(alpha) {}

  // Writes round(unit * weight(margin) * sample_weight). Null sample weights are all 1.
  void weigh(float unit, const double* margin, const float* sample_weight, std::size_t count,
             std::uint32_t* out) const {
    switch (link_) {
      case LinkKind::kClipped: return clipped_weights(clipped_, unit, margin, sample_weight, count, out);
      case LinkKind::kExact: return exact_weights(alpha_, unit, margin, sample_weight, count, out);
      case LinkKind::kLogit: return logit_weights(logit_, unit, margin, sample_weight, count, out);
    }
  }

  // Writes the twisted posteriors of the rows' own labels.
  void find_posteriors(const double* margin, std::size_t count, double* out) const {
    if (link_ == LinkKind::kExact) {
      for (std::size_t i = 0; i < count; ++i) out[i] = exact_weight(alpha_, -margin[i]);
      return;
    }
    if (link_ == LinkKind::kLogit) {
      for (std::size_t i = 0; i < count; ++i) out[i] = weight_at_logit(margin[i], alpha_);
      return;
    }
    constexpr std::size_t kBlock = 256;  // So many fill the vector instructions, and are few on the stack.
    std::array<float, kBlock> posterior;
    for (std::size_t first = 0; first < count; first += kBlock) {
      const std::size_t size = std::min(kBlock, count - first);
      clipped_posteriors(clipped_, margin + first, size, posterior.data());
      std::copy_n(posterior.begin(), size, out + first);
    }
  }

 private:
  double alpha_;
  LinkKind link_;
  ClippedWeight clipped_;
  LogitWeight logit_;
};

}  // namespace untwist
