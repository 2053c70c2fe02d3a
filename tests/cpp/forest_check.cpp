// Compares Forest with a naive twin on random forests of all shapes, and feeds it damaged arrays.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include "../../cpp/predict.hpp"

using namespace untwist;

std::mt19937_64 random_bits(7);
std::size_t below(std::size_t end) { return random_bits() % end; }

struct Arrays {
  std::vector<std::int64_t> offset{0};
  std::vector<std::int32_t> feature, left, set;
  std::vector<double> threshold, value;
  std::vector<std::uint8_t> missing_left;
  std::vector<std::uint64_t> codes;

  ForestArrays view() const {
    return {offset.size() - 1, feature.size(),      codes.size() / 4, offset.data(), feature.data(), left.data(),
            threshold.data(),  missing_left.data(), value.data(),     set.data(),    codes.data()};
  }
};

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double odd_value() {
  const double odd[] = {0.0,   -0.0,  kInf, -kInf, kNaN, kNaN,   1e300, -1e300,
                        255.0, 256.0, -1.0, 254.0, 2.5,  1e-310, 63.0,  64.0};
  return odd[below(std::size(odd))];
}

double number(std::size_t distinct) {
  if (below(8) == 0) return odd_value();
  const double whole = static_cast<double>(below(distinct)) - static_cast<double>(distinct / 2);
  return below(2) ? whole : whole / 7.0;
}

double code_value() { return below(8) == 0 ? odd_value() : static_cast<double>(below(256)); }

// `splits` splits at random leaves; `lopsided`: at the newest leaf. Children come in pairs, as the splits are made.
void add_tree(Arrays& forest, std::size_t features, std::size_t categorical, std::size_t splits, bool lopsided,
              std::size_t distinct) {
  std::vector<std::int32_t> left{-1};
  std::vector<std::size_t> open{0};
  for (std::size_t s = 0; s < splits; ++s) {
    const std::size_t node = left.size() == 1 ? 0 : (lopsided ? left.size() - 1 - below(2) : open[below(open.size())]);
    left[node] = static_cast<std::int32_t>(left.size());
    open.erase(std::find(open.begin(), open.end(), node));
    for (int child = 0; child < 2; ++child) {
      open.push_back(left.size());
      left.push_back(-1);
    }
  }
  for (std::size_t node = 0; node < left.size(); ++node) {
    const bool leaf = left[node] < 0;
    const std::size_t column = below(std::max<std::size_t>(features, 1));
    forest.feature.push_back(leaf ? -1 : static_cast<std::int32_t>(column));
    forest.left.push_back(leaf && below(2) ? static_cast<std::int32_t>(random_bits()) : left[node]);
    double threshold = number(distinct);
    if (threshold != threshold) threshold = 0.0;
    forest.threshold.push_back(leaf ? kNaN : threshold);
    forest.missing_left.push_back(static_cast<std::uint8_t>(below(2)));
    forest.value.push_back(std::ldexp(static_cast<double>(static_cast<std::int64_t>(random_bits())), -60));
    forest.set.push_back(-1);
    if (!leaf && column < categorical) {
      forest.set.back() = static_cast<std::int32_t>(forest.codes.size() / 4);
      for (int i = 0; i < 4; ++i) forest.codes.push_back(random_bits());
      forest.threshold.back() = kNaN;
      if (below(4) == 0) forest.set.back() = static_cast<std::int32_t>(below(forest.codes.size() / 4));
    }
  }
  forest.offset.push_back(static_cast<std::int64_t>(forest.feature.size()));
}

template <typename Real>
std::int32_t naive_leaf(const Arrays& forest, std::size_t tree, const Matrix<Real>& X, std::size_t row) {
  const std::size_t root = static_cast<std::size_t>(forest.offset[tree]);
  std::size_t node = 0;
  while (forest.feature[root + node] >= 0) {
    const std::size_t at = root + node;
    const double x = static_cast<double>(X(row, static_cast<std::size_t>(forest.feature[at])));
    bool left;
    if (forest.set[at] < 0) {
      left = x != x ? forest.missing_left[at] != 0 : x <= forest.threshold[at];
    } else if (!(x >= 0.0 && x <= 255.0) || x != std::floor(x)) {
      left = forest.missing_left[at] != 0;
    } else {
      const std::size_t code = static_cast<std::size_t>(x);
      left = (forest.codes[4 * static_cast<std::size_t>(forest.set[at]) + code / 64] >> (code % 64)) & 1;
    }
    node = static_cast<std::size_t>(forest.left[at]) + (left ? 0 : 1);
  }
  return static_cast<std::int32_t>(node);
}

