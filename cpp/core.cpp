// The compiled core: functions over arrays. Checks at the border, the GIL released inside, the module table last.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <stdexcept>

#include "alpha_link.hpp"

namespace nb = nanobind;

using Scores = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <double (*function)(double, double)>
void fill(const Scores& z, double alpha, const Result& out) {
  if (!(alpha > 0.0)) throw std::invalid_argument("alpha must be positive");
  if (z.shape(0) != out.shape(0)) throw std::invalid_argument("z and out must have the same length");
  const double* from = z.data();
  double* to = out.data();
  const std::size_t size = z.shape(0);
  nb::gil_scoped_release unlocked;
  for (std::size_t i = 0; i < size; ++i) to[i] = function(from[i], alpha);
}

NB_MODULE(_core, module) {
  module.doc() = "The compiled core of untwist.";
  module.def("clipped_logit", &fill<untwist::clipped_logit>, nb::arg("z").noconvert(), nb::arg("alpha"),
             nb::arg("out").noconvert(), "Log-odds of the clean posterior at scores z, clipped inverse link.");
  module.def("exact_logit", &fill<untwist::exact_logit>, nb::arg("z").noconvert(), nb::arg("alpha"),
             nb::arg("out").noconvert(), "Log-odds of the clean posterior at scores z, exact inverse link.");
}
