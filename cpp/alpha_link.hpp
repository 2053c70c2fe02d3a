// The alpha-loss on the score scale: the log-odds s = logit(t) of the clean posterior t at a score z.
//
// Everything is written in r = 1 - 1/alpha (so 1/r is the conjugate c of alpha, the clip), which is exact where it
// matters: alpha - 1 has no rounding for alpha >= 1/2, and r = 0 is simply the log-loss. Both functions are odd in z,
// +-infinity beyond the clip, and NaN where z is NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace untwist {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kLn2 = 0.693147180559945309417232121458;

// 1 - 1/alpha, for alpha in (0, +inf].
inline double rate(double alpha) { return std::isinf(alpha) ? 1.0 : (alpha - 1.0) / alpha; }

// -log(1 - r*z)/r for z >= 0: minus the log of (1 - z/c)^c; z itself at alpha = 1, +inf from the clip on.
inline double log_decay(double z, double alpha) {
  if (alpha == 1.0) return z;
  const double r = rate(alpha);
  if (std::abs(r * z) < 0.5) return -std::log1p(-r * z) / r;
  // Near the clip 1 - r*z cancels: one fused multiply-add keeps it exact to the rounding of z.
  const double gap = std::isinf(alpha) ? 1.0 - z : std::fma(-z, alpha - 1.0, alpha) / alpha;
  if (gap <= 0.0) return kInfinity;
  if (std::isinf(gap)) return -(std::log(z) + std::log(-r)) / r;
  return -std::log(gap) / r;
}

// Clipped inverse link (Lemma "lemPILalphaloss"): t = tail(z) below zero, 1 - tail(-z) above, with
// tail = exp(-log_decay)/2. Below alpha = 1 nothing is clipped and the score is measured in units of 2^r.
inline double clipped_log_decay(double z, double alpha) {
  const double size = std::abs(z);
  return log_decay(alpha < 1.0 && std::isfinite(size) ? size * std::exp2(rate(alpha)) : size, alpha);
}

inline double clipped_logit(double z, double alpha) {
  const double decay = clipped_log_decay(z, alpha);
  return std::copysign(decay + std::log1p(-std::expm1(-decay)), z);
}

// The same as a probability, t itself.
inline double clipped_posterior(double z, double alpha) {
  const double tail = 0.5 * std::exp(-clipped_log_decay(z, alpha));
  return z < 0.0 ? tail : 1.0 - tail;
}

// Exact inverse link: the s >= 0 with link(s) = (sigma(s)^r - sigma(-s)^r)/r = z.
// Newton on -log(1 - r*link(s))/r = log_decay(z), whose slope goes from 2^-r at 0 to 1: a handful of steps anywhere.
inline double exact_logit(double z, double alpha) {
  const double target = log_decay(std::abs(z), alpha);
  if (alpha == 1.0 || target == 0.0 || !std::isfinite(target)) return std::copysign(target, z);
  const double r = rate(alpha);
  double low = 0.0;
  double high = kInfinity;
  double s = std::min(target * std::exp2(r), target + kLn2);
  for (int step = 0; step < 100; ++step) {
    const double log_p = -std::log1p(std::exp(-s));
    const double log_q = log_p - s;
    double value = -log_q;  // the limit for large s, where q^r would overflow for alpha < 1
    double slope = 1.0;
    if (-r * log_q < 600.0 && r * log_q < 600.0) {
      const double p_r = std::exp(r * log_p);
      const double q_r = std::exp(r * log_q);
      const double scaled_link = -p_r * std::expm1(-r * s);
      const double gap = -std::expm1(r * log_p) + q_r;
      value = (scaled_link < 0.5 ? -std::log1p(-scaled_link) : -std::log(gap)) / r;
      slope = (p_r * std::exp(log_q) + q_r * std::exp(log_p)) / gap;
    }
    const double error = value - target;
    if (std::abs(error) <= 2e-16 * target) break;
    (error < 0.0 ? low : high) = s;
    double next = s - error / slope;
    if (!(next >= low && next <= high)) next = std::isinf(high) ? 2.0 * s : 0.5 * (low + high);
    const double moved = std::abs(next - s);
    s = next;
    if (moved <= 4e-16 * s) break;
  }
  return std::copysign(s, z);
}

}  // namespace untwist
