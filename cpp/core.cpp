// The compiled core: functions over arrays. Checks at the border, the GIL released inside, the module table last.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
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

// Numbers that lie across the places of numbers, as fields of packed records do, are not for the loops.
template <typename... Arrays>
void require_aligned(const Arrays&... arrays) {
  (require(reinterpret_cast<std::uintptr_t>(arrays.data()) % sizeof(*arrays.data()) == 0, "arrays must be aligned"),
   ...);
}

template <typename Real>
Matrix<Real> view(const Table<Real>& X) {
  require_aligned(X);
  return {X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
}

// Runs work(pool) without the GIL and gives it up on Ctrl-C, which is looked for ten times a second.
template <typename Work>
void interruptible(int threads, const Work& work) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPulse = std::chrono::milliseconds(100);
  bool interrupted = false;
  {
    nb::gil_scoped_release unlocked;
    auto next = Clock::now() + kPulse;
    ThreadPool pool(threads, [&] {
      if (Clock::now() < next) return false;
      const nb::gil_scoped_acquire locked;
      interrupted = PyErr_CheckSignals() != 0;
      next = Clock::now() + kPulse;
      return interrupted;
    });
    try {
      work(pool);
    } catch (const Interrupted&) {
    }
  }
  if (interrupted) throw nb::python_error();
}

// ---- inverse links ----

template <double (*function)(double, double)>
void fill(const Vector<double>& z, double alpha, const Output& out) {
  require(alpha > 0.0, "alpha must be positive");
  require(z.shape(0) == out.shape(0), "z and out must have the same length");
  require_aligned(z, out);
  const double* from = z.data();
  double* to = out.data();
  const std::size_t size = z.shape(0);
  nb::gil_scoped_release unlocked;
  for (std::size_t i = 0; i < size; ++i) to[i] = function(from[i], alpha);
}

// Boosting weights of margins as the engine's rounds have them: whole multiples of 1 / unit.
void boosting_weights(const Vector<double>& margin, const Vector<float>& own, double alpha, bool exact_link,
                      double unit, int threads,
                      const nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>& out) {
  constexpr std::size_t kChunk = 4096;
  const std::size_t size = margin.shape(0);
  require(alpha > 0.0 && unit >= 1.0 && unit <= 16777216.0 && threads >= 1,
          "alpha must be positive and unit at most 2^24");
  require(out.shape(0) == size && (own.shape(0) == 0 || own.shape(0) == size),
          "margin, own and out must have the same length");
  require_aligned(margin, own, out);
  const double* from = margin.data();
  const float* scale = own.shape(0) == 0 ? nullptr : own.data();
  float* to = out.data();
  nb::gil_scoped_release unlocked;
  ThreadPool pool(size < 20000 ? 1 : threads);
  pool.chunks(size, kChunk, [&](int, std::size_t begin, std::size_t end) {
    std::array<std::uint32_t, kChunk> whole;
    for (std::size_t first = begin; first < end; first += kChunk) {
      const std::size_t count = std::min(kChunk, end - first);
      const float* some = scale == nullptr ? nullptr : scale + first;
      if (exact_link) {
        exact_weights(alpha, static_cast<float>(unit), from + first, some, count, whole.data());
      } else {
        clipped_weights(ClippedWeight(alpha), static_cast<float>(unit), from + first, some, count, whole.data());
      }
      for (std::size_t i = 0; i < count; ++i) to[first + i] = static_cast<float>(whole[i] / unit);
    }
  });
}

// ---- the engine ----

template <typename T>
std::vector<T> copied(const Vector<T>& values) {
  return {values.data(), values.data() + values.shape(0)};
}

std::shared_ptr<Dataset> make_dataset(const Vector<std::uint32_t>& labels, std::size_t classes, std::size_t features,
                                      bool lean) {
  const std::size_t rows = labels.shape(0);
  require(rows > 0 && features > 0 && rows < std::numeric_limits<Row>::max(), "X must have rows and columns");
  require(classes <= rows, "there cannot be more classes than rows");
  require_aligned(labels);
  for (std::size_t row = 0; row < rows; ++row)
    require(labels.data()[row] < classes, "labels must be below the number of classes");
  return std::make_shared<Dataset>(labels.data(), rows, classes, features, lean);
}

