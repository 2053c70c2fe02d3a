// The compiled core: functions over arrays. Checks at the border, the GIL released inside, the module table last.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "alpha_link.hpp"
#include "predict.hpp"
#include "rounds.hpp"

namespace nb = nanobind;
using namespace untwist;

template <typename T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

template <typename T>
nb::object to_numpy(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

template <typename Real>
Matrix<Real> view(const Table<Real>& X) {
  return {X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
}

// ---- inverse links ----

template <double (*function)(double, double)>
void fill(const Vector<double>& z, double alpha, const Output& out) {
  require(alpha > 0.0, "alpha must be positive");
  require(z.shape(0) == out.shape(0), "z and out must have the same length");
  const double* from = z.data();
  double* to = out.data();
  const std::size_t size = z.shape(0);
  nb::gil_scoped_release unlocked;
  for (std::size_t i = 0; i < size; ++i) to[i] = function(from[i], alpha);
}

// ---- the engine ----

// Rows in the order of their class, binned. Sample weights are scaled by their largest.
template <typename Real>
Sample make_sample(const Matrix<Real>& X, const std::uint8_t* positive, const double* weight, int max_bins, ThreadPool& pool) {
  Sample sample;
  sample.rows = X.rows;
  std::vector<std::size_t> order;
  for (std::uint8_t side = 0; side < 2; ++side) {
    for (std::size_t row = 0; row < X.rows; ++row) {
      if (positive[row] == side) order.push_back(row);
    }
    if (side == 0) sample.negatives = order.size();
  }
  const double largest = weight == nullptr ? 1.0 : *std::max_element(weight, weight + X.rows);
  std::vector<std::uint64_t> whole(X.rows, std::uint64_t{1} << 32);  // in units of 2^-32: sums without rounding
  if (weight != nullptr) {
    for (std::size_t row = 0; row < X.rows; ++row) {
      whole[row] = static_cast<std::uint64_t>(std::llround(std::ldexp(weight[row] / largest, 32)));
    }
    for (const std::size_t row : order) sample.weight.push_back(static_cast<float>(weight[row] / largest));
  }
  std::uint64_t total = 0;
  for (const std::uint64_t share : whole) total += share;
  sample.total_weight = std::ldexp(static_cast<double>(total), -32);
  sample.columns = find_bins(X, whole.data(), max_bins, pool);
  sample.codes.resize(X.rows * X.columns + kPadding);
  encode(X, order, sample.columns, sample.codes.data(), pool);
  return sample;
}

template <typename Real>
std::unique_ptr<Booster> make_booster(const Table<Real>& X, const Vector<std::uint8_t>& positive, const Vector<double>& weight,
                                      double alpha, bool exact_link, double step_size, int max_depth, double l2, int max_bins,
                                      int threads) {
  const Matrix<Real> matrix = view(X);
  require(matrix.rows > 0 && matrix.columns > 0 && matrix.rows < std::numeric_limits<Row>::max(), "X must have rows and columns");
  require(positive.shape(0) == matrix.rows, "one label per row");
  require(weight.shape(0) == 0 || weight.shape(0) == matrix.rows, "one sample weight per row, or none");
  require(2 <= max_bins && max_bins <= 255, "max_bins must be 2 to 255");
  require(alpha > 0.0 && step_size > 0.0 && max_depth >= 1 && l2 >= 0.0 && threads >= 1, "a setting is out of range");
  const double* own = weight.shape(0) == 0 ? nullptr : weight.data();
  const std::uint8_t* label = positive.data();
  for (std::size_t row = 0; row < matrix.rows; ++row) {
    require(label[row] <= 1, "labels must be 0 and 1");
    require(own == nullptr || (own[row] > 0.0 && std::isfinite(own[row])), "sample weights must be positive and finite");
  }
  nb::gil_scoped_release unlocked;
  ThreadPool pool(matrix.rows * matrix.columns < 20000 ? 1 : threads);
  Sample sample = make_sample(matrix, label, own, max_bins, pool);
  return make_rounds(std::move(sample), Settings{alpha, exact_link, step_size, max_depth, l2}, threads);
}

std::size_t boost(Booster& booster, int rounds) {
  nb::gil_scoped_release unlocked;
  booster.boost(rounds);
  return booster.trees().size();
}

// The trees from `first` on as flat arrays: (edge, offset, feature, left, threshold, missing_left, value, gain).
nb::tuple trees(const Booster& booster, std::size_t first) {
  const auto& all = booster.trees();
  require(first <= all.size(), "there are fewer trees");
  std::vector<double> edge(booster.edges().begin() + static_cast<std::ptrdiff_t>(first), booster.edges().end());
  std::vector<std::int64_t> offset{0};
  std::vector<std::int32_t> feature, left;
  std::vector<double> threshold, value, gain;
  std::vector<std::uint8_t> missing_left;
  for (std::size_t tree = first; tree < all.size(); ++tree) {
    for (const Node& node : all[tree]) {
      feature.push_back(node.feature);
      left.push_back(node.left);
      missing_left.push_back(node.missing_left);
      value.push_back(node.value);
      gain.push_back(node.gain);
      double limit = 0.0;
      if (node.feature >= 0) {
        const auto& limits = booster.sample().columns[static_cast<std::size_t>(node.feature)].thresholds;
        limit = node.code < limits.size() ? limits[node.code] : kInfinity;  // all known values go left
      }
      threshold.push_back(limit);
    }
    offset.push_back(static_cast<std::int64_t>(feature.size()));
  }
  return nb::make_tuple(to_numpy(std::move(edge)), to_numpy(std::move(offset)), to_numpy(std::move(feature)),
                        to_numpy(std::move(left)), to_numpy(std::move(threshold)), to_numpy(std::move(missing_left)),
                        to_numpy(std::move(value)), to_numpy(std::move(gain)));
}

template <typename Real>
void scores(const Table<Real>& X, const Vector<std::int64_t>& offset, const Vector<std::int32_t>& feature,
            const Vector<std::int32_t>& left, const Vector<double>& threshold, const Vector<std::uint8_t>& missing_left,
            const Vector<double>& value, std::size_t first, std::size_t last, int threads, const Output& out) {
  const Matrix<Real> matrix = view(X);
  require(out.shape(0) == matrix.rows, "one score per row");
  require(first <= last && last < offset.shape(0), "there are fewer trees");
  const std::size_t nodes = feature.shape(0);
  require(left.shape(0) == nodes && threshold.shape(0) == nodes && missing_left.shape(0) == nodes && value.shape(0) == nodes,
          "one entry per node");
  for (std::size_t tree = first; tree < last; ++tree) {
    const std::int64_t root = offset.data()[tree];
    const std::int64_t end = offset.data()[tree + 1];
    require(0 <= root && root < end && static_cast<std::size_t>(end) <= nodes, "a tree has nodes of its own");
    for (std::int64_t node = root; node < end; ++node) {
      if (feature.data()[node] < 0) continue;
      require(static_cast<std::size_t>(feature.data()[node]) < matrix.columns, "X has fewer columns than the trees");
      require(left.data()[node] > node - root && left.data()[node] + 1 < end - root, "children follow their parent");
    }
  }
  const Forest forest{offset.data(), feature.data(), left.data(), threshold.data(), missing_left.data(), value.data()};
  double* to = out.data();
  nb::gil_scoped_release unlocked;
  ThreadPool pool(matrix.rows * (last - first) < 20000 ? 1 : threads);
  add_scores(matrix, forest, first, last, to, pool);
}

NB_MODULE(_core, module) {
  module.doc() = "The compiled core of untwist.";
  module.def("clipped_logit", &fill<clipped_logit>, nb::arg("z").noconvert(), nb::arg("alpha"), nb::arg("out").noconvert(),
             "Log-odds of the clean posterior at scores z, clipped inverse link.");
  module.def("exact_logit", &fill<exact_logit>, nb::arg("z").noconvert(), nb::arg("alpha"), nb::arg("out").noconvert(),
             "Log-odds of the clean posterior at scores z, exact inverse link.");
  nb::class_<Booster>(module, "Booster")
      .def("boost", &boost, nb::arg("rounds"), "Run rounds; the number of trees so far.")
      .def("trees", &trees, nb::arg("first"), "Flat arrays of the trees from `first` on.");
  module.def("booster", &make_booster<double>, "PILBoost over histogram trees for binned rows.");
  module.def("booster", &make_booster<float>, "PILBoost over histogram trees for binned rows.");
  module.def("add_scores", &scores<double>, "Add the scores of trees [first, last) to out.");
  module.def("add_scores", &scores<float>, "Add the scores of trees [first, last) to out.");
}