void fail(const std::string& what) {
  std::printf("FAILED: %s\n", what.c_str());
  std::exit(1);
}

template <typename Real>
void compare(const Arrays& arrays, const Forest& forest, std::size_t features, std::size_t categorical,
             std::size_t rows, std::size_t distinct) {
  const std::size_t gap = below(3);  // strides: rows or columns first, with gaps, forwards or backwards
  const bool by_column = below(2);
  const bool backwards = below(3) == 0;
  const std::size_t inner = (by_column ? rows : features) + gap;
  const std::size_t size = std::max<std::size_t>(inner * (by_column ? features : rows), 1);
  std::vector<Real> values(size, static_cast<Real>(777));
  std::ptrdiff_t row_stride = by_column ? 1 : static_cast<std::ptrdiff_t>(inner);
  const std::ptrdiff_t column_stride = by_column ? static_cast<std::ptrdiff_t>(inner) : 1;
  const Real* start = values.data();
  if (backwards && rows > 0) {
    start += row_stride * static_cast<std::ptrdiff_t>(rows - 1);
    row_stride = -row_stride;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < features; ++column) {
      const std::ptrdiff_t at = start - values.data() + static_cast<std::ptrdiff_t>(row) * row_stride +
                                static_cast<std::ptrdiff_t>(column) * column_stride;
      values[static_cast<std::size_t>(at)] = static_cast<Real>(column < categorical ? code_value() : number(distinct));
    }
  }
  const Matrix<Real> X(start, rows, features, row_stride, column_stride);
  const std::size_t trees = arrays.offset.size() - 1;
  const std::size_t first = below(2) ? 0 : below(trees + 1);
  const std::size_t last = below(2) ? trees : first + below(trees - first + 1);
  std::vector<double> expected(rows), scores;
  for (double& score : expected) score = static_cast<double>(below(100)) / 3.0;
  scores = expected;
  std::vector<std::int32_t> leaves(rows * (last - first)), found(rows * (last - first), -5);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t tree = first; tree < last; ++tree) {
      const std::int32_t leaf = naive_leaf(arrays, tree, X, row);
      leaves[row * (last - first) + tree - first] = leaf;
      expected[row] += arrays.value[static_cast<std::size_t>(arrays.offset[tree] + leaf)];
    }
  }
  ThreadPool pool(1 + static_cast<int>(below(3)));
  forest.add_scores(X, first, last, scores.data(), pool);
  if (rows > 0 && std::memcmp(scores.data(), expected.data(), rows * sizeof(double)) != 0) fail("scores");
  forest.leaves(X, first, last, found.data(), pool);
  if (found != leaves) fail("leaves");
}

