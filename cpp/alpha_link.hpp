// The alpha-loss on the score scale: the log-odds s = logit(t) of the clean posterior t at a score z.
//
// Everything is written in r = 1 - 1/alpha, so that 1/r is the conjugate c of alpha, the clip. This is exact where it
// matters: alpha - 1 has no rounding for alpha >= 1/2, and r = 0 is simply the log-loss.
//
// Both inverse links are odd functions of the score. They are infinite beyond the clip, and NaN where the score is NaN.
//
// The same file is compiled for the CPU and, with UNTWIST_CUDA defined, for a GPU at run time. The GPU's compiler has
// no standard headers, and its mathematical functions are in no namespace.
#ifndef UNTWIST_ALPHA_LINK_HPP
#define UNTWIST_ALPHA_LINK_HPP

#if defined(UNTWIST_CUDA)
#define UNTWIST_FUNCTION __device__ inline
#define UNTWIST_INFINITY __longlong_as_double(0x7FF0000000000000LL)
#else
#include <cmath>
#include <limits>
#define UNTWIST_FUNCTION inline
#define UNTWIST_INFINITY std::numeric_limits<double>::infinity()
#endif

namespace untwist {

#if !defined(UNTWIST_CUDA)
using std::copysign;
using std::exp;
using std::exp2;
using std::expm1;
using std::fabs;
using std::fma;
using std::isfinite;
using std::isinf;
using std::log;
using std::log1p;

constexpr double kInfinity = UNTWIST_INFINITY;
#endif

constexpr double kLn2 = 0.693147180559945309417232121458;

// Up to here exp(x) is far from overflow, which begins at 709. Beyond it a power of the tail is replaced by its limit.
constexpr double kMaxExponent = 600.0;

// A Newton step must reach the target to within one rounding of a double, which is 2.2e-16 of its size.
constexpr double kTargetTolerance = 2e-16;

// A Newton step that moves s by less than two roundings of a double cannot make it better.
constexpr double kMoveTolerance = 4e-16;

// Newton needs a handful of steps. The limit only guards against an endless loop.
constexpr int kMaxNewtonSteps = 100;

// Returns r = 1 - 1/alpha, which is 1 over the clip, for alpha in (0, +inf].
UNTWIST_FUNCTION double inverse_clip(double alpha) { return isinf(alpha) ? 1.0 : (alpha - 1.0) / alpha; }

// Returns -log(1 - r*z)/r for z >= 0, which is minus the log of (1 - z/c)^c. It is z itself at alpha = 1, and +inf from
// the clip on.
UNTWIST_FUNCTION double log_decay(double z, double alpha) {
  if (alpha == 1.0) return z;
  const double r = inverse_clip(alpha);
  if (fabs(r * z) < 0.5) return -log1p(-r * z) / r;
  // Near the clip 1 - r*z cancels. One fused multiply-add keeps it exact to the rounding of z.
  const double gap = isinf(alpha) ? 1.0 - z : fma(-z, alpha - 1.0, alpha) / alpha;
  if (gap <= 0.0) return UNTWIST_INFINITY;
  if (isinf(gap)) return -(log(z) + log(-r)) / r;
  return -log(gap) / r;
}

// Returns the decay of the clipped inverse link (Lemma "lemPILalphaloss"): t = tail(z) below zero and 1 - tail(-z)
// above, with tail = exp(-decay)/2. Below alpha = 1 nothing is clipped, and the score is multiplied by 2^r.
UNTWIST_FUNCTION double clipped_log_decay(double z, double alpha) {
  const double size = fabs(z);
  return log_decay(alpha < 1.0 && isfinite(size) ? size * exp2(inverse_clip(alpha)) : size, alpha);
}

// Returns the log-odds of t by the clipped inverse link.
UNTWIST_FUNCTION double clipped_logit(double z, double alpha) {
  const double decay = clipped_log_decay(z, alpha);
  return copysign(decay + log1p(-expm1(-decay)), z);
}

// Returns t itself by the clipped inverse link.
UNTWIST_FUNCTION double clipped_posterior(double z, double alpha) {
  const double tail = 0.5 * exp(-clipped_log_decay(z, alpha));
  return z < 0.0 ? tail : 1.0 - tail;
}

// Returns the exact inverse link: for z >= 0 the s >= 0 with link(s) = (sigma(s)^r - sigma(-s)^r)/r = z. It is found by
// Newton on -log(1 - r*link(s))/r = log_decay(z), whose slope goes from 2^-r at 0 to 1.
UNTWIST_FUNCTION double exact_logit(double z, double alpha) {
  const double target = log_decay(fabs(z), alpha);
  if (alpha == 1.0 || target == 0.0 || !isfinite(target)) return copysign(target, z);
  const double r = inverse_clip(alpha);
  const double by_slope_at_zero = target * exp2(r);
  const double by_slope_at_infinity = target + kLn2;
  double low = 0.0;
  double high = UNTWIST_INFINITY;
  double s = by_slope_at_infinity < by_slope_at_zero ? by_slope_at_infinity : by_slope_at_zero;
  for (int step = 0; step < kMaxNewtonSteps; ++step) {
    const double log_p = -log1p(exp(-s));
    const double log_q = log_p - s;
    double value = -log_q;  // This is the limit for large s, where q^r would overflow for alpha < 1.
    double slope = 1.0;
    if (-r * log_q < kMaxExponent && r * log_q < kMaxExponent) {
      const double p_r = exp(r * log_p);
      const double q_r = exp(r * log_q);
      const double scaled_link = -p_r * expm1(-r * s);
      const double gap = -expm1(r * log_p) + q_r;
      value = (scaled_link < 0.5 ? -log1p(-scaled_link) : -log(gap)) / r;
      slope = (p_r * exp(log_q) + q_r * exp(log_p)) / gap;
    }
    const double error = value - target;
    if (fabs(error) <= kTargetTolerance * target) break;
    (error < 0.0 ? low : high) = s;
    double next = s - error / slope;
    if (!(next >= low && next <= high)) next = isinf(high) ? 2.0 * s : 0.5 * (low + high);
    const double moved = fabs(next - s);
    s = next;
    if (moved <= kMoveTolerance * s) break;
  }
  return copysign(s, z);
}

// Returns the boosting weight of a row, given the log-odds s of the other label: 1 / (1 + exp(-s/alpha)).
UNTWIST_FUNCTION double weight_at_logit(double s, double alpha) {
  if (isinf(s)) return s > 0.0 ? 1.0 : 0.0;
  return 1.0 / (1.0 + exp(-s / alpha));
}

}  // namespace untwist

#endif  // UNTWIST_ALPHA_LINK_HPP
