// Binds inverse links and boosting weights for Python.
#include "links.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "../alpha_link.hpp"
#include "../settings.hpp"
#include "../weights.hpp"
#include "arrays.hpp"
#include "module.hpp"

namespace untwist::python {

namespace {

template <double (*function)(double, double)>
void fill(const Vector<double>& z, double alpha, const Output<double>& out) {
  require(alpha > 0.0, "alpha must be positive");
  require(z.shape(0) == out.shape(0), "z and out must have the same length");
  require_aligned(z, out);
  const double* from = z.data();
  double* to = out.data();
  const std::size_t size = z.shape(0);
  nb::gil_scoped_release unlocked;
  for (std::size_t i = 0; i < size; ++i) to[i] = function(from[i], alpha);
}

// Writes the boosting weights of margins as the engine's rounds have them: whole multiples of 1 / unit.
void boosting_weights(const Vector<double>& margin, const Vector<float>& sample_weight, double alpha,
                      const std::string& link, double unit, int threads, const Output<float>& out) {
  // The weights of so many rows fit into the first cache.
  constexpr std::size_t kBlockRows = 4096;
  const std::size_t size = margin.shape(0);
  require(alpha > 0.0 && unit >= 1.0 && unit <= std::ldexp(1.0, kMaxWeightBits) && threads >= 1,
          "alpha and threads must be positive, and unit 1 to 2^24");
  require(out.shape(0) == size && (sample_weight.shape(0) == 0 || sample_weight.shape(0) == size),
          "margin, sample_weight and out must have the same length");
  require_aligned(margin, sample_weight, out);
  const double* from = margin.data();
  const float* factor = sample_weight.shape(0) == 0 ? nullptr : sample_weight.data();
  float* to = out.data();
  const LinkKind kind = find_link(link);
  nb::gil_scoped_release unlocked;
  const Weigher weigher(alpha, kind);
  ThreadPool pool(worthwhile_threads(size, threads));
  pool.chunks(size, kBlockRows, [&](int, std::size_t begin, std::size_t end) {
    std::array<std::uint32_t, kBlockRows> whole;
    for (std::size_t first = begin; first < end; first += kBlockRows) {
      const std::size_t count = std::min(kBlockRows, end - first);
      const float* factors = factor == nullptr ? nullptr : factor + first;
      weigher.weigh(static_cast<float>(unit), from + first, factors, count, whole.data());
      for (std::size_t i = 0; i < count; ++i) to[first + i] = static_cast<float>(whole[i] / unit);
    }
  });
}

}  // namespace

void bind_links(nb::module_& module) {
  const auto z = nb::arg("z").noconvert();
  const auto alpha = nb::arg("alpha");
  const auto out = nb::arg("out").noconvert();
  module.def("clipped_logit", &fill<clipped_logit>, z, alpha, out,
             "Log-odds of the clean posterior at scores z, clipped inverse link.");
  module.def("clipped_posterior", &fill<clipped_posterior>, z, alpha, out,
             "The clean posterior at scores z, clipped inverse link.");
  module.def("exact_logit", &fill<exact_logit>, z, alpha, out,
             "Log-odds of the clean posterior at scores z, exact inverse link.");
  module.def("boosting_weights", &boosting_weights, nb::arg("margin"), nb::arg("sample_weight"), alpha, nb::arg("link"),
             nb::arg("unit"), nb::arg("threads"), out,
             "Boosting weights: round(weight * sample_weight * unit) / unit. No sample weights mean 1 for all.");
  module.def("weight_bits", &weight_bits, nb::arg("total_weight"), nb::arg("rows"),
             "The unit of the fixed point is 2 to this power.");
}

}  // namespace untwist::python