// The largest, which must be positive if they are all there are and not one of several blocks; 0 for none.
double require_weights(const Vector<double>& weight, std::size_t rows, bool all = true) {
  require_aligned(weight);
  if (weight.shape(0) == 0) return 0.0;
  require(weight.shape(0) == rows, "one weight per row, or none");
  double largest = 0.0;
  for (std::size_t row = 0; row < rows; ++row) {
    require(weight.data()[row] >= 0.0 && std::isfinite(weight.data()[row]), "weights must be finite and not negative");
    largest = std::max(largest, weight.data()[row]);
  }
  require(largest > 0.0 || !all, "a weight must be positive");
  return largest;
}

std::vector<int> numbers_of_categories(const Vector<std::int32_t>& categories) {
  require_aligned(categories);
  for (std::size_t i = 0; i < categories.shape(0); ++i) {
    require(0 <= categories.data()[i] && categories.data()[i] <= 254, "a column can have 254 categories");
  }
  return {categories.data(), categories.data() + categories.shape(0)};
}

template <typename Real>
void look(Dataset& dataset, const Table<Real>& X, const Vector<double>& weight, int threads) {
  const Matrix<Real> matrix = view(X);
  require(matrix.rows == dataset.rows, "one label per row");
  require_weights(weight, dataset.rows);
  require(threads >= 1, "threads must be positive");
  if (dataset.rows <= kSample) return;
  interruptible(threads,
                [&](ThreadPool& pool) { dataset.look(matrix, WholeWeights(weight.data(), weight.shape(0)), pool); });
}

template <typename Real>
void add_columns(Dataset& dataset, const Table<Real>& X, std::size_t first, const Vector<std::int32_t>& categories,
                 const Vector<double>& weight, int max_bins, int threads) {
  const Matrix<Real> matrix = view(X);
  require(matrix.rows == dataset.rows, "one label per row");
  require(first <= dataset.features && matrix.columns <= dataset.features - first, "there are fewer features");
  require(!dataset.lean(), "a lean dataset takes rows only");
  require(categories.shape(0) == matrix.columns, "one number of categories per column");
  const auto numbers = numbers_of_categories(categories);
  require(2 <= max_bins && max_bins <= 255 && threads >= 1, "max_bins must be 2 to 255");
  require_weights(weight, dataset.rows);
  interruptible(matrix.rows * matrix.columns < 20000 ? 1 : threads, [&](ThreadPool& pool) {
    const WholeWeights whole(weight.data(), weight.shape(0));
    dataset.add_columns(matrix, first, numbers, whole, max_bins, pool);
  });
}

template <typename Real>
void add_rows(Dataset& dataset, const Table<Real>& X, std::size_t first, const Vector<double>& weight, int threads) {
  const Matrix<Real> matrix = view(X);
  require(matrix.columns == dataset.features, "a block must have all columns");
  require(first <= dataset.rows && matrix.rows <= dataset.rows - first, "there are fewer rows");
  require(threads >= 1, "threads must be positive");
  require_weights(weight, matrix.rows, false);
  interruptible(matrix.rows * matrix.columns < 20000 ? 1 : threads, [&](ThreadPool& pool) {
    dataset.add_rows(matrix, first, WholeWeights(weight.data(), weight.shape(0)), pool);
  });
}

nb::object hashes(Dataset& dataset) {
  const auto& sorted = dataset.hashes();
  std::vector<std::uint64_t> original(dataset.rows);
  for (std::size_t i = 0; i < dataset.rows; ++i) original[dataset.order[i]] = sorted[i];
  return to_numpy(std::move(original));
}

