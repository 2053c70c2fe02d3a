// Grows randomised trees on random tables of all shapes. Rows that walk down one by one must fill every leaf with what
// its values say, and neither threads nor the order of the rows may change anything.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "../../cpp/randomised.hpp"
#include "naive_forest.hpp"
#include "sparse_table.hpp"

using namespace untwist;

std::mt19937_64 random_bits(11);

std::size_t draw_below(std::size_t end) { return random_bits() % end; }
double draw_share() { return std::ldexp(static_cast<double>(random_bits() >> 11), -53); }

void fail(const std::string& what) {
  std::printf("FAILED: %s\n", what.c_str());
  std::exit(1);
}

struct Sample {
  std::size_t rows, features, classes;
  std::vector<int> category_counts;
  std::vector<double> X;  // Row by row.
  std::vector<std::uint32_t> labels;
  std::vector<double> weight;
};

Sample draw_sample() {
  Sample sample;
  sample.classes = 1 + draw_below(draw_below(2) ? 4 : 60);
  sample.rows = sample.classes + draw_below(draw_below(3) ? 300 : 2000);
  sample.features = 1 + draw_below(draw_below(4) ? 6 : 80);
  for (std::size_t column = 0; column < sample.features; ++column) {
    sample.category_counts.push_back(draw_below(3) ? 0 : 1 + static_cast<int>(draw_below(254)));
  }
  const std::size_t distinct = draw_below(2) ? 5 : 1000;
  const std::size_t missing_in = draw_below(2) ? 0 : 2 + draw_below(8);
  for (std::size_t row = 0; row < sample.rows; ++row) {
    sample.labels.push_back(static_cast<std::uint32_t>(row < sample.classes ? row : draw_below(sample.classes)));
    for (std::size_t column = 0; column < sample.features; ++column) {
      const int count = sample.category_counts[column];
      double x = static_cast<double>(draw_below(count > 0 ? static_cast<std::size_t>(count) : distinct));
      if (count == 0) x += static_cast<double>(sample.labels.back());
      if (missing_in > 0 && draw_below(missing_in) == 0) x = std::numeric_limits<double>::quiet_NaN();
      sample.X.push_back(x);
    }
  }
  const std::size_t kind = draw_below(4);
  for (std::size_t row = 0; kind > 0 && row < sample.rows; ++row) {
    const double weight[] = {0.0, static_cast<double>(draw_below(2)), static_cast<double>(draw_below(5)), draw_share()};
    sample.weight.push_back(weight[kind]);
  }
  if (kind > 0) sample.weight[0] = 1.0;
  return sample;
}

// Leaves few cells of the table other than 0, and no categories.
Sample thin_out(const Sample& sample) {
  Sample thin = sample;
  thin.category_counts.assign(sample.features, 0);
  for (double& x : thin.X) x = draw_below(10) ? 0.0 : x;
  return thin;
}

FlatForest grow(const Sample& sample, const RandomisedGrowth& growth, int threads,
                Layout layout = Layout::kRowsAndColumns) {
  ThreadPool pool(threads);
  Dataset dataset(sample.labels.data(), sample.rows, sample.classes, sample.features, layout);
  const Matrix<double> X(sample.X.data(), sample.rows, sample.features, static_cast<std::ptrdiff_t>(sample.features),
                         1);
  const WholeWeights weight;
  if (layout == Layout::kSparse) {
    dataset.add_sparse_columns(SparseTable(X).view(), weight, 255, pool);
  } else {
    dataset.observe(X, weight, pool);
    dataset.add_columns(X, 0, sample.category_counts, weight, 255, pool);
  }
  return grow_randomised(dataset, sample.weight, growth, pool);
}

Sample shuffle(const Sample& sample) {
  std::vector<std::size_t> order(sample.rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random_bits);
  Sample shuffled = sample;
  for (std::size_t i = 0; i < sample.rows; ++i) {
    const auto from = sample.X.begin() + static_cast<std::ptrdiff_t>(order[i] * sample.features);
    std::copy_n(from, sample.features, shuffled.X.begin() + static_cast<std::ptrdiff_t>(i * sample.features));
    shuffled.labels[i] = sample.labels[order[i]];
    if (!sample.weight.empty()) shuffled.weight[i] = sample.weight[order[i]];
  }
  return shuffled;
}

