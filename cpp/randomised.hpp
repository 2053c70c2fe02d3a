// Grows extremely randomised trees on binned rows. A node draws some columns, and of each column one split at random;
// the best of these splits is made. A leaf has the logarithms of the shares that the classes have there, of two classes
// their difference, so that a forest of such trees tells the mean of these logarithms.
//
// All draws are hashes of the seed, the number of the tree and the way from the root to the node, and all sums are of
// whole numbers, so no tree depends on the order of the rows or on the number of threads.
//
// The rows of a dataset are ordered by class, and they stay so within every node, as rows are sent left and right in
// their order. So a class is a range of the node's rows, and its rows that go left are counted as the bits of a range
// (randomised_marks.hpp). Of a column that is a list only the listed rows are looked at. No histograms are needed, as
// only one split of a column is looked at: all that this shares with the boosted trees is the dataset, its codes and
// the flat forest that comes out.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "binning.hpp"
#include "dataset.hpp"
#include "flat_forest.hpp"
#include "hashing.hpp"
#include "randomised_marks.hpp"
#include "rows.hpp"
#include "sample_weights.hpp"
#include "threads.hpp"
#include "tree.hpp"

namespace untwist {

// This is how randomised trees grow. Weights count in units of the sample weights.
struct RandomisedGrowth {
  std::size_t trees = 100;

  // The first tree has this number. Trees of other numbers make other draws.
  std::size_t first_tree = 0;

  // A leaf has at least this sample weight.
  double min_samples_leaf = 5.0;

  // This share of the columns that vary is drawn at every node.
  double max_features = 0.5;

  // The shares of the classes in all rows count as much as this sample weight in every leaf.
  double smoothing = 1.0;

  std::uint64_t seed = 0;
};

namespace randomised {

// No tree is deeper, however lopsided its splits are.
inline constexpr int kMaxDepth = 60;

// The rows that train, ordered by class, with whole weights. Without weights each row has weight 1.
struct TrainingRows {
  // The fixed-point weights of rows that are no copies have so many bits after the point.
  static constexpr int kWeightBits = 24;

  // Takes weights in the order that Python gave the rows, at most 1 each, or whole numbers. Empty means 1 for all.
  TrainingRows(const Dataset& dataset, const std::vector<double>& given) {
    const bool plain = std::all_of(given.begin(), given.end(), [](double one) { return one == 0.0 || one == 1.0; });
    unit = are_whole(given) ? 1.0 : std::ldexp(1.0, kWeightBits);
    const std::size_t class_count = dataset.class_start.size() - 1;
    class_weight.assign(class_count, 0);
    if (dataset.layout == Layout::kSparse) label.resize(dataset.rows);
    for (std::size_t k = 0; k < class_count; ++k) {
      ClassRows found{static_cast<std::uint32_t>(k), 0, 0};
      for (std::size_t row = dataset.class_start[k]; row < dataset.class_start[k + 1]; ++row) {
        const double one = given.empty() ? 1.0 : given[dataset.order[row]];
        const auto units = static_cast<std::uint32_t>(std::llround(one * unit));
        if (units == 0) continue;
        rows.push_back(static_cast<Row>(row));
        if (!label.empty()) label[row] = static_cast<std::uint32_t>(k);
        if (!plain) weight.push_back(units);
        ++found.rows;
        found.weight += units;
      }
      class_weight[k] = found.weight;
      if (found.rows > 0) classes.push_back(found);
    }
  }

