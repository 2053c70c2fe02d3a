// Compares Forest with its naive twin on random forests of all shapes, and feeds it damaged arrays.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "../../cpp/flat_forest.hpp"
#include "../../cpp/forest.hpp"
#include "naive_forest.hpp"

using namespace untwist;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::mt19937_64 random_bits(7);

std::size_t draw_below(std::size_t end) { return random_bits() % end; }
bool draw_one_in(std::size_t times) { return draw_below(times) == 0; }

void fail(const std::string& what) {
  std::printf("FAILED: %s\n", what.c_str());
  std::exit(1);
}

// What a random forest is like: so many features, the first of which hold categories, and so many distinct thresholds.
struct Shape {
  std::size_t features, categorical, distinct;
};

double draw_odd_value() {
  const double odd[] = {0.0,   -0.0,  kInfinity, -kInfinity, kNaN, kNaN,   1e300, -1e300,
                        255.0, 256.0, -1.0,      254.0,      2.5,  1e-310, 63.0,  64.0};
  return odd[draw_below(std::size(odd))];
}

double draw_number(std::size_t distinct) {
  if (draw_one_in(8)) return draw_odd_value();
  const double whole = static_cast<double>(draw_below(distinct)) - static_cast<double>(distinct / 2);
  return draw_below(2) ? whole : whole / 7.0;
}

double draw_category() { return draw_one_in(8) ? draw_odd_value() : static_cast<double>(draw_below(256)); }

// Adds a tree with `splits` splits at random leaves, or if lopsided at one of the two newest. Children come in pairs,
// in the order in which the splits are made.
void add_tree(FlatForest& forest, const Shape& shape, std::size_t splits, bool lopsided) {
  std::vector<std::int32_t> left{-1};
  std::vector<std::size_t> leaves{0};
  for (std::size_t s = 0; s < splits; ++s) {
    const std::size_t newest = left.size() - 1;
    std::size_t node = 0;
    if (newest > 0) node = lopsided ? newest - draw_below(2) : leaves[draw_below(leaves.size())];
    left[node] = static_cast<std::int32_t>(left.size());
    leaves.erase(std::find(leaves.begin(), leaves.end(), node));
    for (int child = 0; child < 2; ++child) {
      leaves.push_back(left.size());
      left.push_back(-1);
    }
  }
  for (std::size_t node = 0; node < left.size(); ++node) {
    const bool is_leaf = left[node] < 0;
    const std::size_t column = draw_below(std::max<std::size_t>(shape.features, 1));
    const bool nonsense_at_leaf = is_leaf && draw_below(2);
    forest.feature.push_back(is_leaf ? -1 : static_cast<std::int32_t>(column));
    forest.left.push_back(nonsense_at_leaf ? static_cast<std::int32_t>(random_bits()) : left[node]);
    const double threshold = draw_number(shape.distinct);
    forest.threshold.push_back(is_leaf ? kNaN : std::isnan(threshold) ? 0.0 : threshold);
    forest.missing_left.push_back(static_cast<std::uint8_t>(draw_below(2)));
    for (std::size_t output = 0; output < forest.outputs; ++output) {
      forest.value.push_back(std::ldexp(static_cast<double>(static_cast<std::int64_t>(random_bits())), -60));
    }
    forest.set.push_back(-1);
    if (is_leaf || column >= shape.categorical) continue;
    forest.set.back() = static_cast<std::int32_t>(forest.codes.size() / kWordsOfSet);
    for (std::size_t i = 0; i < kWordsOfSet; ++i) forest.codes.push_back(random_bits());
    forest.threshold.back() = kNaN;
    const bool shares_a_set = draw_one_in(4);
    if (shares_a_set) forest.set.back() = static_cast<std::int32_t>(draw_below(forest.codes.size() / kWordsOfSet));
  }
  forest.offset.push_back(static_cast<std::int64_t>(forest.feature.size()));
}