template <typename Job>
bool throws(const Job& job) {
  try {
    job();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

// One random change at a time: either it is refused, or what passes is walked under the eyes of the sanitizers.
int damage(int times) {
  int refused = 0;
  for (int i = 0; i < times; ++i) {
    Arrays arrays;
    const std::size_t features = 3;
    for (std::size_t tree = 0; tree < 3; ++tree) add_tree(arrays, features, 1, below(12), below(2), 9);
    const std::size_t node = below(arrays.feature.size());
    const std::int32_t wild[] = {-2,
                                 -1,
                                 0,
                                 1,
                                 2,
                                 3,
                                 7,
                                 1000,
                                 std::numeric_limits<std::int32_t>::max(),
                                 std::numeric_limits<std::int32_t>::min()};
    const std::int32_t any = wild[below(std::size(wild))];
    switch (below(6)) {
      case 0: arrays.feature[node] = any; break;
      case 1: arrays.left[node] = any; break;
      case 2: arrays.set[node] = any; break;
      case 3: arrays.threshold[node] = kNaN; break;
      case 4: arrays.offset[below(arrays.offset.size())] = below(2) ? any : std::int64_t{any} * 0x7FFFFFFF; break;
      default: arrays.missing_left[node] = static_cast<std::uint8_t>(any); break;
    }
    refused += throws([&] {
      const Forest forest(arrays.view(), features);
      std::vector<float> values(40 * features);
      for (float& value : values) value = static_cast<float>(below(2) ? code_value() : number(9));
      std::vector<double> scores(40);
      ThreadPool pool(1);
      for (const std::size_t rows : {std::size_t{3}, std::size_t{20}, std::size_t{40}}) {
        forest.add_scores(Matrix<float>(values.data(), rows, features, 3, 1), 0, 3, scores.data(), pool);
      }
    });
  }
  return refused;
}

// Every single check on a small sound forest: a split with two leaves, then a lone leaf.
void refuse() {
  const auto sound = [] {
    Arrays arrays;
    arrays.offset = {0, 3, 4};
    arrays.feature = {0, -1, -1, -1};
    arrays.left = {1, -1, -1, -1};
    arrays.set = {-1, -1, -1, -1};
    arrays.threshold = {0.5, 0, 0, 0};
    arrays.value = {0, 1, 2, 3};
    arrays.missing_left = {0, 0, 0, 0};
    arrays.codes = {1, 2, 3, 4};
    return arrays;
  };
  const auto refused = [&](const char* what, const auto& change) {
    Arrays arrays = sound();
    change(arrays);
    if (!throws([&] { Forest(arrays.view(), 2); })) fail(std::string("accepted: ") + what);
  };
  Forest(sound().view(), 2);
  refused("feature too large", [](Arrays& a) { a.feature[0] = 2; });
  refused("feature -2", [](Arrays& a) { a.feature[1] = -2; });
  refused("left is itself", [](Arrays& a) { a.left[0] = 0; });
  refused("left negative", [](Arrays& a) { a.left[0] = -1; });
  refused("right beyond the tree", [](Arrays& a) { a.left[0] = 2; });
  refused("left huge", [](Arrays& a) { a.left[0] = std::numeric_limits<std::int32_t>::max(); });
  refused("NaN threshold", [](Arrays& a) { a.threshold[0] = kNaN; });
  refused("set too large", [](Arrays& a) { a.set[0] = 1; });
  refused("set -2", [](Arrays& a) { a.set[0] = -2; });
  refused("orphans", [](Arrays& a) { a.feature[0] = -1; });
  refused("first offset", [](Arrays& a) { a.offset[0] = 1; });
  refused("negative offset", [](Arrays& a) { a.offset[1] = -1; });
  refused("empty tree", [](Arrays& a) { a.offset[1] = 4; });
  refused("offset beyond", [](Arrays& a) { a.offset[1] = 1LL << 62; });
  refused("last offset", [](Arrays& a) { a.offset[2] = 5; });
  refused("nodes left over", [](Arrays& a) {
    a.offset[2] = 3, a.offset.pop_back();
    a.offset[1] = 3;
  });
  refused("two parents", [](Arrays& a) {
    a.offset = {0, 5};
    a.feature = {0, 0, -1, -1, -1}, a.left = {1, 2, -1, -1, -1}, a.set = {-1, -1, -1, -1, -1};
    a.threshold.resize(5), a.value.resize(5), a.missing_left.resize(5);
  });
  const Arrays arrays = sound();
  const Forest forest(arrays.view(), 2);
  std::vector<float> values(9, 0.0F);
  std::vector<double> scores(3);
  ThreadPool pool(1);
  const auto ask = [&](std::size_t columns, std::size_t first, std::size_t last) {
    return throws(
        [&] { forest.add_scores(Matrix<float>(values.data(), 3, columns, 3, 1), first, last, scores.data(), pool); });
  };
  if (ask(2, 0, 2) || !ask(1, 0, 2) || !ask(3, 0, 2) || !ask(2, 0, 3) || !ask(2, 2, 1))
    fail("range of trees or columns");
}

// Both widths of the vectors.
void widths() {
  for (int time = 0; time < 200; ++time) {
    std::vector<std::int8_t> codes(5 * kCodedRows);
    for (auto& code : codes) code = static_cast<std::int8_t>(random_bits());
    std::vector<Move> moves;
    for (std::size_t m = 0, count = below(kMaxMoves + 1); m < count; ++m) {
      moves.push_back({static_cast<std::uint32_t>(below(5)), static_cast<std::int8_t>(below(2) ? -1 : 1 << below(7)),
                       static_cast<std::int8_t>(random_bits()), static_cast<std::int8_t>(below(m + 1)),
                       static_cast<std::int8_t>(m + 1)});
    }
    std::array<std::uint8_t, kCodedRows> expected{}, narrow{}, best{};
    for (std::size_t row = 0; row < kCodedRows; ++row) {
      for (const Move& move : moves) {
        const int code = static_cast<std::int8_t>(codes[move.column * kCodedRows + row] & move.mask);
        if (expected[row] == static_cast<std::uint8_t>(move.from) && code > move.threshold)
          expected[row] = static_cast<std::uint8_t>(move.to);
      }
    }
    find_labels<16>(moves.data(), moves.size(), codes.data(), kCodedRows, narrow.data());
    find_labels(moves.data(), moves.size(), codes.data(), kCodedRows, best.data());
    if (narrow != expected || best != expected) fail("labels");
  }
}

// Work that is given up begins no further chunk and says so; work that is not is done once, whatever the threads.
void give_up() {
  for (int time = 0; time < 200; ++time) {
    const std::size_t chunks = 1 + below(300);
    const int patience = static_cast<int>(below(400));
    int asked = 0;
    ThreadPool pool(1 + static_cast<int>(below(3)), [&] { return ++asked > patience; });
    std::vector<std::atomic<int>> done(chunks);
    bool given_up = false;
    try {
      pool.chunks(7 * chunks, 7, [&](int, std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; i += 7) ++done[i / 7];
      });
    } catch (const Interrupted&) {
      given_up = true;
    }
    std::size_t total = 0;
    for (const auto& each : done) {
      if (each > 1) fail("a chunk twice");
      total += static_cast<std::size_t>(each);
    }
    if (!given_up && total != chunks) fail("chunks left out");
    if (given_up != (asked > patience)) fail("an interrupt");
    if (given_up && pool.size() == 1 && total != static_cast<std::size_t>(patience)) fail("chunks after an interrupt");
  }
}

int main(int count, char** words) {
  const int times = count > 1 ? std::atoi(words[1]) : 400;
  refuse();
  widths();
  give_up();
  for (int time = 0; time < times; ++time) {
    Arrays arrays;
    const bool wide = time % 16 == 0;
    const bool large = time % 5 == 3;  // splits that labels cannot tell, in so few columns that encoding pays off
    const std::size_t features = wide ? 3000 : 1 + below(large ? 4 : 40);
    const std::size_t categorical =
        below(3) == 0 ? below(features + 1) : (below(2) ? 0 : std::min<std::size_t>(features, 2));
    const std::size_t distinct = below(2) ? 3 + below(100) : 20000;
    const std::size_t trees = time % 40 == 7 ? 2000 : below(60);
    for (std::size_t tree = 0; tree < trees; ++tree) {
      const std::size_t splits =
          large && below(4) == 0 ? 200 + below(800) : (below(4) == 0 ? 60 + below(5) : below(64));
      add_tree(arrays, features, categorical, below(8) == 0 ? 0 : splits, below(4) == 0, distinct);
    }
    const Forest forest(arrays.view(), features);
    const std::size_t rows[] = {0, 1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 600, 1000};
    for (int i = 0; i < 4; ++i) {
      const std::size_t some = trees > 1000 || wide ? rows[below(11)] : rows[below(std::size(rows))];
      compare<float>(arrays, forest, features, categorical, some, distinct);
      compare<double>(arrays, forest, features, categorical, some, distinct);
    }
  }
  Arrays lone;  // leaves only, no columns at all
  add_tree(lone, 0, 0, 0, false, 3);
  compare<float>(lone, Forest(lone.view(), 0), 0, 0, 300, 3);
  const Arrays none;
  compare<double>(none, Forest(none.view(), 4), 4, 0, 300, 3);
  const int refused = damage(20 * times);
  std::printf("all alike; %d of %d damaged forests refused\n", refused, 20 * times);
}