  double unit;  // A sample weight of 1 is so many units.
  std::vector<Row> rows;
  std::vector<std::uint32_t> weight;  // Empty means 1 for all.
  std::vector<std::uint32_t> label;   // A row of the dataset has this class, if there are lists to look rows up for.
  std::vector<ClassRows> classes;     // Only those that have rows.
  std::vector<std::uint64_t> class_weight;
};

struct RandomisedNode {
  std::int32_t feature = -1;  // A leaf has -1.
  std::int32_t left = -1;
  std::int32_t set = -1;  // A split of categories has this set of the tree.
  Code code = 0;
  bool missing_left = false;
  double gain = 0.0;
  std::size_t first_class = 0, last_class = 0;  // A leaf has this range of the classes of the tree.
};

struct RandomisedTree {
  std::vector<RandomisedNode> nodes;
  std::vector<CodeSet> sets;
  std::vector<ClassRows> classes;
};

// Numbers the nodes level by level. A forest sends rows through the first splits of a tree all at once, so these should
// be the uppermost.
inline RandomisedTree order_by_level(RandomisedTree tree) {
  std::vector<RandomisedNode> ordered;
  ordered.reserve(tree.nodes.size());
  ordered.push_back(tree.nodes[0]);
  for (std::size_t n = 0; n < ordered.size(); ++n) {
    if (ordered[n].feature < 0) continue;
    const std::size_t left = static_cast<std::size_t>(ordered[n].left);
    ordered[n].left = static_cast<std::int32_t>(ordered.size());
    ordered.push_back(tree.nodes[left]);
    ordered.push_back(tree.nodes[left + 1]);
  }
  tree.nodes = std::move(ordered);
  return tree;
}

// Grows one tree after the other.
class Grower {
 public:
  Grower(const Dataset& dataset, const TrainingRows& training, const RandomisedGrowth& growth)
      : dataset_(dataset),
        training_(training),
        growth_(growth),
        columns_(dataset.varying_columns()),
        drawn_count_(count_drawn(growth.max_features, columns_.size())),
        least_weight_(static_cast<std::uint64_t>(std::ceil(growth.min_samples_leaf * training.unit))),
        shortest_list_(find_shortest_list(training, least_weight_)),
        total_weight_(0.0),
        words_of_columns_(columns_.size() / kWord + 1),
        order_(columns_.size()),
        swapped_(columns_.size()),
        scratch_(training.rows.size()),
        weight_scratch_(training.weight.size()),
        codes_(training.rows.size() + 2 * kWord),
        best_marks_(training.rows.size()),
        marks_(training.rows.size()),
        best_left_(training.classes.size()),
        left_(training.classes.size()) {
    for (const ClassRows& each : training.classes) total_weight_ += static_cast<double>(each.weight);
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
    if (dataset.layout != Layout::kSparse) return;
    place_of_.assign(dataset.rows, kNowhere);
    left_weight_.resize(training.classes.size());
    slot_of_class_.resize(dataset.class_start.size() - 1);
    is_too_short_.resize(columns_.size());
    for (std::size_t place = 0; place < columns_.size(); ++place) {
      const std::uint32_t feature = columns_[place];
      is_too_short_[place] = dataset.is_listed(feature) && dataset.list(feature).count < shortest_list_;
    }
  }

  RandomisedTree grow(std::size_t number) {
    tree_ = RandomisedTree();
    rows_ = training_.rows;
    weight_ = training_.weight;
    pending_.clear();
    waiting_classes_.clear();
    waiting_constant_.clear();
    tree_.nodes.emplace_back();
    constant_.assign(words_of_columns_, 0);
    note_places(0, rows_.size());
    push({0, 0, 0, rows_.size(), mix(mix(growth_.seed) ^ mix(number)), 0}, training_.classes);
    while (!pending_.empty()) grow_next_node();
    return order_by_level(std::move(tree_));
  }

 private:
  // A node that is still to be split, or to become a leaf.
  struct Pending {
    std::size_t node;
    int depth;
    std::size_t first, last;  // Its rows.
    std::uint64_t key;        // What it draws by.
    std::size_t first_class;  // Its classes begin here among those that wait.
  };

  struct Best {
    double score = -1.0;
    std::size_t column = 0;
    Cut cut;
    bool has_missing = false;
    CodeSet present;
    bool is_marked = true;  // The marks tell which rows go left. The rows of a list are marked when it has won.
  };

  // A row that does not train has this place.
  static constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

  static std::size_t count_drawn(double share, std::size_t columns) {
    return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(share * static_cast<double>(columns))));
  }

  // Returns how many rows a list needs at least to part enough weight for a leaf from the rows of the usual code.
  static std::uint64_t find_shortest_list(const TrainingRows& training, std::uint64_t least_weight) {
    std::uint64_t largest = 1;
    for (const std::uint32_t weight : training.weight) largest = std::max<std::uint64_t>(largest, weight);
    return (std::max<std::uint64_t>(least_weight, 1) + largest - 1) / largest;
  }

