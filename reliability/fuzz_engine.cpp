// The engine on data and settings that the border lets through, extremes included: any number of threads grows the same
// trees, and raw rows come to the leaves that their codes came to.
#include <cmath>
#include <memory>
#include <vector>

#include "../cpp/predict.hpp"
#include "../cpp/rounds.hpp"
#include "choices.hpp"

using namespace untwist;

namespace {

struct Data {
  std::vector<float> X;
  std::vector<std::uint32_t> labels;
  std::vector<int> categories;
  std::vector<double> weight;
  std::size_t rows, columns, classes;

  Matrix<float> matrix() const { return {X.data(), rows, columns, static_cast<std::ptrdiff_t>(columns), 1}; }
};

Data make_data(Choices& choices) {
  Data data;
  data.rows = choices.below(16) == 15 ? 2000 + choices.below(3000) : 2 + choices.below(90);
  data.columns = 1 + choices.below(5);
  data.classes = 1 + choices.below(3);
  for (std::size_t i = 0; i < data.columns; ++i) data.categories.push_back(choices.one({0, 0, 0, 1, 3, 254}));
  for (std::size_t i = 0; i < data.rows * data.columns; ++i) {
    const int count = data.categories[i % data.columns];
    const double value = i >= 400
                             ? static_cast<double>(data.X[i * 7 % 397 / data.columns * data.columns + i % data.columns])
                         : count > 0 ? static_cast<double>(choices.below(static_cast<std::size_t>(count)))
                                     : choices.number();
    data.X.push_back(static_cast<float>(std::max(-3e38, std::min(3e38, value))));
  }
  for (std::size_t i = 0; i < data.rows; ++i)
    data.labels.push_back(static_cast<std::uint32_t>(i < 100 ? choices.below(data.classes) : i * 31 % data.classes));
  const std::size_t kind = choices.below(4);
  for (std::size_t i = 0; i < data.rows && kind > 1; ++i) {
    const double drawn = static_cast<double>(choices.below(256));
    data.weight.push_back(i == 0 ? 1.0 : kind == 2 ? std::min(drawn, 128.0) : drawn / 255.0);
  }
  return data;
}

Settings make_settings(Choices& choices, const Data& data) {
  Settings settings;
  settings.alpha = choices.one({2.0, 1.0, 1.1, 0.5, 4.0, 1e-3, 1e9, kInfinity});
  settings.exact_link = choices.below(3) == 0;
  settings.step_size = choices.one({1.0, 4.0, 1e-9, 1e6, 1e300});
  settings.by_edge = choices.below(2) == 0;
  settings.least = choices.one({1e-6, 0.49, 1e-300});
  settings.max_depth = choices.one({1, 2, 3, 7, 60, std::numeric_limits<int>::max()});
  settings.max_leaves = choices.one({0, 0, 2, 3, 31, std::numeric_limits<int>::max()});
  settings.least_share = choices.one({0.0, 0.0, 1e-9, 0.1, 0.5});
  settings.l2 = choices.one({0.0, 0.0, 1.0, 1e-300, 1e300});
  settings.least_rows = choices.one({0.0, 0.0, 1.0, 20.0, 1e300});
  settings.smoothing = choices.one({0.0, 1.0, 1e300});
  settings.row_share = choices.one({1.0, 1.0, 0.5, 1e-9, 5e-324, 1.0 - 0x1p-53});
  settings.column_share = choices.one({1.0, 1.0, 0.5, 5e-324});
  settings.seed = choices.below(1000);
  settings.first_round = choices.one({0, 1, std::numeric_limits<int>::max()});
  const bool monotone = choices.below(4) == 0;
  for (std::size_t i = 0; i < data.columns && monotone; ++i)
    settings.monotone.push_back(
        choices.one({std::int8_t{0}, std::int8_t{1}, std::int8_t{-1}, std::int8_t{127}, std::int8_t{-128}}));
  return settings;
}

std::unique_ptr<Booster> fit(const Data& data, const Task& task, const Settings& settings, int max_bins, int rounds,
                             int threads) {
  ThreadPool pool(threads);
  auto dataset = std::make_shared<Dataset>(data.labels.data(), data.rows, data.classes, data.columns);
  const WholeWeights weights(data.weight.data(), data.weight.size());
  dataset->look(data.matrix(), weights, pool);
  dataset->add_columns(data.matrix(), 0, data.categories, weights, max_bins, pool);
  auto booster = make_rounds(dataset, task, settings);
  booster->boost(rounds, 0, threads, [] { return false; });
  booster->boost(rounds, 1, threads, [] { return false; });
  return booster;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  Choices choices(bytes, size);
  const Data data = make_data(choices);
  const Settings settings = make_settings(choices, data);
  Task task{choices.below(data.classes), data.weight, {}, {}};
  const bool watching = choices.below(2) == 0, started = choices.below(4) == 0;
  for (std::size_t i = 0; i < data.rows && watching; ++i)
    task.watch.push_back(i == 0 ? 1.0 : choices.one({0.0, 1.0, 1e-300, 1e300}));
  for (std::size_t i = 0; i < data.rows && started; ++i)
    task.start.push_back(choices.one({0.0, 1.0, -1e300, 1e300, 5e-324}));
  const int max_bins = choices.one({255, 2, 3, 16});
  const int rounds = choices.one({1, 2, 0, -1, 4});
  const auto one = fit(data, task, settings, max_bins, rounds, 1);
  if (data.rows > 1000) {
    const auto many = fit(data, task, settings, max_bins, rounds, 2);
    check(one->edges() == many->edges() && one->scores().size() == many->scores().size(),
          "the number of threads changed the trees");
  }
  std::vector<std::int64_t> offset{0};
  std::vector<std::int32_t> feature, left, set;
  std::vector<double> threshold, value;
  std::vector<std::uint8_t> missing_left;
  std::vector<std::uint64_t> codes;
  bool finite = true;
  for (const Tree& tree : one->trees()) {
    for (const Node& node : tree) {
      feature.push_back(node.feature);
      left.push_back(node.left);
      missing_left.push_back(node.missing_left);
      value.push_back(node.value);
      finite = finite && std::isfinite(node.value);
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
  const Forest forest(
      ForestArrays{one->trees().size(), feature.size(), codes.size() / 4, offset.data(), feature.data(), left.data(),
                   threshold.data(), missing_left.data(), value.data(), set.data(), codes.data()},
      data.columns);
  std::vector<double> scores(data.rows, 0.0);
  ThreadPool pool(1);
  forest.add_scores(data.matrix(), 0, one->trees().size(), scores.data(), pool);
  if (finite && !started) check(scores == one->scores(), "raw rows and codes lead to different leaves");
  return 0;
}
