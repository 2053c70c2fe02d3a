// The link of the alpha-loss as a GPU's compiler reads it: without standard headers, with its functions in no
// namespace. It must compile, and compute what the CPU computes.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>

// What the GPU's compiler has of its own.
#define __device__
double __longlong_as_double(long long bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
bool isinf(double x) { return __builtin_isinf(x); }
bool isfinite(double x) { return __builtin_isfinite(x); }

namespace gpu {
#define UNTWIST_CUDA
#include "../../cpp/alpha_link.hpp"
}  // namespace gpu

#undef UNTWIST_CUDA
#undef UNTWIST_ALPHA_LINK_HPP
#undef UNTWIST_FUNCTION
#undef UNTWIST_INFINITY
#include "../../cpp/alpha_link.hpp"

int main() {
  int cases = 0;
  const auto check = [&](double cpu, double gpu, const char* what, double z, double alpha) {
    ++cases;
    if (std::memcmp(&cpu, &gpu, sizeof cpu) == 0) return;
    std::printf("FAILED: %s at z = %g, alpha = %g: %g and %g\n", what, z, alpha, cpu, gpu);
    std::exit(1);
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double alpha : {0.1, 0.5, 1.0, 1.0 + 1e-9, 1.1, 2.0, 4.0, 1e9, infinity}) {
    for (int i = -2000; i <= 2000; ++i) {
      const double z = i == 2000 ? infinity : i / 400.0;
      check(untwist::clipped_logit(z, alpha), gpu::untwist::clipped_logit(z, alpha), "clipped_logit", z, alpha);
      check(untwist::clipped_posterior(z, alpha), gpu::untwist::clipped_posterior(z, alpha), "clipped_posterior", z,
            alpha);
      check(untwist::exact_logit(z, alpha), gpu::untwist::exact_logit(z, alpha), "exact_logit", z, alpha);
      check(untwist::weight_at_logit(z, alpha), gpu::untwist::weight_at_logit(z, alpha), "weight_at_logit", z, alpha);
    }
  }
  std::printf("%d values alike\n", cases);
}
