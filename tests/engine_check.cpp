// The engine on random data of many shapes, to be compiled with sanitizers (`make sanitize`): it must not touch memory
// it does not own, race, or depend on the number of threads; and it must predict what it trained.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "../cpp/predict.hpp"
#include "../cpp/rounds.hpp"

using namespace untwist;

void check(bool condition, const char* what) {
  if (condition) return;
  std::printf("FAILED: %s\n", what);
  std::exit(1);
}

struct Data {
  std::vector<double> X;
  std::vector<double> weight;
  std::vector<std::uint32_t> labels;
  std::vector<int> categories;
  std::size_t rows, columns;

  Matrix<double> matrix() const { return {X.data(), rows, columns, static_cast<std::ptrdiff_t>(columns), 1}; }
};

// Numbers with many and with few values, categories in every fifth column, missing values; weights, some of them 0.
Data make_data(std::size_t rows, std::size_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Data data{std::vector<double>(rows * columns), {}, {}, std::vector<int>(columns, 0), rows, columns};
  for (std::size_t column = 4; column < columns; column += 5) data.categories[column] = 3 + static_cast<int>(seed * 41 % 252);
  for (std::size_t i = 0; i < data.X.size(); ++i) {
    const double x = normal(random);
    const int categories = data.categories[i % columns];
    const double value = categories > 0 ? static_cast<double>(random() % static_cast<unsigned>(categories)) : i % columns % 2 == 1 ? std::round(x) : x;
    data.X[i] = random() % 13 == 0 ? std::numeric_limits<double>::quiet_NaN() : value;
  }
  for (std::size_t i = 0; i < rows; ++i) {
    data.labels.push_back(i < 3 ? static_cast<std::uint32_t>(i) : static_cast<std::uint32_t>(random() % 3));
    if (seed % 2 == 1) data.weight.push_back(i < 3 ? 1.0 : static_cast<double>(random() % 4));
  }
  return data;
}

// The same rows in blocks, half of them seen by another sketch.
std::shared_ptr<Dataset> from_blocks(const Data& data, ThreadPool& pool) {
  auto dataset = std::make_shared<Dataset>(data.labels.data(), data.rows, 3, data.columns, true);
  const double largest = largest_of(data.weight.data(), data.weight.size());
  Sketch sketch(data.categories, 255, largest), other(data.categories, 255, largest);
  const std::size_t size = data.rows / 5 + 1;
  const auto each = [&](const auto& take) {
    for (std::size_t first = 0; first < data.rows; first += size) {
      const Matrix<double> block(data.X.data() + first * data.columns, std::min(size, data.rows - first), data.columns,
                                 static_cast<std::ptrdiff_t>(data.columns), 1);
      take(block, first, data.weight.empty() ? nullptr : data.weight.data() + first);
    }
  };
  each([&](const auto& block, std::size_t first, const double* weight) {
    (first < data.rows / 2 ? sketch : other).look(block, weight, pool);
  });
  sketch.merge(other.state());
  check(!sketch.needs_draw(), "few rows need one look");
  dataset->set_bins(sketch.bins(pool));
  each([&](const auto& block, std::size_t first, const double* weight) {
    dataset->add_rows(block, first, WholeWeights(weight, weight == nullptr ? 0 : block.rows), pool);
  });
  return dataset;
}

std::shared_ptr<Dataset> in_memory(const Data& data, ThreadPool& pool) {
  auto dataset = std::make_shared<Dataset>(data.labels.data(), data.rows, 3, data.columns);
  const WholeWeights weights(data.weight.data(), data.weight.size());
  dataset->look(data.matrix(), weights, pool);
  dataset->add_columns(data.matrix(), 0, data.categories, weights, 255, pool);
  return dataset;
}

std::unique_ptr<Booster> fit(const Data& data, const Task& task, const Settings& settings, int rounds, int threads, bool blocks = false) {
  ThreadPool pool(threads);
  auto dataset = blocks ? from_blocks(data, pool) : in_memory(data, pool);
  auto booster = make_rounds(dataset, task, settings);
  const auto go_on = [] { return false; };
  booster->boost(rounds / 2, 0, threads, go_on);
  booster->boost(rounds - rounds / 2, 4, threads, go_on);
  return booster;
}