std::unique_ptr<Booster> make_booster(std::shared_ptr<Dataset> dataset, std::size_t positive_class,
                                      const Vector<double>& weight, const Vector<double>& watch,
                                      const Vector<double>& start, double alpha, bool exact_link, double step_size,
                                      bool by_edge, double least, int max_depth, int max_leaves, double least_share,
                                      double l2, double least_rows, double smoothing, double row_share,
                                      double column_share, std::uint64_t seed, int first_round,
                                      const Vector<std::int8_t>& monotone) {
  const std::size_t rows = dataset->rows;
  require(positive_class < dataset->class_start.size() - 1, "there are fewer classes");
  require_weights(weight, rows);
  require_weights(watch, rows);
  const double largest = weight.shape(0) == 0 ? 1.0 : *std::max_element(weight.data(), weight.data() + rows);
  const bool counts =
      std::all_of(weight.data(), weight.data() + weight.shape(0), [](double one) { return one == std::floor(one); });
  require(largest <= (counts ? OwnWeights::kMostCopies : 1.0), "weights must be at most 1, or counts");
  require_aligned(start);
  require(start.shape(0) == 0 || start.shape(0) == rows, "one score per row, or none");
  require(std::all_of(start.data(), start.data() + start.shape(0), [](double score) { return std::isfinite(score); }),
          "scores must be finite");
  require(alpha > 0.0 && step_size > 0.0 && std::isfinite(step_size) && max_depth >= 1 && max_leaves >= 0 &&
              max_leaves != 1 && first_round >= 0,
          "a setting is out of range");
  require(least > 0.0 && least < 0.5 && least_share >= 0.0 && least_share <= 0.5 && l2 >= 0.0 && std::isfinite(l2) &&
              least_rows >= 0.0 && smoothing >= 0.0,
          "a setting is out of range");
  require(row_share > 0.0 && row_share <= 1.0 && column_share > 0.0 && column_share <= 1.0,
          "shares must lie in (0, 1]");
  require(monotone.shape(0) == 0 || monotone.shape(0) == dataset->features, "one direction per feature, or none");
  Task task{positive_class, copied(weight), copied(watch), copied(start)};
  Settings settings{alpha, exact_link, step_size, by_edge,   least,        max_depth, max_leaves,  least_share,
                    l2,    least_rows, smoothing, row_share, column_share, seed,      first_round, copied(monotone)};
  nb::gil_scoped_release unlocked;
  return make_rounds(std::move(dataset), task, std::move(settings));
}

// ---- blocks of rows ----

std::unique_ptr<Sketch> make_sketch(const Vector<std::int32_t>& categories, int max_bins, double largest) {
  require(categories.shape(0) > 0, "there must be columns");
  require(2 <= max_bins && max_bins <= 255, "max_bins must be 2 to 255");
  require(largest >= 0.0 && std::isfinite(largest), "the largest weight must be finite and not negative");
  return std::make_unique<Sketch>(numbers_of_categories(categories), max_bins, largest);
}

template <typename Real, bool again>
void see(Sketch& sketch, const Table<Real>& X, const Vector<double>& weight, int threads) {
  const Matrix<Real> matrix = view(X);
  require(matrix.columns == sketch.columns, "a block must have all columns");
  require(threads >= 1, "threads must be positive");
  require(weight.shape(0) == (sketch.largest > 0.0 ? matrix.rows : 0),
          "one weight per row if there is a largest one, else none");
  require(require_weights(weight, matrix.rows, false) <= sketch.largest, "a weight must not be above the largest");
  const double* weights = sketch.largest > 0.0 ? weight.data() : nullptr;
  nb::gil_scoped_release unlocked;
  ThreadPool pool(matrix.rows * matrix.columns < 20000 ? 1 : threads);
  if (again) {
    sketch.draw(matrix, weights, pool);
  } else {
    sketch.look(matrix, weights, pool);
  }
}

nb::bytes state(Sketch& sketch) {
  const auto words = sketch.state();
  return nb::bytes(words.data(), 8 * words.size());
}

void merge(Sketch& sketch, const nb::bytes& state) {
  require(state.size() % 8 == 0, "these bytes are not the state of a Sketch");
  std::vector<std::uint64_t> words(state.size() / 8);
  if (!words.empty()) std::memcpy(words.data(), state.c_str(), state.size());
  sketch.merge(words);
}

nb::list thresholds(Sketch& sketch) {
  ThreadPool alone(1);
  nb::list found;
  for (auto& column : sketch.bins(alone)) found.append(to_numpy(std::move(column.thresholds)));
  return found;
}

void set_bins(Dataset& dataset, Sketch& sketch) {
  require(dataset.features == sketch.columns, "the Sketch has more or fewer columns");
  ThreadPool alone(1);
  dataset.set_bins(sketch.bins(alone));
}

inline constexpr Code kMissingCode = 255;