  void push(Pending node, const std::vector<ClassRows>& classes) {
    node.first_class = waiting_classes_.size();
    waiting_classes_.insert(waiting_classes_.end(), classes.begin(), classes.end());
    waiting_constant_.insert(waiting_constant_.end(), constant_.begin(), constant_.end());
    pending_.push_back(node);
  }

  void pop() {
    node_ = pending_.back();
    pending_.pop_back();
    const auto first = waiting_classes_.begin() + static_cast<std::ptrdiff_t>(node_.first_class);
    classes_.assign(first, waiting_classes_.end());
    waiting_classes_.erase(first, waiting_classes_.end());
    const auto constant = waiting_constant_.end() - static_cast<std::ptrdiff_t>(words_of_columns_);
    constant_.assign(constant, waiting_constant_.end());
    waiting_constant_.erase(constant, waiting_constant_.end());
  }

  void grow_next_node() {
    pop();
    node_weight_ = 0;
    for (const ClassRows& each : classes_) node_weight_ += each.weight;
    Best best;
    if (classes_.size() > 1 && node_.depth < kMaxDepth && node_weight_ >= 2 * least_weight_) best = find_split();
    if (best.score < 0.0) {
      make_leaf();
    } else {
      split(best);
    }
  }

  void make_leaf() {
    RandomisedNode& leaf = tree_.nodes[node_.node];
    leaf.first_class = tree_.classes.size();
    tree_.classes.insert(tree_.classes.end(), classes_.begin(), classes_.end());
    leaf.last_class = tree_.classes.size();
  }

  // Draws columns, and goes on beyond their number only while all of them are constant in the node.
  Best find_split() {
    Best best;
    const std::size_t columns = columns_.size();
    bool all_constant = true;
    std::size_t drawn = 0;
    for (std::size_t k = 0; k < classes_.size() && !slot_of_class_.empty(); ++k) {
      slot_of_class_[classes_[k].label] = static_cast<std::uint32_t>(k);
    }
    for (std::size_t i = 0; i < columns && (i < drawn_count_ || all_constant); ++i, ++drawn) {
      const std::uint64_t hash = mix(node_.key + i * kGoldenRatio);
      const std::size_t other = i + scale_down(hash, columns - i);
      std::swap(order_[i], order_[other]);
      swapped_[i] = static_cast<std::uint32_t>(other);
      const std::size_t column = order_[i];
      // Such a list has no split to offer. All that it could tell is that not all columns are constant, which is known.
      if (!all_constant && !is_too_short_.empty() && is_too_short_[column]) continue;
      if (constant_[column / kWord] >> (column % kWord) & 1U) continue;
      if (try_column(column, mix(hash), best)) {
        all_constant = false;
      } else {
        constant_[column / kWord] |= std::uint64_t{1} << (column % kWord);
      }
    }
    // The next node draws from all columns in their order again. Only those that were drawn have moved.
    for (std::size_t i = 0; i < drawn; ++i) {
      order_[i] = static_cast<std::uint32_t>(i);
      order_[swapped_[i]] = swapped_[i];
    }
    return best;
  }

  // Draws a split of a column and keeps it if it is the best so far. Tells whether the column varies in the node.
  bool try_column(std::size_t place, std::uint64_t hash, Best& best) {
    const std::size_t feature = columns_[place];
    const Column& column = dataset_.columns[feature];
    if (dataset_.is_listed(feature)) return try_list(place, hash, best);
    gather(feature);
    const std::size_t count = node_.last - node_.first;
    Cut cut;
    bool has_missing = false;
    CodeSet present;
    if (column.category_count > 0) {
      if (!draw_set(column, hash, cut, present)) return false;
      has_missing = present.has(column.missing_code());
    } else {
      const CodeRange range = find_range(codes_.data(), count, column.missing, column.missing_code());
      has_missing = range.has_missing;
      if (!draw_cut(column, range, hash, cut)) return false;
    }
    const std::uint32_t left_rows = mark_quickly(codes_.data(), count, cut, marks_);
    const double score = training_.weight.empty() ? score_counts(left_rows) : score_weights();
    if (score > best.score) {
      best.score = score;
      best.column = place;
      best.cut = cut;
      best.has_missing = has_missing;
      best.present = present;
      best.is_marked = true;
      std::swap(marks_, best_marks_);
      std::swap(left_, best_left_);
    }
    return true;
  }

