// The engine on random data of many shapes, to be compiled with sanitizers (`make sanitize`): it must not touch memory
// it does not own, race, or depend on the number of threads; and it must predict what it trained.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "../../cpp/predict.hpp"
#include "../../cpp/rounds.hpp"

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
  for (std::size_t column = 4; column < columns; column += 5)
    data.categories[column] = 3 + static_cast<int>(seed * 41 % 252);
  for (std::size_t i = 0; i < data.X.size(); ++i) {
    const double x = normal(random);
    const int categories = data.categories[i % columns];
    const double value = categories > 0         ? static_cast<double>(random() % static_cast<unsigned>(categories))
                         : i % columns % 2 == 1 ? std::round(x)
                                                : x;
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

std::unique_ptr<Booster> fit(const Data& data, const Task& task, const Settings& settings, int rounds, int threads,
                             bool blocks = false) {
  ThreadPool pool(threads);
  auto dataset = blocks ? from_blocks(data, pool) : in_memory(data, pool);
  auto booster = make_rounds(dataset, task, settings);
  const auto go_on = [] { return false; };
  booster->boost(rounds / 2, 0, threads, go_on);
  booster->boost(rounds - rounds / 2, 4, threads, go_on);
  return booster;
}

// Raw rows come to the leaves that their codes came to.
void predict_again(const Data& data, const Booster& booster) {
  std::vector<std::int64_t> offset{0};
  std::vector<std::int32_t> feature, left, set;
  std::vector<double> threshold, value;
  std::vector<std::uint8_t> missing_left;
  std::vector<std::uint64_t> codes;
  for (const Tree& tree : booster.trees()) {
    for (const Node& node : tree) {
      feature.push_back(node.feature);
      left.push_back(node.left);
      missing_left.push_back(node.missing_left);
      value.push_back(node.value);
      set.push_back(-1);
      threshold.push_back(kInfinity);
      if (node.feature < 0) continue;
      const Column& column = booster.dataset().columns[static_cast<std::size_t>(node.feature)];
      if (column.categories > 0) {
        set.back() = static_cast<std::int32_t>(codes.size() / 4);
        codes.insert(codes.end(), node.goes_left.words().begin(), node.goes_left.words().end());
      } else if (node.code < column.thresholds.size()) {
        threshold.back() = column.thresholds[node.code];
      }
    }
    offset.push_back(static_cast<std::int64_t>(feature.size()));
  }
  const Forest forest(
      ForestArrays{booster.trees().size(), feature.size(), codes.size() / 4, offset.data(), feature.data(), left.data(),
                   threshold.data(), missing_left.data(), value.data(), set.data(), codes.data()},
      data.columns);
  std::vector<double> scores(data.rows, 0.0);
  ThreadPool pool(2);
  forest.add_scores(data.matrix(), 0, booster.trees().size(), scores.data(), pool);
  check(scores == booster.scores(), "raw rows and codes lead to different leaves");
}

void compare(const Data& data, const Task& task, const Settings& settings, int rounds) {
  const auto one = fit(data, task, settings, rounds, 1);
  const auto many = fit(data, task, settings, rounds, 3);
  check(one->edges() == many->edges(), "the number of threads changed the edges");
  check(one->losses() == many->losses() && one->errors() == many->errors(), "the number of threads changed the losses");
  check(one->scores() == many->scores(), "the number of threads changed the scores");
  const auto streamed = fit(data, task, settings, rounds, 2, true);
  check(one->edges() == streamed->edges() && one->scores() == streamed->scores(), "rows in blocks make another model");
  if (task.start.empty()) predict_again(data, *one);
}

// A run that is stopped in a tree goes on as if nothing had been.
void interrupt(const Data& data, const Task& task, const Settings& settings) {
  ThreadPool pool(2);
  auto dataset = std::make_shared<Dataset>(data.labels.data(), data.rows, 3, data.columns);
  const WholeWeights weights(data.weight.data(), data.weight.size());
  dataset->look(data.matrix(), weights, pool);
  dataset->add_columns(data.matrix(), 0, data.categories, weights, 255, pool);
  auto whole = make_rounds(dataset, task, settings);
  auto stopped = make_rounds(dataset, task, settings);
  whole->boost(2, 0, 2, [] { return false; });
  stopped->boost(2, 0, 2, [] { return true; });
  stopped->boost(2 - static_cast<int>(stopped->trees().size()), 0, 2, [] { return false; });
  check(whole->scores() == stopped->scores(), "an interruption changed the scores");
}

// What the grid of main does not reach: each case is there for a part of the core of its own.
int rare_cases(bool quick) {
  int cases = 0;
  for (std::size_t columns = 1; columns <= 17; ++columns) {  // the rest of eight columns at a time, rows counted or not
    const Data data = make_data(700, columns, static_cast<unsigned>(columns));
    Settings settings;
    settings.least_rows = columns % 2 == 0 ? 3.0 : 0.0;
    settings.by_edge = columns % 3 == 0;
    settings.step_size = columns % 3 == 0 ? 4.0 : 0.5;
    compare(data, {1, data.weight, {}, {}}, settings, 4);
    ++cases;
  }
  for (const bool wide : {false, true}) {  // trees with more leaves than labels; sums of 32 and of 64 bits
    if (wide && quick) continue;
    Data data = make_data(wide ? 18000 : 3000, 6, 2);
    Settings settings;
    settings.max_depth = 10;
    for (std::size_t i = 0; i < data.columns; ++i)
      settings.monotone.push_back(data.categories[i] > 0 ? 0 : static_cast<std::int8_t>(static_cast<int>(i % 3) - 1));
    compare(data, {2, {}, {}, {}}, settings, 2);
    settings.monotone.clear();
    settings.least_rows = 1.0;
    compare(data, {2, {}, {}, {}}, settings, 2);
    for (std::size_t i = 0; i < data.rows; ++i) data.weight.push_back(static_cast<double>(i % 129));  // copies
    compare(data, {0, data.weight, data.weight, {}}, settings, 2);
    for (double& weight : data.weight) weight /= 128.0;  // shares of a row
    Task started{1, data.weight, data.weight, {}};
    for (std::size_t i = 0; i < data.rows; ++i) started.start.push_back(static_cast<double>(i % 7) - 3.0);
    for (const double alpha : {2.0, 1.5}) {
      settings.alpha = alpha;
      compare(data, started, settings, 2);
      settings.exact_link = true;
      settings.row_share = 0.7;
      compare(data, started, settings, 2);
      settings.exact_link = false;
    }
    cases += 7;
  }
  if (quick) return cases;
  const Data large = make_data(120000, 3, 4);  // thresholds from a sample of the rows
  Settings settings;
  settings.max_depth = 9;
  compare(large, {1, {}, {}, {}}, settings, 1);
  interrupt(large, {1, {}, {}, {}}, settings);
  return cases + 2;
}

int main(int count, char**) {
  const bool quick = count > 1;  // for valgrind
  const std::size_t shapes[][2] = {{3, 1}, {7, 2}, {100, 9}, {2000, 16}, {9000, 7}, {20000, 28}};
  const double alphas[] = {0.5, 1.0, 1.1, 4.0, kInfinity};
  int cases = 0;
  for (const auto& shape : shapes) {
    if (quick && shape[0] > 1000) continue;
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
      for (std::size_t i = 0; i < shape[1] && cases % 7 == 0; ++i)
        settings.monotone.push_back(data.categories[i] > 0 ? 0 : static_cast<std::int8_t>(static_cast<int>(i % 3) - 1));
      Task task{static_cast<std::size_t>(cases % 3), data.weight, std::vector<double>(data.rows, 1.0), {}};
      const int rounds = shape[0] > 5000 ? 4 : 10;
      compare(data, task, settings, rounds);
      ++cases;
    }
  }
  cases += rare_cases(quick);
  std::printf("%d passed, 0 failed\n", cases);
}