// Codes by given bins, kMissingCode for missing values.
template <typename Real>
void encode_block(const Table<Real>& X, const Vector<std::int32_t>& categories,
                  const std::vector<Vector<double>>& thresholds,
                  const nb::ndarray<Code, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out, int threads) {
  const Matrix<Real> matrix = view(X);
  require(categories.shape(0) == matrix.columns && thresholds.size() == matrix.columns,
          "one number of categories and one list of thresholds per column");
  require(out.shape(0) == matrix.rows && out.shape(1) == matrix.columns, "one code per cell");
  require(threads >= 1, "threads must be positive");
  const auto numbers = numbers_of_categories(categories);
  std::vector<Column> columns(matrix.columns);
  for (std::size_t column = 0; column < matrix.columns; ++column) {
    require(thresholds[column].shape(0) <= 254, "a column can have 254 thresholds");
    require_aligned(thresholds[column]);
    columns[column].categories = numbers[column];
    columns[column].thresholds = copied(thresholds[column]);
    require(std::is_sorted(columns[column].thresholds.begin(), columns[column].thresholds.end()),
            "thresholds must be in order");
  }
  Code* codes = out.data();
  nb::gil_scoped_release unlocked;
  ThreadPool pool(matrix.rows * matrix.columns < 20000 ? 1 : threads);
  std::vector<std::uint32_t> order(matrix.rows);
  std::iota(order.begin(), order.end(), 0U);
  encode(matrix, WholeWeights(), order.data(), matrix.rows, 0, columns.data(), codes, matrix.columns, nullptr, 0, pool);
  for (std::size_t i = 0; i < matrix.rows * matrix.columns; ++i) {
    if (codes[i] == columns[i % matrix.columns].missing_code()) codes[i] = kMissingCode;
  }
}

// ---- runs ----