  // Draws the last code of a column of numbers that goes left. Tells whether its codes differ.
  static bool draw_cut(const Column& column, const CodeRange& range, std::uint64_t hash, Cut& cut) {
    const bool varies = range.has_known && range.least < range.largest;
    if (!varies && !(range.has_known && range.has_missing)) return false;
    cut.missing_left = range.has_missing && (hash & 1U);
    if (varies) {
      const std::size_t span = static_cast<std::size_t>(range.largest - range.least);
      cut.last_left = static_cast<Code>(range.least + scale_down(hash, span));
      cut.also_left = cut.missing_left ? column.missing_code() : cut.last_left;
    } else {
      cut.missing_left = false;  // All known values go left, and missing ones right.
      cut.last_left = cut.also_left = static_cast<Code>(column.values() - 1);
    }
    return true;
  }

  // Does the same as try_column by the listed rows alone. All other rows of the node go one way.
  bool try_list(std::size_t place, std::uint64_t hash, Best& best) {
    const Column& column = dataset_.columns[columns_[place]];
    const CodeList list = dataset_.list(columns_[place]);
    listed_.clear();
    for (std::size_t i = 0; i < list.count; ++i) {
      const std::uint32_t at = place_of_[list.row[i]];
      if (at >= node_.first && at < node_.last) listed_.push_back({at, list.code[i]});
    }
    if (listed_.empty()) return false;
    const Code missing = column.missing_code();
    const bool has_usual = listed_.size() < node_.last - node_.first;
    CodeRange range{255, 0, false, false};
    const auto add = [&](Code code) {
      if (code == missing) {
        range.has_missing = true;
        return;
      }
      range.has_known = true;
      range.least = std::min(range.least, code);
      range.largest = std::max(range.largest, code);
    };
    if (has_usual) add(list.usual);
    for (const ListedRow& row : listed_) add(row.code);
    Cut cut;
    if (!draw_cut(column, range, hash, cut)) return false;
    const bool usual_left = cut.takes_left(list.usual);
    count_listed(cut, usual_left);
    const double score = score_counted();
    if (score > best.score) {
      best.score = score;
      best.column = place;
      best.cut = cut;
      best.has_missing = range.has_missing;
      best.present = CodeSet();
      best.is_marked = false;
      std::swap(left_, best_left_);
    }
    return true;
  }