void compare(const FlatForest& one, const FlatForest& other, const char* what) {
  const bool same = one.offset == other.offset && one.feature == other.feature && one.left == other.left &&
                    one.threshold == other.threshold && one.missing_left == other.missing_left &&
                    one.value == other.value && one.gain == other.gain && one.set == other.set &&
                    one.codes == other.codes && one.leverage == other.leverage;
  if (!same) fail(what);
}

// Every leaf has the logarithms of the shares of those rows that come to it, of two classes their difference, and
// enough rows unless it is the root.
void check_leaves(const Sample& sample, const FlatForest& forest, const RandomisedGrowth& growth) {
  const Matrix<double> X(sample.X.data(), sample.rows, sample.features, static_cast<std::ptrdiff_t>(sample.features),
                         1);
  const auto weight_of = [&](std::size_t row) {
    if (sample.weight.empty()) return 1.0;
    return are_whole(sample.weight) ? sample.weight[row]
                                    : std::ldexp(std::round(std::ldexp(sample.weight[row], 24)), -24);
  };
  std::vector<double> prior(sample.classes, growth.smoothing);
  double total = growth.smoothing * static_cast<double>(sample.classes);
  for (std::size_t row = 0; row < sample.rows; ++row) {
    prior[sample.labels[row]] += weight_of(row);
    total += weight_of(row);
  }
  for (std::size_t tree = 0; tree < growth.trees; ++tree) {
    const std::size_t first = static_cast<std::size_t>(forest.offset[tree]);
    const std::size_t nodes = static_cast<std::size_t>(forest.offset[tree + 1]) - first;
    std::vector<double> found(nodes * sample.classes, 0.0);
    for (std::size_t row = 0; row < sample.rows; ++row) {
      const std::size_t leaf = static_cast<std::size_t>(find_leaf_naively(forest, tree, X, row));
      found[leaf * sample.classes + sample.labels[row]] += weight_of(row);
    }
    for (std::size_t node = 0; node < nodes; ++node) {
      const double* value = forest.value.data() + (first + node) * forest.outputs;
      const double* weights = found.data() + node * sample.classes;
      const double sum = std::accumulate(weights, weights + sample.classes, 0.0);
      const bool is_leaf = forest.feature[first + node] < 0;
      if (is_leaf && node > 0 && sum < growth.min_samples_leaf - 1e-9) fail("a leaf with too little weight");
      std::vector<double> expected(sample.classes, 0.0);
      for (std::size_t k = 0; is_leaf && k < sample.classes; ++k) {
        const double share = (weights[k] + growth.smoothing * prior[k] / total) / (sum + growth.smoothing);
        expected[k] = std::log(share) / static_cast<double>(growth.trees);
      }
      if (sample.classes == 2) expected = {expected[1] - expected[0]};
      if (expected.size() != forest.outputs) fail("a leaf with more or fewer values than it needs");
      for (std::size_t output = 0; output < forest.outputs; ++output) {
        if (!(std::abs(value[output] - expected[output]) < 1e-9)) fail("a leaf with other values than its rows have");
      }
    }
  }
}

int main(int count, char** words) {
  const int times = count > 1 ? std::atoi(words[1]) : 150;
  std::size_t nodes = 0;
  for (int time = 0; time < times; ++time) {
    const Sample sample = draw_sample();
    RandomisedGrowth growth;
    growth.trees = 1 + draw_below(6);
    growth.first_tree = draw_below(3) ? 0 : random_bits();
    growth.min_samples_leaf = draw_below(2) ? static_cast<double>(draw_below(12)) : 10.0 * draw_share();
    growth.max_features = draw_below(4) ? draw_share() + 1e-9 : 1.0;
    growth.smoothing = draw_below(2) ? 1.0 : 0.01 + draw_share();
    growth.seed = random_bits();
    const FlatForest forest = grow(sample, growth, 1);
    nodes += forest.feature.size();
    check_leaves(sample, forest, growth);
    compare(forest, grow(sample, growth, 2 + static_cast<int>(draw_below(3))), "threads");
    compare(forest, grow(shuffle(sample), growth, 1), "the order of the rows");
    const Sample thin = thin_out(sample);
    const FlatForest dense = grow(thin, growth, 1);
    check_leaves(thin, dense, growth);
    compare(dense, grow(thin, growth, 2, Layout::kSparse), "a sparse table");
    const Forest prepared(forest.view(), sample.features);  // It checks that the arrays are sound.
    if (prepared.outputs() != forest.outputs) fail("outputs");
  }
  std::printf("randomised: %d tables, %zu nodes\n", times, nodes);
}