// Compares scores and leaves of random rows, which lie by row or by column, with gaps, forwards or backwards.
template <typename Real>
void compare(const FlatForest& flat, const Forest& forest, const Shape& shape, std::size_t rows) {
  const std::size_t features = shape.features;
  const std::size_t gap = draw_below(3);
  const bool by_column = draw_below(2);
  const bool backwards = draw_one_in(3);
  const std::size_t inner = (by_column ? rows : features) + gap;
  const std::size_t size = std::max<std::size_t>(inner * (by_column ? features : rows), 1);
  std::vector<Real> values(size, static_cast<Real>(777));
  std::ptrdiff_t row_stride = by_column ? 1 : static_cast<std::ptrdiff_t>(inner);
  const std::ptrdiff_t column_stride = by_column ? static_cast<std::ptrdiff_t>(inner) : 1;
  Real* start = values.data();
  if (backwards && rows > 0) {
    start += row_stride * static_cast<std::ptrdiff_t>(rows - 1);
    row_stride = -row_stride;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < features; ++column) {
      const std::ptrdiff_t at =
          static_cast<std::ptrdiff_t>(row) * row_stride + static_cast<std::ptrdiff_t>(column) * column_stride;
      start[at] = static_cast<Real>(column < shape.categorical ? draw_category() : draw_number(shape.distinct));
    }
  }
  const Matrix<Real> X(start, rows, features, row_stride, column_stride);
  const std::size_t trees = flat.offset.size() - 1;
  const std::size_t first = draw_below(2) ? 0 : draw_below(trees + 1);
  const std::size_t last = draw_below(2) ? trees : first + draw_below(trees - first + 1);
  const std::size_t width = last - first;
  const std::size_t outputs = flat.outputs;
  std::vector<double> expected_scores(rows * outputs);
  for (double& score : expected_scores) score = static_cast<double>(draw_below(100)) / 3.0;
  std::vector<double> scores = expected_scores;
  std::vector<std::int32_t> expected_leaves(rows * width);
  std::vector<std::int32_t> leaves(rows * width, -5);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t tree = first; tree < last; ++tree) {
      const std::int32_t leaf = find_leaf_naively(flat, tree, X, row);
      expected_leaves[row * width + tree - first] = leaf;
      const double* value = flat.value.data() + static_cast<std::size_t>(flat.offset[tree] + leaf) * outputs;
      for (std::size_t output = 0; output < outputs; ++output) expected_scores[row * outputs + output] += value[output];
    }
  }
  ThreadPool pool(1 + static_cast<int>(draw_below(3)));
  forest.add_scores(X, first, last, scores.data(), pool);
  const std::size_t bytes = scores.size() * sizeof(double);
  if (rows > 0 && std::memcmp(scores.data(), expected_scores.data(), bytes) != 0) fail("scores");
  forest.leaves(X, first, last, leaves.data(), pool);
  if (leaves != expected_leaves) fail("leaves");
}