  // Counts the rows of each class that go left, and their weights, by those that do not go the way of the usual code.
  void count_listed(const Cut& cut, bool usual_left) {
    std::fill_n(left_.begin(), classes_.size(), 0U);
    std::fill_n(left_weight_.begin(), classes_.size(), std::uint64_t{0});
    for (const ListedRow& row : listed_) {
      if (cut.takes_left(row.code) == usual_left) continue;
      const std::size_t k = slot_of_class_[training_.label[rows_[row.at]]];
      ++left_[k];
      left_weight_[k] += weight_.empty() ? 1 : weight_[row.at];
    }
    if (!usual_left) return;
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      left_[k] = classes_[k].rows - left_[k];
      left_weight_[k] = classes_[k].weight - left_weight_[k];
    }
  }

  // Returns the score of the rows and weights that were counted.
  double score_counted() const {
    std::uint64_t left_weight = 0;
    for (std::size_t k = 0; k < classes_.size(); ++k) left_weight += left_weight_[k];
    if (is_too_light(left_weight)) return -1.0;
    const double all_left = static_cast<double>(left_weight);
    const double all_right = static_cast<double>(node_weight_ - left_weight);
    if (training_.weight.empty()) {
      std::uint64_t left_squares = 0;
      std::uint64_t right_squares = 0;
      for (std::size_t k = 0; k < classes_.size(); ++k) {
        const std::uint64_t right = classes_[k].weight - left_weight_[k];
        left_squares += left_weight_[k] * left_weight_[k];
        right_squares += right * right;
      }
      return static_cast<double>(left_squares) / all_left + static_cast<double>(right_squares) / all_right;
    }
    double left_squares = 0.0;
    double right_squares = 0.0;
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      const double left = static_cast<double>(left_weight_[k]);
      const double right = static_cast<double>(classes_[k].weight - left_weight_[k]);
      left_squares += left * left;
      right_squares += right * right;
    }
    return left_squares / all_left + right_squares / all_right;
  }

  // Marks the rows that go left by a list.
  void mark_list(const Best& best) {
    const CodeList list = dataset_.list(columns_[best.column]);
    const std::size_t count = node_.last - node_.first;
    const std::uint64_t usual = best.cut.takes_left(list.usual) ? ~std::uint64_t{0} : 0;
    std::fill_n(best_marks_.bits.begin(), count / kWord + 1, usual);
    for (std::size_t i = 0; i < list.count; ++i) {
      const std::size_t at = place_of_[list.row[i]] - node_.first;
      if (at >= count || best.cut.takes_left(list.code[i]) == (usual != 0)) continue;
      best_marks_.bits[at / kWord] ^= std::uint64_t{1} << (at % kWord);
    }
  }

  // Notes where rows are now, if there are lists to look them up for.
  void note_places(std::size_t first, std::size_t last) {
    if (place_of_.empty()) return;
    for (std::size_t i = first; i < last; ++i) place_of_[rows_[i]] = static_cast<std::uint32_t>(i);
  }

  // Copies the codes of the node's rows, and repeats the last one up to a whole word.
  void gather(std::size_t feature) {
    const CodeColumn column = dataset_.column(feature);
    const Row* rows = rows_.data() + node_.first;
    const std::size_t count = node_.last - node_.first;
    Code* codes = codes_.data();
    if (column.stride == 1) {
      // Eight codes are stored at a time, as stores are what this loop waits for.
      constexpr std::size_t kAtOnce = 8;
      std::size_t i = 0;
      for (; i + kAtOnce <= count; i += kAtOnce) {
        std::array<Code, kAtOnce> some;
        for (std::size_t j = 0; j < kAtOnce; ++j) some[j] = column.data[rows[i + j]];
        std::memcpy(codes + i, some.data(), kAtOnce);
      }
      for (; i < count; ++i) codes[i] = column.data[rows[i]];
    } else {
      for (std::size_t i = 0; i < count; ++i) codes[i] = column[rows[i]];
    }
    std::memset(codes + count, codes[count - 1], kWord);
  }

  // Draws a side for every category that the node has, missing values among them. Tells whether there are two.
  bool draw_set(const Column& column, std::uint64_t hash, Cut& cut, CodeSet& present) {
    const std::size_t count = node_.last - node_.first;
    std::array<bool, kBins> seen{};
    for (std::size_t i = 0; i < count; ++i) seen[codes_[i]] = true;
    std::array<Code, kBins> codes;
    std::size_t distinct = 0;
    for (std::size_t code = 0; code <= column.missing_code(); ++code) {
      if (seen[code]) codes[distinct++] = static_cast<Code>(code);
    }
    if (distinct < 2) return false;
    cut.by_set = true;
    std::size_t left = 0;
    for (std::size_t i = 0; i < distinct; ++i) {
      const Code code = codes[i];
      const std::uint64_t word = mix(hash + (code / kWordBits + 1) * kGoldenRatio);
      const bool goes_left = word >> (code % kWordBits) & 1U;
      present.put(code, true);
      cut.goes_left.put(code, goes_left);
      left += goes_left;
    }
    if (left == 0 || left == distinct) {  // One of them goes the other way.
      cut.goes_left.put(codes[scale_down(hash, distinct)], left == 0);
    }
    cut.missing_left = cut.goes_left.has(column.missing_code());
    return true;
  }

  // Returns how pure both sides are: the sum over them of the classes' squares over the total. A side with too little
  // weight makes it -1.
  double score_counts(std::uint64_t left_rows) {
    if (is_too_light(left_rows)) return -1.0;
    count_quickly(marks_, classes_.data(), classes_.size(), left_.data());
    std::uint64_t left_squares = 0;
    std::uint64_t right_squares = 0;
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      const std::uint64_t left = left_[k];
      const std::uint64_t right = classes_[k].rows - left;
      left_squares += left * left;
      right_squares += right * right;
    }
    return static_cast<double>(left_squares) / static_cast<double>(left_rows) +
           static_cast<double>(right_squares) / static_cast<double>(node_weight_ - left_rows);
  }

  double score_weights() {
    count_quickly(marks_, classes_.data(), classes_.size(), left_.data());
    std::uint64_t left_weight = 0;
    double left_squares = 0.0;
    double right_squares = 0.0;
    std::size_t i = 0;
    const std::uint32_t* weight = weight_.data() + node_.first;
    for (const ClassRows& each : classes_) {
      const std::uint64_t left = sum_left(weight, marks_, i, i + each.rows);
      const double left_one = static_cast<double>(left);
      const double right_one = static_cast<double>(each.weight - left);
      i += each.rows;
      left_weight += left;
      left_squares += left_one * left_one;
      right_squares += right_one * right_one;
    }
    if (is_too_light(left_weight)) return -1.0;
    return left_squares / static_cast<double>(left_weight) +
           right_squares / static_cast<double>(node_weight_ - left_weight);
  }

  // Tells whether one side of a split would have too little weight for a leaf.
  bool is_too_light(std::uint64_t left_weight) const {
    const std::uint64_t least = std::max<std::uint64_t>(least_weight_, 1);
    return left_weight < least || node_weight_ - left_weight < least;
  }

  static std::uint64_t sum_left(const std::uint32_t* weight, const Marks& marks, std::size_t first, std::size_t last) {
    std::uint64_t sum = 0;
    for (std::size_t i = first; i < last; ++i) {
      sum += weight[i] & (std::uint64_t{0} - (marks.bits[i / kWord] >> (i % kWord) & 1U));
    }
    return sum;
  }

  void split(Best& best) {
    const std::size_t feature = columns_[best.column];
    if (!best.is_marked) mark_list(best);
    std::uint64_t left_weight = 0;
    double squares = 0.0;
    left_classes_.resize(classes_.size());
    right_classes_.resize(classes_.size());
    ClassRows* to_left = left_classes_.data();
    ClassRows* to_right = right_classes_.data();
    std::size_t begin = 0;
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      const ClassRows& each = classes_[k];
      const std::uint64_t weight = weight_.empty()
                                       ? best_left_[k]
                                       : sum_left(weight_.data() + node_.first, best_marks_, begin, begin + each.rows);
      begin += each.rows;
      left_weight += weight;
      squares += static_cast<double>(each.weight) * static_cast<double>(each.weight);
      *to_left = {each.label, best_left_[k], weight};
      *to_right = {each.label, each.rows - best_left_[k], each.weight - weight};
      to_left += to_left->rows > 0;  // A class without rows is written over.
      to_right += to_right->rows > 0;
    }
    left_classes_.resize(static_cast<std::size_t>(to_left - left_classes_.data()));
    right_classes_.resize(static_cast<std::size_t>(to_right - right_classes_.data()));
    // Codes that the node does not have follow the heavier side.
    const bool left_is_heavier = 2 * left_weight >= node_weight_;
    const std::size_t left = tree_.nodes.size();
    RandomisedNode& node = tree_.nodes[node_.node];
    node.feature = static_cast<std::int32_t>(feature);
    node.left = static_cast<std::int32_t>(left);
    node.missing_left = best.has_missing ? best.cut.missing_left : left_is_heavier;
    node.code = best.cut.last_left;
    node.gain = std::max(0.0, best.score - squares / static_cast<double>(node_weight_)) / total_weight_;
    if (best.cut.by_set) {
      const Code missing = dataset_.columns[feature].missing_code();
      for (std::size_t code = 0; code <= missing; ++code) {
        const Code each = static_cast<Code>(code);
        if (!best.present.has(each)) best.cut.goes_left.put(each, left_is_heavier);
      }
      node.set = static_cast<std::int32_t>(tree_.sets.size());
      tree_.sets.push_back(best.cut.goes_left);
    }
    tree_.nodes.resize(left + 2);
    const std::size_t middle = partition();
    note_places(node_.first, node_.last);
    const Pending parent = node_;
    push({left + 1, parent.depth + 1, middle, parent.last, key_of_child(parent.key, false), 0}, right_classes_);
    push({left, parent.depth + 1, parent.first, middle, key_of_child(parent.key, true), 0}, left_classes_);
  }

  // Moves the rows that go left to the front and returns where the others begin. Both keep their order.
  std::size_t partition() {
    const std::size_t count = node_.last - node_.first;
    const std::size_t left = move_marked(rows_.data() + node_.first, scratch_.data(), count);
    if (!weight_.empty()) move_marked(weight_.data() + node_.first, weight_scratch_.data(), count);
    return node_.first + left;
  }

  std::size_t move_marked(std::uint32_t* entries, std::uint32_t* scratch, std::size_t count) const {
    std::size_t left = 0;
    std::size_t right = 0;
    for (std::size_t first = 0; first < count; first += kWord) {
      std::uint64_t bits = best_marks_.bits[first / kWord];
      const std::size_t last = std::min(count, first + kWord);
      for (std::size_t i = first; i < last; ++i, bits >>= 1) {
        const std::uint32_t entry = entries[i];
        entries[left] = entry;
        scratch[right] = entry;
        left += bits & 1U;
        right += ~bits & 1U;
      }
    }
    std::copy_n(scratch, right, entries + left);
    return left;
  }

  const Dataset& dataset_;
  const TrainingRows& training_;
  const RandomisedGrowth& growth_;
  const std::vector<std::uint32_t> columns_;
  const std::size_t drawn_count_;
  const std::uint64_t least_weight_;
  const std::uint64_t shortest_list_;
  double total_weight_;
  const std::size_t words_of_columns_;

  // These belong to the tree that is grown.
  RandomisedTree tree_;
  std::vector<Row> rows_;              // A node has a range of them, ordered by class.
  std::vector<std::uint32_t> weight_;  // They go with the rows. Empty means 1 for all.
  std::vector<Pending> pending_;
  std::vector<ClassRows> waiting_classes_;
  std::vector<std::uint64_t> waiting_constant_;

  // These belong to the node that is split.
  Pending node_{};
  std::uint64_t node_weight_ = 0;
  std::vector<ClassRows> classes_, left_classes_, right_classes_;
  std::vector<std::uint64_t> constant_;  // A bit tells that a column is constant in the node, as far as is known.
  std::vector<std::uint32_t> order_;     // The columns in the order in which they are drawn.
  std::vector<std::uint32_t> swapped_;   // Each of the first columns has changed places with this one.
  std::vector<std::uint32_t> scratch_, weight_scratch_;
  std::vector<Code> codes_;
  Marks best_marks_, marks_;
  std::vector<std::uint32_t> best_left_, left_;  // So many rows of each class of the node go left.

  // These serve columns that are lists.
  std::vector<char> is_too_short_;  // A column is a list that can part no leaf from the others.
  struct ListedRow {
    std::uint32_t at;
    Code code;
  };
  std::vector<std::uint32_t> place_of_;       // A row is at this place of rows_.
  std::vector<std::uint32_t> slot_of_class_;  // A class is at this place of classes_.
  std::vector<ListedRow> listed_;             // The node has these listed rows.
  std::vector<std::uint64_t> left_weight_;    // This weight of each class goes left.
};