int main() {
  const std::size_t shapes[][2] = {{3, 1}, {7, 2}, {100, 9}, {2000, 16}, {9000, 7}, {20000, 28}};
  const double alphas[] = {0.5, 1.0, 1.1, 4.0, kInfinity};
  int cases = 0;
  for (const auto& shape : shapes) {
    for (const double alpha : alphas) {
      const Data data = make_data(shape[0], shape[1], static_cast<unsigned>(cases));
      Settings settings;
      settings.alpha = alpha;
      settings.exact_link = cases % 5 == 4;
      settings.step_size = 2.0;
      settings.max_depth = cases % 4 == 3 ? 60 : 1 + cases % 7;
      settings.max_leaves = cases % 4 == 3 ? 2 + cases : 0;
      settings.l2 = cases % 3 == 0 ? 1.5 : 0.0;
      settings.least_rows = cases % 3 == 1 ? 2.0 : 0.0;
      settings.least_share = cases % 6 == 2 ? 0.1 : 0.0;
      settings.smoothing = 1.0;
      settings.row_share = cases % 4 == 1 ? 0.6 : 1.0;
      settings.column_share = cases % 4 == 2 ? 0.5 : 1.0;
      settings.seed = static_cast<std::uint64_t>(cases);
      for (std::size_t i = 0; i < shape[1] && cases % 7 == 0; ++i) settings.monotone.push_back(data.categories[i] > 0 ? 0 : static_cast<std::int8_t>(static_cast<int>(i % 3) - 1));
      Task task{static_cast<std::size_t>(cases % 3), data.weight, std::vector<double>(data.rows, 1.0), {}};
      const int rounds = shape[0] > 5000 ? 4 : 10;
      const auto one = fit(data, task, settings, rounds, 1);
      const auto many = fit(data, task, settings, rounds, 3);
      check(one->edges() == many->edges(), "the number of threads changed the edges");
      check(one->losses() == many->losses() && one->errors() == many->errors(), "the number of threads changed the losses");
      check(one->scores() == many->scores(), "the number of threads changed the scores");
      const auto streamed = fit(data, task, settings, rounds, 2, true);
      check(one->edges() == streamed->edges() && one->scores() == streamed->scores(), "rows in blocks make another model");

      std::vector<std::int64_t> offset{0};
      std::vector<std::int32_t> feature, left, set;
      std::vector<double> threshold, value;
      std::vector<std::uint8_t> missing_left;
      std::vector<std::uint64_t> codes;
      for (const Tree& tree : one->trees()) {
        for (const Node& node : tree) {
          feature.push_back(node.feature);
          left.push_back(node.left);
          missing_left.push_back(node.missing_left);
          value.push_back(node.value);
          set.push_back(-1);
          threshold.push_back(kInfinity);
          if (node.feature < 0) continue;
          const Column& column = one->dataset().columns[static_cast<std::size_t>(node.feature)];
          if (column.categories > 0) {
            set.back() = static_cast<std::int32_t>(codes.size() / 4);
            codes.insert(codes.end(), node.goes_left.words().begin(), node.goes_left.words().end());
          } else if (node.code < column.thresholds.size()) {
            threshold.back() = column.thresholds[node.code];
          }
        }
        offset.push_back(static_cast<std::int64_t>(feature.size()));
      }
      const Forest forest(ForestArrays{one->trees().size(), feature.size(), codes.size() / 4, offset.data(), feature.data(), left.data(),
                                       threshold.data(), missing_left.data(), value.data(), set.data(), codes.data()},
                          data.columns);
      std::vector<double> scores(data.rows, 0.0);
      ThreadPool pool(2);
      forest.add_scores(data.matrix(), 0, one->trees().size(), scores.data(), pool);
      check(scores == one->scores(), "raw rows and codes lead to different leaves");
      ++cases;
    }
  }
  std::printf("%d passed, 0 failed\n", cases);
}