// A booster that runs is not to be touched by another thread.
class Use {
 public:
  explicit Use(const Booster& booster) : booster_(booster) {
    if (booster.busy.test_and_set()) throw std::runtime_error("this booster is at work in another thread");
  }
  ~Use() { booster_.busy.clear(); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  const Booster& booster_;
};

std::size_t boost(Booster& booster, int rounds, int patience, int threads) {
  require(threads >= 1, "threads must be positive");
  const Use use(booster);
  bool interrupted = false;
  {
    nb::gil_scoped_release unlocked;
    booster.boost(rounds, patience, threads, [&interrupted] {
      const nb::gil_scoped_acquire locked;
      return interrupted = PyErr_CheckSignals() != 0;
    });
  }
  if (interrupted) throw nb::python_error();
  return booster.trees().size();
}

// The trees from `first` on as flat arrays: (edge, leverage, offset, feature, left, threshold, missing_left, value,
// gain, set, codes).
nb::tuple trees(const Booster& booster, std::size_t first) {
  const Use use(booster);
  const auto& all = booster.trees();
  require(first <= all.size(), "there are fewer trees");
  const std::ptrdiff_t skipped = static_cast<std::ptrdiff_t>(first);
  std::vector<double> edge(booster.edges().begin() + skipped, booster.edges().end());
  std::vector<double> leverage(booster.leverages().begin() + skipped, booster.leverages().end());
  std::vector<std::int64_t> offset{0};
  std::vector<std::int32_t> feature, left, set;
  std::vector<double> threshold, value, gain;
  std::vector<std::uint8_t> missing_left;
  std::vector<std::uint64_t> codes;
  for (std::size_t tree = first; tree < all.size(); ++tree) {
    for (const Node& node : all[tree]) {
      feature.push_back(node.feature);
      left.push_back(node.left);
      missing_left.push_back(node.missing_left);
      value.push_back(node.value);
      gain.push_back(node.gain);
      set.push_back(-1);
      threshold.push_back(0.0);
      if (node.feature < 0) continue;
      const Column& column = booster.dataset().columns[static_cast<std::size_t>(node.feature)];
      if (column.categories > 0) {
        set.back() = static_cast<std::int32_t>(codes.size() / 4);
        codes.insert(codes.end(), node.goes_left.words().begin(), node.goes_left.words().end());
      } else {
        threshold.back() = node.code < column.thresholds.size() ? column.thresholds[node.code]
                                                                : kInfinity;  // all known values go left
      }
    }
    offset.push_back(static_cast<std::int64_t>(feature.size()));
  }
  return nb::make_tuple(to_numpy(std::move(edge)), to_numpy(std::move(leverage)), to_numpy(std::move(offset)),
                        to_numpy(std::move(feature)), to_numpy(std::move(left)), to_numpy(std::move(threshold)),
                        to_numpy(std::move(missing_left)), to_numpy(std::move(value)), to_numpy(std::move(gain)),
                        to_numpy(std::move(set)), to_numpy(std::move(codes)));
}

// ---- forests ----

std::unique_ptr<Forest> make_forest(const Vector<std::int64_t>& offset, const Vector<std::int32_t>& feature,
                                    const Vector<std::int32_t>& left, const Vector<double>& threshold,
                                    const Vector<std::uint8_t>& missing_left, const Vector<double>& value,
                                    const Vector<std::int32_t>& set, const Vector<std::uint64_t>& codes,
                                    std::size_t features) {
  const std::size_t nodes = feature.shape(0);
  require(offset.shape(0) > 0, "offset must have one entry more than there are trees");
  require(left.shape(0) == nodes && threshold.shape(0) == nodes && missing_left.shape(0) == nodes &&
              value.shape(0) == nodes && set.shape(0) == nodes,
          "one entry per node");
  require(codes.shape(0) % 4 == 0, "a set of codes has four words");
  require_aligned(offset, feature, left, threshold, value, set, codes);
  return std::make_unique<Forest>(
      ForestArrays{offset.shape(0) - 1, nodes, codes.shape(0) / 4, offset.data(), feature.data(), left.data(),
                   threshold.data(), missing_left.data(), value.data(), set.data(), codes.data()},
      features);
}

template <typename Real>
void add_scores(const Forest& forest, const Table<Real>& X, std::size_t first, std::size_t last, int threads,
                const Output& out) {
  const Matrix<Real> matrix = view(X);
  require(matrix.columns == forest.features(), "X has more or fewer columns than the trees were grown on");
  require(out.shape(0) == matrix.rows, "one score per row");
  require_aligned(out);
  require(threads >= 1, "threads must be positive");
  require(first <= last && last <= forest.trees(), "there are fewer trees");
  double* to = out.data();
  interruptible(matrix.rows * (last - first) < 20000 ? 1 : threads,
                [&](ThreadPool& pool) { forest.add_scores(matrix, first, last, to, pool); });
}

template <typename Real>
void leaves(const Forest& forest, const Table<Real>& X, std::size_t first, std::size_t last, int threads,
            const nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out) {
  const Matrix<Real> matrix = view(X);
  require(matrix.columns == forest.features(), "X has more or fewer columns than the trees were grown on");
  require(first <= last && last <= forest.trees(), "there are fewer trees");
  require(out.shape(0) == matrix.rows && out.shape(1) == last - first, "one leaf per row and tree");
  require_aligned(out);
  require(threads >= 1, "threads must be positive");
  std::int32_t* to = out.data();
  interruptible(matrix.rows * (last - first) < 20000 ? 1 : threads,
                [&](ThreadPool& pool) { forest.leaves(matrix, first, last, to, pool); });
}

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // at exit other libraries may still hold a model: nobody's fault
  module.doc() = "The compiled core of untwist.";
  module.def("clipped_logit", &fill<clipped_logit>, nb::arg("z").noconvert(), nb::arg("alpha"),
             nb::arg("out").noconvert(), "Log-odds of the clean posterior at scores z, clipped inverse link.");
  module.def("clipped_posterior", &fill<clipped_posterior>, nb::arg("z").noconvert(), nb::arg("alpha"),
             nb::arg("out").noconvert(), "The clean posterior at scores z, clipped inverse link.");
  module.def("exact_logit", &fill<exact_logit>, nb::arg("z").noconvert(), nb::arg("alpha"), nb::arg("out").noconvert(),
             "Log-odds of the clean posterior at scores z, exact inverse link.");
  module.def("boosting_weights", &boosting_weights, nb::arg("margin"), nb::arg("own"), nb::arg("alpha"),
             nb::arg("exact_link"), nb::arg("unit"), nb::arg("threads"), nb::arg("out").noconvert(),
             "Boosting weights: round(weight * own * unit) / unit.");
  module.def("weight_bits", &weight_bits, nb::arg("total_weight"), nb::arg("rows"),
             "The unit of the fixed point is 2 to this power.");
  nb::class_<Dataset>(module, "Dataset")
      .def(nb::new_(&make_dataset), nb::arg("labels"), nb::arg("classes"), nb::arg("features"), nb::arg("lean") = false,
           "Rows to be binned, grouped by class; lean: in half the memory, for add_rows only.")
      .def("look", &look<double>, "See all columns before the first are added.")
      .def("look", &look<float>, "See all columns before the first are added.")
      .def("add_columns", &add_columns<double>, "Bin columns and keep their codes from feature `first` on.")
      .def("add_columns", &add_columns<float>, "Bin columns and keep their codes from feature `first` on.")
      .def("set_bins", &set_bins, "Take over the bins of a Sketch, before the first rows are added.")
      .def("add_rows", &add_rows<double>, "Keep the codes of a block of rows from row `first` on.")
      .def("add_rows", &add_rows<float>, "Keep the codes of a block of rows from row `first` on.")
      .def("hashes", &hashes, "A hash of each row's codes.");
  nb::class_<Sketch>(module, "Sketch")
      .def(nb::new_(&make_sketch), nb::arg("categories"), nb::arg("max_bins"), nb::arg("largest") = 0.0,
           "Bins of rows that come in blocks; `largest` is the largest weight of all, 0 if rows have none.")
      .def("look", &see<double, false>, "See a block of rows.")
      .def("look", &see<float, false>, "See a block of rows.")
      .def_prop_ro("needs_draw", &Sketch::needs_draw, "Whether all rows must be seen again, by `draw`.")
      .def("draw", &see<double, true>, "See a block of rows again.")
      .def("draw", &see<float, true>, "See a block of rows again.")
      .def("state", &state, "What was looked at; after a `draw`, what was drawn.")
      .def("merge", &merge, "Take in the state of another Sketch, of other rows.")
      .def("thresholds", &thresholds, "The thresholds of each column.");
  module.def("encode", &encode_block<double>, "Codes of a block of rows, 255 for missing values.");
  module.def("encode", &encode_block<float>, "Codes of a block of rows, 255 for missing values.");
  nb::class_<Booster>(module, "Booster")
      .def("boost", &boost, nb::arg("rounds"), nb::arg("patience") = 0, nb::arg("threads") = 1,
           "Run rounds; the number of trees so far.")
      .def("trees", &trees, nb::arg("first"), "Flat arrays of the trees from `first` on.")
      .def(
          "scores",
          [](const Booster& booster) {
            const Use use(booster);
            return to_numpy(booster.scores());
          },
          "Scores of all rows.")
      .def(
          "losses",
          [](const Booster& booster) {
            const Use use(booster);
            return to_numpy(std::vector<double>(booster.losses()));
          },
          "Log-loss of the watched rows after each round.")
      .def(
          "errors",
          [](const Booster& booster) {
            const Use use(booster);
            return to_numpy(std::vector<double>(booster.errors()));
          },
          "Their share of wrong signs.");
  module.def("booster", &make_booster, "PILBoost over histogram trees for binned rows.");
  nb::class_<Forest>(module, "Forest")
      .def(nb::new_(&make_forest), "Trees prepared to be walked.")
      .def("add_scores", &add_scores<double>, nb::arg("X"), nb::arg("first"), nb::arg("last"), nb::arg("threads"),
           nb::arg("out").noconvert(), "Add the scores of trees [first, last) to out.")
      .def("add_scores", &add_scores<float>, nb::arg("X"), nb::arg("first"), nb::arg("last"), nb::arg("threads"),
           nb::arg("out").noconvert(), "Add the scores of trees [first, last) to out.")
      .def("leaves", &leaves<double>, nb::arg("X"), nb::arg("first"), nb::arg("last"), nb::arg("threads"),
           nb::arg("out").noconvert(), "The leaves of trees [first, last).")
      .def("leaves", &leaves<float>, nb::arg("X"), nb::arg("first"), nb::arg("last"), nb::arg("threads"),
           nb::arg("out").noconvert(), "The leaves of trees [first, last).");
}