// Returns the share of every class in the training rows, one row of each class added, so that none has none.
inline std::vector<double> find_prior(const TrainingRows& training, double smoothing) {
  const double one = smoothing * training.unit;
  double total = 0.0;
  for (const std::uint64_t weight : training.class_weight) total += static_cast<double>(weight) + one;
  std::vector<double> prior;
  for (const std::uint64_t weight : training.class_weight) {
    prior.push_back((static_cast<double>(weight) + one) / total);
  }
  return prior;
}

// Appends a tree but for its values.
inline void append(FlatForest& flat, const RandomisedTree& tree, const Dataset& dataset, double leverage) {
  const std::size_t first_set = flat.codes.size() / kWordsOfSet;
  for (const CodeSet& set : tree.sets) flat.codes.insert(flat.codes.end(), set.words().begin(), set.words().end());
  for (const RandomisedNode& node : tree.nodes) {
    flat.feature.push_back(node.feature);
    flat.left.push_back(node.left);
    flat.missing_left.push_back(node.missing_left);
    flat.gain.push_back(node.gain);
    flat.set.push_back(node.set < 0 ? -1 : static_cast<std::int32_t>(first_set) + node.set);
    flat.threshold.push_back(0.0);
    if (node.feature < 0 || node.set >= 0) continue;
    const Column& column = dataset.columns[static_cast<std::size_t>(node.feature)];
    const bool has_threshold = node.code < column.thresholds.size();
    flat.threshold.back() = has_threshold ? column.thresholds[node.code] : std::numeric_limits<double>::infinity();
  }
  flat.offset.push_back(static_cast<std::int64_t>(flat.feature.size()));
  flat.edge.push_back(0.0);
  flat.leverage.push_back(leverage);
}

