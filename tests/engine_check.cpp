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
  std::vector<float> weight;
  std::size_t rows, columns, negatives;
};

Data make_data(std::size_t rows, std::size_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Data data{std::vector<double>(rows * columns), {}, rows, columns, 1 + rows / 3};
  for (std::size_t i = 0; i < data.X.size(); ++i) {
    const double x = normal(random);
    const bool few = i % columns % 2 == 1;
    data.X[i] = random() % 13 == 0 ? std::numeric_limits<double>::quiet_NaN() : few ? std::round(x) : x;
  }
  if (seed % 2 == 1) {
    for (std::size_t i = 0; i < rows; ++i) data.weight.push_back(static_cast<float>(1 + random() % 4) / 4.0f);
  }
  return data;
}

std::unique_ptr<Booster> fit(const Data& data, const Settings& settings, int rounds, int threads) {
  ThreadPool pool(threads);
  const Matrix<double> X(data.X.data(), data.rows, data.columns, static_cast<std::ptrdiff_t>(data.columns), 1);
  const std::vector<std::uint64_t> whole(data.rows, std::uint64_t{1} << 32);
  std::vector<std::size_t> order(data.rows);
  for (std::size_t i = 0; i < data.rows; ++i) order[i] = i;
  Sample sample;
  sample.rows = data.rows;
  sample.negatives = data.negatives;
  sample.weight = data.weight;
  sample.total_weight = static_cast<double>(data.rows);
  sample.columns = find_bins(X, whole.data(), 255, pool);
  sample.codes.resize(data.rows * data.columns + kPadding);
  encode(X, order, sample.columns, sample.codes.data(), pool);
  auto booster = make_rounds(std::move(sample), settings, threads);
  booster->boost(rounds);
  return booster;
}

int main() {
  const std::size_t shapes[][2] = {{3, 1}, {7, 2}, {100, 9}, {2000, 16}, {9000, 7}, {20000, 28}};
  const double alphas[] = {0.5, 1.0, 1.1, 4.0, kInfinity};
  int cases = 0;
  for (const auto& shape : shapes) {
    for (const double alpha : alphas) {
      const Data data = make_data(shape[0], shape[1], static_cast<unsigned>(cases));
      const Settings settings{alpha, cases % 5 == 4, 2.0, 1 + cases % 7, cases % 3 == 0 ? 1.5 : 0.0};
      const int rounds = shape[0] > 5000 ? 3 : 10;
      const auto one = fit(data, settings, rounds, 1);
      const auto many = fit(data, settings, rounds, 3);
      check(one->edges() == many->edges(), "the number of threads changed the edges");

      std::vector<std::int64_t> offset{0};
      std::vector<std::int32_t> feature, left;
      std::vector<double> threshold, value;
      std::vector<std::uint8_t> missing_left;
      for (const Tree& tree : one->trees()) {
        for (const Node& node : tree) {
          feature.push_back(node.feature);
          left.push_back(node.left);
          missing_left.push_back(node.missing_left);
          value.push_back(node.value);
          const bool inner = node.feature >= 0;
          const auto& limits = one->sample().columns[inner ? static_cast<std::size_t>(node.feature) : 0].thresholds;
          threshold.push_back(inner && node.code < limits.size() ? limits[node.code] : kInfinity);
        }
        offset.push_back(static_cast<std::int64_t>(feature.size()));
      }
      const Forest forest{offset.data(), feature.data(), left.data(), threshold.data(), missing_left.data(), value.data()};
      const Matrix<double> X(data.X.data(), data.rows, data.columns, static_cast<std::ptrdiff_t>(data.columns), 1);
      std::vector<double> scores(data.rows, 0.0), expected(data.rows, 0.0);
      ThreadPool pool(2);
      add_scores(X, forest, 0, one->trees().size(), scores.data(), pool);
      std::vector<Code> missing_codes;
      for (const Column& column : one->sample().columns) missing_codes.push_back(column.missing_code());
      for (const Tree& tree : one->trees()) {
        for (std::size_t row = 0; row < data.rows; ++row) {
          expected[row] += leaf_value(tree, missing_codes, one->sample().codes.data() + row * data.columns);
        }
      }
      check(scores == expected, "raw rows and codes lead to different leaves");
      ++cases;
    }
  }
  std::printf("%d passed, 0 failed\n", cases);
}
