// Boosting weights in fixed point: round(unit * weight(margin) * sample weight), unit a power of two.
//
// The clipped link of the alpha-loss in single precision, by polynomials that the compiler can vectorise.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "alpha_link.hpp"
#include "vectors.hpp"

namespace untwist {

// The largest bits within [17, 24] for which all weights together stay below 2^31, given the total sample weight in
// units of the largest; 17 where none does. Few rows get all that single precision has to give.
inline int weight_bits(double total_weight, std::size_t rows) {
  int bits = 24;
  while (bits > 17 && std::ldexp(total_weight, bits) + 0.5 * static_cast<double>(rows) >= 2147483648.0) --bits;
  return bits;
}

inline bool fits_32_bits(double total_weight, std::size_t rows) {
  return std::ldexp(total_weight, weight_bits(total_weight, rows)) + 0.5 * static_cast<double>(rows) < 2147483648.0;
}

// log(x) for normal x > 0.
inline float fast_log(float x) {
  std::int32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const std::int32_t shifted = bits - 0x3F3504F3;  // mantissa in [sqrt(1/2), sqrt(2))
  const float exponent = static_cast<float>(shifted >> 23);
  const std::int32_t mantissa_bits = bits - (shifted & static_cast<std::int32_t>(0xFF800000U));
  float m;
  std::memcpy(&m, &mantissa_bits, sizeof m);
  const float t = (m - 1.0f) / (m + 1.0f);
  const float s = t * t;
  const float series = 2.0f + s * (0.66666667f + s * (0.4f + s * (0.28571430f + s * 0.2222221f)));
  return t * series + exponent * 0.69314718f;
}

// exp(x) for x <= 0, and exp(-87) below -87, which is nothing.
inline float fast_exp(float x) {
  const float clamped = x < -87.0f ? -87.0f : x;
  const float whole = static_cast<float>(static_cast<std::int32_t>(clamped * 1.44269504f - 0.5f));
  const float f = (clamped - whole * 0.693359375f) + whole * 2.12194440e-4f;
  const float p =
      1.0f + f * (1.0f + f * (0.5f + f * (0.16666667f + f * (0.041666645f + f * (0.008333452f + f * 0.0013888f)))));
  const std::int32_t bits = (static_cast<std::int32_t>(whole) + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

// The clipped link of one alpha in (0, inf]: weight(m) = f(-m) = a / (1 + a) with a = (x / (2 - x))^(1/alpha) and
// x = (1 - |m|/c)^c for m >= 0, its complement below.
struct ClippedWeight {
  explicit ClippedWeight(double alpha)
      : unit(alpha < 1.0 ? std::exp2(rate(alpha)) : 1.0),
        rate_of_gap(rate(alpha)),
        clip(rate_of_gap > 0.0 ? 1.0 / rate_of_gap : kInfinity),
        always_near(std::abs(rate_of_gap) < 1e-6 ? 1.0f : 0.0f),
        power_of_gap(always_near > 0.0f ? 0.0f : static_cast<float>(1.0 / rate_of_gap)),
        power(static_cast<float>(1.0 / alpha)),
        is_two(alpha == 2.0) {}

  // The same at alpha = 2, where powers are squares and roots: (x / (2 - x))^(1/2) = g / sqrt(2 - g^2), g = 1 - |m|/2.
  static float at_two(double margin) {
    const double gap = 1.0 - 0.5 * std::abs(margin);
    const float g = static_cast<float>(gap < 0.0 ? 0.0 : gap);
    const float a = g / std::sqrt(2.0f - g * g);
    const float wrong = margin < 0.0 ? 1.0f : 0.0f;
    const float right = a / (1.0f + a);
    return right + wrong * (1.0f - 2.0f * right);
  }

  // Masks are numbers, not branches, so that the loop over margins becomes vector instructions.
  float operator()(double margin) const {
    const double far_away = std::abs(margin) * unit;
    const double size = far_away < 1e30 ? far_away : 1e30;
    const double gap = 1.0 - rate_of_gap * size;  // in double: near the clip it cancels
    const float u = static_cast<float>(rate_of_gap * size);
    // log(x) = log(1 - r*size) / r: far from 0 as it stands, near 0 by the series of log1p, which needs no 1/r.
    const float far = power_of_gap * fast_log(static_cast<float>(gap < 1e-30 ? 1e-30 : gap));
    const float t = u / (2.0f - u);
    const float s = t * t;
    const float series = 2.0f + s * (0.66666667f + s * (0.4f + s * (0.28571430f + s * 0.2222221f)));
    const float near = -static_cast<float>(size) / (2.0f - u) * series;
    const bool is_near = (u < 0.3f) & (u > -0.3f);
    const float mask = is_near ? 1.0f : always_near;
    const float log_x = mask > 0.0f ? near : far;
    const float x = fast_exp(log_x < 0.0f ? log_x : 0.0f);
    const float a = fast_exp(power * (log_x - fast_log(2.0f - x)));
    const float inside = size < clip ? 1.0f : 0.0f;
    const float wrong = margin < 0.0 ? 1.0f : 0.0f;
    const float right = inside * a / (1.0f + a);
    return right + wrong * (1.0f - 2.0f * right);
  }

  double unit, rate_of_gap, clip;
  float always_near, power_of_gap, power;
  bool is_two;
};

// round(unit * weight(margin) * own), own = 1 where it is null.
UNTWIST_VECTORISED inline void clipped_weights(const ClippedWeight weight, float unit, const double* __restrict margin,
                                               const float* __restrict own, std::size_t count,
                                               std::uint32_t* __restrict out) {
  const auto whole = [unit](float share) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(share * unit + 0.5f));
  };
  if (weight.is_two && own == nullptr) {
    for (std::size_t i = 0; i < count; ++i) out[i] = whole(ClippedWeight::at_two(margin[i]));
  } else if (weight.is_two) {
    for (std::size_t i = 0; i < count; ++i) out[i] = whole(ClippedWeight::at_two(margin[i]) * own[i]);
  } else if (own == nullptr) {
    for (std::size_t i = 0; i < count; ++i) out[i] = whole(weight(margin[i]));
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = whole(weight(margin[i]) * own[i]);
  }
}

// weight(-margin), the posterior of a row's own label.
UNTWIST_VECTORISED inline void clipped_posteriors(const ClippedWeight weight, const double* __restrict margin,
                                                  std::size_t count, float* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = weight(-margin[i]);
}

inline double exact_weight(double alpha, double margin) {
  const double s = exact_logit(-margin, alpha);
  return std::isinf(s) ? (s > 0.0 ? 1.0 : 0.0) : 1.0 / (1.0 + std::exp(-s / alpha));
}

// The same for the exact link, in double precision and one at a time.
inline void exact_weights(double alpha, float unit, const double* margin, const float* own, std::size_t count,
                          std::uint32_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const double w = exact_weight(alpha, margin[i]);
    const double share = own == nullptr ? w : w * static_cast<double>(own[i]);
    out[i] = static_cast<std::uint32_t>(share * static_cast<double>(unit) + 0.5);
  }
}

}  // namespace untwist