template <typename Job>
bool is_refused(const Job& job) {
  try {
    job();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

void damage(FlatForest& forest) {
  const std::int32_t wild[] = {
      -2, -1, 0, 1, 2, 3, 7, 1000, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()};
  const std::size_t node = draw_below(forest.feature.size());
  const std::int32_t any = wild[draw_below(std::size(wild))];
  switch (draw_below(6)) {
    case 0: forest.feature[node] = any; break;
    case 1: forest.left[node] = any; break;
    case 2: forest.set[node] = any; break;
    case 3: forest.threshold[node] = kNaN; break;
    case 4:
      forest.offset[draw_below(forest.offset.size())] = draw_below(2) ? any : std::int64_t{any} * 0x7FFFFFFF;
      break;
    default: forest.missing_left[node] = static_cast<std::uint8_t>(any); break;
  }
}

// Makes one random change at a time. Either it is refused, or what passes is walked under the eyes of the sanitizers.
// Returns how many were refused.
int check_damaged_forests(int times) {
  constexpr std::size_t kMostRows = 40;
  constexpr std::size_t kTrees = 3;
  const Shape shape{3, 1, 9};
  int refused = 0;
  for (int i = 0; i < times; ++i) {
    FlatForest flat;
    for (std::size_t tree = 0; tree < kTrees; ++tree) add_tree(flat, shape, draw_below(12), draw_below(2));
    damage(flat);
    refused += is_refused([&] {
      const Forest forest(flat.view(), shape.features);
      std::vector<float> values(kMostRows * shape.features);
      for (float& value : values) value = static_cast<float>(draw_below(2) ? draw_category() : draw_number(9));
      std::vector<double> scores(kMostRows);
      ThreadPool pool(1);
      for (const std::size_t rows : {std::size_t{3}, std::size_t{20}, kMostRows}) {
        const Matrix<float> X(values.data(), rows, shape.features, 3, 1);
        forest.add_scores(X, 0, kTrees, scores.data(), pool);
      }
    });
  }
  return refused;
}

// A sound forest: a split with two leaves, then a lone leaf.
FlatForest make_sound_forest() {
  FlatForest forest;
  forest.offset = {0, 3, 4};
  forest.feature = {0, -1, -1, -1};
  forest.left = {1, -1, -1, -1};
  forest.set = {-1, -1, -1, -1};
  forest.threshold = {0.5, 0, 0, 0};
  forest.value = {0, 1, 2, 3};
  forest.missing_left = {0, 0, 0, 0};
  forest.codes = {1, 2, 3, 4};
  return forest;
}

// Every single check refuses what it is there for.
void check_refusals() {
  constexpr std::size_t kFeatures = 2;
  const auto refuses = [&](const char* what, const auto& change) {
    FlatForest forest = make_sound_forest();
    change(forest);
    if (!is_refused([&] { Forest(forest.view(), kFeatures); })) fail(std::string("accepted: ") + what);
  };
  refuses("no output", [](FlatForest& f) { f.outputs = 0; });
  refuses("feature too large", [](FlatForest& f) { f.feature[0] = 2; });
  refuses("feature -2", [](FlatForest& f) { f.feature[1] = -2; });
  refuses("left is itself", [](FlatForest& f) { f.left[0] = 0; });
  refuses("left negative", [](FlatForest& f) { f.left[0] = -1; });
  refuses("right beyond the tree", [](FlatForest& f) { f.left[0] = 2; });
  refuses("left huge", [](FlatForest& f) { f.left[0] = std::numeric_limits<std::int32_t>::max(); });
  refuses("NaN threshold", [](FlatForest& f) { f.threshold[0] = kNaN; });
  refuses("set too large", [](FlatForest& f) { f.set[0] = 1; });
  refuses("set -2", [](FlatForest& f) { f.set[0] = -2; });
  refuses("orphans", [](FlatForest& f) { f.feature[0] = -1; });
  refuses("first offset", [](FlatForest& f) { f.offset[0] = 1; });
  refuses("negative offset", [](FlatForest& f) { f.offset[1] = -1; });
  refuses("empty tree", [](FlatForest& f) { f.offset[1] = 4; });
  refuses("offset beyond", [](FlatForest& f) { f.offset[1] = 1LL << 62; });
  refuses("last offset", [](FlatForest& f) { f.offset[2] = 5; });
  refuses("nodes left over", [](FlatForest& f) { f.offset = {0, 3}; });
  refuses("two parents", [](FlatForest& f) {
    f.offset = {0, 5};
    f.feature = {0, 0, -1, -1, -1};
    f.left = {1, 2, -1, -1, -1};
    f.set = {-1, -1, -1, -1, -1};
    f.threshold.resize(5);
    f.value.resize(5);
    f.missing_left.resize(5);
  });
  const FlatForest sound = make_sound_forest();
  const Forest forest(sound.view(), kFeatures);
  std::vector<float> values(9, 0.0F);
  std::vector<double> scores(3);
  ThreadPool pool(1);
  const auto refuses_rows = [&](std::size_t columns, std::size_t first, std::size_t last) {
    const Matrix<float> X(values.data(), 3, columns, 3, 1);
    return is_refused([&] { forest.add_scores(X, first, last, scores.data(), pool); });
  };
  if (refuses_rows(2, 0, 2)) fail("sound rows");
  if (!refuses_rows(1, 0, 2) || !refuses_rows(3, 0, 2)) fail("number of columns");
  if (!refuses_rows(2, 0, 3) || !refuses_rows(2, 2, 1)) fail("range of trees");
}

// Vectors of both widths find the slots that a plain loop finds.
void check_slots() {
  constexpr std::size_t kColumns = 5;
  for (int time = 0; time < 200; ++time) {
    std::vector<std::int8_t> codes(kColumns * kCodedRows);
    for (auto& code : codes) code = static_cast<std::int8_t>(random_bits());
    std::vector<Move> moves;
    for (std::size_t m = 0, count = draw_below(kMaxMoves + 1); m < count; ++m) {
      Move move;
      move.column = static_cast<std::uint32_t>(draw_below(kColumns));
      move.mask = static_cast<std::int8_t>(draw_below(2) ? -1 : 1 << draw_below(7));
      move.threshold = static_cast<std::int8_t>(random_bits());
      move.from = static_cast<std::int8_t>(draw_below(m + 1));
      move.to = static_cast<std::int8_t>(m + 1);
      moves.push_back(move);
    }
    std::array<std::uint8_t, kCodedRows> expected{}, narrow{}, best{};
    for (std::size_t row = 0; row < kCodedRows; ++row) {
      for (const Move& move : moves) {
        const int code = static_cast<std::int8_t>(codes[move.column * kCodedRows + row] & move.mask);
        const bool is_concerned = expected[row] == static_cast<std::uint8_t>(move.from);
        if (is_concerned && code > move.threshold) expected[row] = static_cast<std::uint8_t>(move.to);
      }
    }
    find_slots<16>(moves.data(), moves.size(), codes.data(), kCodedRows, narrow.data());
    find_slots(moves.data(), moves.size(), codes.data(), kCodedRows, best.data());
    if (narrow != expected || best != expected) fail("slots");
  }
}

// Work that is given up begins no further chunk and says so. Work that is not is done once, whatever the threads.
void check_giving_up() {
  constexpr std::size_t kChunk = 7;
  for (int time = 0; time < 200; ++time) {
    const std::size_t chunks = 1 + draw_below(300);
    const int patience = static_cast<int>(draw_below(400));
    int asked = 0;
    ThreadPool pool(1 + static_cast<int>(draw_below(3)), [&] { return ++asked > patience; });
    std::vector<std::atomic<int>> done(chunks);
    bool given_up = false;
    try {
      pool.chunks(kChunk * chunks, kChunk, [&](int, std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; i += kChunk) ++done[i / kChunk];
      });
    } catch (const Interrupted&) {
      given_up = true;
    }
    std::size_t total = 0;
    for (const auto& times : done) {
      if (times > 1) fail("a chunk twice");
      total += static_cast<std::size_t>(times);
    }
    if (!given_up && total != chunks) fail("chunks left out");
    if (given_up != (asked > patience)) fail("an interrupt");
    const bool alone = pool.size() == 1;
    if (given_up && alone && total != static_cast<std::size_t>(patience)) fail("chunks after an interrupt");
  }
}

// Compares random forests of many shapes: wide ones, ones with very many trees, and ones with more splits than slots in
// so few columns that encoding pays off.
void check_random_forests(int times) {
  for (int time = 0; time < times; ++time) {
    const bool wide = time % 16 == 0;
    const bool deep = time % 5 == 3;
    Shape shape;
    shape.features = wide ? 3000 : 1 + draw_below(deep ? 4 : 40);
    shape.categorical = draw_below(2) ? 0 : std::min<std::size_t>(shape.features, 2);
    if (draw_one_in(3)) shape.categorical = draw_below(shape.features + 1);
    shape.distinct = draw_below(2) ? 3 + draw_below(100) : 20000;
    const std::size_t trees = time % 40 == 7 ? 2000 : draw_below(60);
    FlatForest flat;
    flat.outputs = draw_below(2) ? 1 : 1 + draw_below(9);
    for (std::size_t tree = 0; tree < trees; ++tree) {
      std::size_t splits = draw_one_in(4) ? 60 + draw_below(5) : draw_below(64);
      if (deep && draw_one_in(4)) splits = 200 + draw_below(800);
      if (draw_one_in(8)) splits = 0;
      add_tree(flat, shape, splits, draw_one_in(4));
    }
    const Forest forest(flat.view(), shape.features);
    const std::size_t row_counts[] = {0, 1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 600, 1000};
    const std::size_t choices = trees > 1000 || wide ? 11 : std::size(row_counts);
    for (int i = 0; i < 4; ++i) {
      const std::size_t rows = row_counts[draw_below(choices)];
      compare<float>(flat, forest, shape, rows);
      compare<double>(flat, forest, shape, rows);
    }
  }
  FlatForest lone_leaf;
  const Shape no_columns{0, 0, 3};
  add_tree(lone_leaf, no_columns, 0, false);
  compare<float>(lone_leaf, Forest(lone_leaf.view(), 0), no_columns, 300);
  const FlatForest no_trees;
  compare<double>(no_trees, Forest(no_trees.view(), 4), {4, 0, 3}, 300);
}

int main(int count, char** words) {
  const int times = count > 1 ? std::atoi(words[1]) : 400;
  check_refusals();
  check_slots();
  check_giving_up();
  check_random_forests(times);
  const int damaged = 20 * times;
  const int refused = check_damaged_forests(damaged);
  std::printf("all alike; %d of %d damaged forests refused\n", refused, damaged);
}