// Two classes need one value, the logarithm of their odds. More of them have a value each.
inline std::size_t count_outputs(std::size_t classes) { return classes == 2 ? 1 : classes; }

// Writes the values of a tree: at leaves the logarithms of the classes' shares, or of the odds of the second of two
// classes, times the leverage, and at splits zeros.
inline void write_values(const RandomisedTree& tree, const std::vector<double>& prior, double smoothing,
                         double leverage, double* values) {
  const std::size_t classes = prior.size();
  const std::size_t outputs = count_outputs(classes);
  std::vector<double> of_absent(classes);
  for (std::size_t k = 0; k < classes; ++k) of_absent[k] = std::log(smoothing * prior[k]);
  std::vector<double> logarithm(classes);
  for (std::size_t n = 0; n < tree.nodes.size(); ++n) {
    const RandomisedNode& node = tree.nodes[n];
    double* value = values + n * outputs;
    if (node.feature >= 0) {
      std::fill_n(value, outputs, 0.0);
      continue;
    }
    double total = smoothing;
    logarithm = of_absent;
    for (std::size_t i = node.first_class; i < node.last_class; ++i) {
      const ClassRows& each = tree.classes[i];
      logarithm[each.label] = std::log(static_cast<double>(each.weight) + smoothing * prior[each.label]);
      total += static_cast<double>(each.weight);
    }
    if (classes == 2) {
      *value = leverage * (logarithm[1] - logarithm[0]);
      continue;
    }
    const double log_total = std::log(total);
    for (std::size_t k = 0; k < classes; ++k) value[k] = leverage * (logarithm[k] - log_total);
  }
}

}  // namespace randomised

// Grows trees whose scores are the mean over the trees of the logarithms of the classes' shares, of two classes of the
// logarithm of their odds.
inline FlatForest grow_randomised(const Dataset& dataset, const std::vector<double>& sample_weight,
                                  const RandomisedGrowth& growth, ThreadPool& pool) {
  const randomised::TrainingRows training(dataset, sample_weight);
  std::vector<randomised::RandomisedTree> trees(growth.trees);
  std::vector<std::unique_ptr<randomised::Grower>> growers(static_cast<std::size_t>(pool.size()));
  pool.chunks(growth.trees, 1, [&](int thread, std::size_t first, std::size_t last) {
    auto& grower = growers[static_cast<std::size_t>(thread)];
    if (!grower) grower = std::make_unique<randomised::Grower>(dataset, training, growth);
    for (std::size_t tree = first; tree < last; ++tree) trees[tree] = grower->grow(growth.first_tree + tree);
  });
  const double leverage = 1.0 / static_cast<double>(growth.trees);
  FlatForest flat;
  for (const auto& tree : trees) randomised::append(flat, tree, dataset, leverage);
  const auto prior = randomised::find_prior(training, growth.smoothing);
  const double smoothing = growth.smoothing * training.unit;
  flat.outputs = randomised::count_outputs(prior.size());
  flat.value.resize(flat.feature.size() * flat.outputs);
  pool.chunks(growth.trees, 1, [&](int, std::size_t first, std::size_t last) {
    for (std::size_t tree = first; tree < last; ++tree) {
      double* values = flat.value.data() + static_cast<std::size_t>(flat.offset[tree]) * flat.outputs;
      randomised::write_values(trees[tree], prior, smoothing, leverage, values);
    }
  });
  return flat;
}

}  // namespace untwist
