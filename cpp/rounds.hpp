// PILBoost's rounds: weights, a tree, its edge from its own leaf sums, the margins. All of it here, nothing in Python.
//
// Rows are grouped by class, so that one sum per row, feature and bin is enough: G = W_pos - W_neg, W = W_pos + W_neg.
// Rows beyond the clip have weight 0 and take no part in growing the tree; it is applied to them all the same.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "binning.hpp"
#include "histogram.hpp"
#include "threads.hpp"
#include "tree.hpp"
#include "weights.hpp"

namespace untwist {

struct Settings {
  double alpha = 2.0;
  bool exact_link = false;
  double step_size = 4.0;
  int max_depth = 3;
  double l2 = 0.0;  // in units of a row of the largest sample weight at boosting weight 1
};

// Rows with their codes, row by row, the negative class first, and kPadding bytes after the last.
struct Sample {
  std::vector<Column> columns;
  std::vector<Code> codes;
  std::size_t rows = 0;
  std::size_t negatives = 0;
  std::vector<float> weight;  // sample weights scaled to (0, 1]; empty for all ones
  double total_weight = 0.0;
};

inline constexpr std::size_t kPadding = 8;

// What Python sees of a run: the trees so far.
class Booster {
 public:
  virtual ~Booster() = default;

  // Runs up to `rounds` rounds; fewer if all weights become zero.
  virtual void boost(int rounds) = 0;

  const Sample& sample() const { return sample_; }
  const std::vector<Tree>& trees() const { return trees_; }
  const std::vector<double>& edges() const { return edges_; }

 protected:
  explicit Booster(Sample sample) : sample_(std::move(sample)) {}

  Sample sample_;
  std::vector<Tree> trees_;
  std::vector<double> edges_;
};

// The run, with histograms of 32-bit sums where all weights together fit into one, else of 64-bit sums.
template <typename Bin>
class Rounds final : public Booster {
 public:
  Rounds(Sample sample, Settings settings, int threads)
      : Booster(std::move(sample)),
        settings_(settings),
        clipped_(settings.alpha),
        unit_(std::ldexp(1.0, weight_bits(sample_.total_weight, sample_.rows))),
        features_(sample_.columns.size()),
        pool_(sample_.rows * features_ < kThreadsPayOff ? 1 : threads),
        margins_(sample_.rows, 0.0),
        weight_(sample_.rows, 0),
        active_(sample_.rows),
        scratch_(sample_.rows),
        sums_(static_cast<std::size_t>(pool_.size()), std::vector<std::uint32_t>(features_ * kBins)) {
    for (const Column& column : sample_.columns) missing_codes_.push_back(column.missing_code());
  }

  void boost(int rounds) override {
    for (int round = 0; round < rounds; ++round) {
      weigh();
      if (total_[0] + total_[1] == 0) return;
      grow();
      update();
    }
  }

 private:
  using Histogram = std::vector<Bin>;  // [class][feature][bin]

  struct Growing {  // a node with its rows: those of each class in a range of active_
    std::int32_t node = 0;
    std::array<std::size_t, 2> first{}, last{};
    std::array<Sum, 2> weight{};
    std::unique_ptr<Histogram> histogram;

    std::size_t rows() const { return last[0] - first[0] + last[1] - first[1]; }
  };

  struct Split {
    double gain = 0.0;
    std::int32_t feature = -1;
    Code code = 0;
    bool missing_left = false;
    std::array<Sum, 2> left{};
  };

  struct Piece {  // some rows of one class of one node: what a thread takes at a time
    std::size_t owner;
    int side;
    std::size_t first, last;
    std::size_t count = 0;  // of rows kept (weigh) or sent left (partition), packed at the start of the piece in scratch_
    std::size_t to = 0;     // where in active_ these go, and the others
    std::size_t to_other = 0;
    Sum weight = 0;
  };

  static constexpr std::size_t kThreadsPayOff = 50000;  // rows * features
  static constexpr std::size_t kFlushRows = 16384;  // of weights up to 2^17 fit into a 32-bit sum, or all do
  static constexpr std::size_t kPiece = 2048;
  static constexpr std::size_t kFewRows = 2048;
  static constexpr std::size_t kAhead = 24;  // entries to fetch ahead

  static void cut(std::vector<Piece>& pieces, std::size_t owner, int side, std::size_t first, std::size_t last,
                  std::size_t size) {
    for (; first < last; first += size) pieces.push_back({owner, side, first, std::min(last, first + size)});
  }

  // Calls task(thread, piece) for all pieces; a few rows are not worth waking anyone.
  template <typename Task>
  void each(std::vector<Piece>& pieces, const Task& task) {
    std::size_t rows = 0;
    for (const Piece& piece : pieces) rows += piece.last - piece.first;
    pool_.chunks(pieces.size(), rows < kFewRows ? pieces.size() : 1, [&](int thread, std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) task(thread, pieces[i]);
    });
  }

  // ---- weights: fixed point, and the list of rows that have one ----

  void weigh() {
    pieces_.clear();
    cut(pieces_, 0, 0, 0, sample_.negatives, kPiece);
    cut(pieces_, 0, 1, sample_.negatives, sample_.rows, kPiece);
    each(pieces_, [&](int, Piece& piece) {
      const float* own = sample_.weight.empty() ? nullptr : sample_.weight.data() + piece.first;
      const std::size_t length = piece.last - piece.first;
      if (settings_.exact_link) {
        exact_weights(settings_.alpha, static_cast<float>(unit_), margins_.data() + piece.first, own, length, weight_.data() + piece.first);
      } else {
        clipped_weights(clipped_, static_cast<float>(unit_), margins_.data() + piece.first, own, length, weight_.data() + piece.first);
      }
      Entry* kept = scratch_.data() + piece.first;
      Sum sum = 0;
      for (std::size_t row = piece.first; row < piece.last; ++row) {
        *kept = {static_cast<Row>(row), weight_[row]};
        kept += weight_[row] > 0;
        sum += weight_[row];
      }
      piece.count = static_cast<std::size_t>(kept - scratch_.data()) - piece.first;
      piece.weight = sum;
    });
    std::size_t count = 0;
    total_ = {0, 0};
    root_ = Growing{};
    for (Piece& piece : pieces_) {
      piece.to = count;
      count += piece.count;
      total_[static_cast<std::size_t>(piece.side)] += piece.weight;
      root_.last[static_cast<std::size_t>(piece.side)] = count;
    }
    root_.first[1] = root_.last[0];
    root_.last[1] = count;
    root_.weight = total_;
    each(pieces_, [&](int, Piece& piece) {
      std::copy_n(scratch_.begin() + static_cast<std::ptrdiff_t>(piece.first), piece.count,
                  active_.begin() + static_cast<std::ptrdiff_t>(piece.to));
    });
  }

  // ---- a tree, level by level ----

  void grow() {
    trees_.emplace_back(1);
    Tree& tree = trees_.back();
    finished_.clear();
    std::vector<Growing> level;
    level.push_back(std::move(root_));
    build(level, {0});
    for (int depth = 0; depth < settings_.max_depth && !level.empty(); ++depth) {
      find_splits(level);
      const bool last = depth + 1 == settings_.max_depth;
      std::vector<Growing> splitting;
      std::vector<Split> splits;
      for (std::size_t i = 0; i < level.size(); ++i) {
        const Split& split = splits_[i];
        if (split.feature >= 0) {
          divide(tree, level[i], split);
          if (!last) {
            splitting.push_back(std::move(level[i]));
            splits.push_back(split);
            continue;
          }
        } else {
          settle(tree[static_cast<std::size_t>(level[i].node)], level[i].weight);
        }
        finish(std::move(level[i]));
      }
      level = partition(tree, splitting, splits);
    }
    for (Growing& node : level) {  // max_depth = 0
      settle(tree[static_cast<std::size_t>(node.node)], node.weight);
      finish(std::move(node));
    }
    double edge = 0.0;
    for (const Node& node : tree) {
      if (node.feature < 0) edge += node.gain;  // a leaf keeps G * value there until the edge is known
    }
    edge /= total_weight();
    edges_.push_back(edge);
    for (Node& node : tree) {
      if (node.feature >= 0) continue;
      node.gain = 0.0;
      node.value *= settings_.step_size * edge;
    }
  }

  double total_weight() const { return sample_.total_weight * unit_; }

  static double difference(const std::array<Sum, 2>& weight) {
    return static_cast<double>(static_cast<std::int64_t>(weight[1] - weight[0]));
  }

  void settle(Node& leaf, const std::array<Sum, 2>& weight) const {
    const double G = difference(weight);
    leaf.value = G / (static_cast<double>(weight[0] + weight[1]) + settings_.l2 * unit_);
    leaf.gain = G * leaf.value;
  }

  void divide(Tree& tree, const Growing& node, const Split& split) const {
    const std::int32_t left = static_cast<std::int32_t>(tree.size());
    tree.resize(tree.size() + 2);
    Node& parent = tree[static_cast<std::size_t>(node.node)];
    parent.feature = split.feature;
    parent.code = split.code;
    parent.missing_left = split.missing_left;
    parent.gain = split.gain / total_weight();
    parent.left = left;
    settle(tree[static_cast<std::size_t>(left)], split.left);
    settle(tree[static_cast<std::size_t>(left) + 1], {node.weight[0] - split.left[0], node.weight[1] - split.left[1]});
  }

  void finish(Growing node) {
    recycle(std::move(node.histogram));
    finished_.push_back(std::move(node));
  }

  std::unique_ptr<Histogram> fresh() {
    if (spare_.empty()) return std::make_unique<Histogram>(2 * features_ * kBins);
    auto histogram = std::move(spare_.back());
    spare_.pop_back();
    return histogram;
  }

  void recycle(std::unique_ptr<Histogram> histogram) {
    if (histogram != nullptr) spare_.push_back(std::move(histogram));
  }

  // Histograms of some nodes of a level from their rows.
  void build(std::vector<Growing>& level, const std::vector<std::size_t>& chosen) {
    pieces_.clear();
    for (const std::size_t i : chosen) {
      level[i].histogram = fresh();
      for (std::size_t side = 0; side < 2; ++side) {
        const std::size_t rows = level[i].last[side] - level[i].first[side];
        if (rows == 0 || rows > kFlushRows) {  // else the one piece overwrites what is there
          Bin* sums = level[i].histogram->data() + side * features_ * kBins;
          std::fill(sums, sums + features_ * kBins, Bin{0});
        }
        cut(pieces_, i, static_cast<int>(side), level[i].first[side], level[i].last[side], kFlushRows);
      }
    }
    each(pieces_, [&](int thread, Piece& piece) {
      std::uint32_t* sums = sums_[static_cast<std::size_t>(thread)].data();
      for (std::size_t feature = 0; feature < features_; ++feature) {
        std::fill_n(sums + feature * kBins, sample_.columns[feature].bins(), 0U);
      }
      add_rows(sample_.codes.data(), features_, active_.data() + piece.first, piece.last - piece.first, sums);
      const Growing& node = level[piece.owner];
      const std::size_t side = static_cast<std::size_t>(piece.side);
      const bool alone = node.last[side] - node.first[side] <= kFlushRows;
      Bin* into = node.histogram->data() + side * features_ * kBins;
      std::unique_lock<std::mutex> guard(flush_, std::defer_lock);
      if (!alone) guard.lock();  // others add to the same sums
      for (std::size_t feature = 0; feature < features_; ++feature) {
        const std::size_t start = feature * kBins;
        const std::size_t end = start + static_cast<std::size_t>(sample_.columns[feature].bins());
        if (alone) {
          for (std::size_t bin = start; bin < end; ++bin) into[bin] = sums[bin];
        } else {
          for (std::size_t bin = start; bin < end; ++bin) into[bin] += sums[bin];
        }
      }
    });
  }

  // The best split of every node of a level, ties going to the smaller feature and code.
  void find_splits(const std::vector<Growing>& level) {
    candidates_.assign(level.size() * features_, Split{});
    const std::size_t chunk = level.size() * features_ < 40 ? candidates_.size() : 8;
    pool_.chunks(candidates_.size(), chunk, [&](int, std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) candidates_[i] = best_code(level[i / features_], i % features_);
    });
    splits_.assign(level.size(), Split{});
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].gain > splits_[i / features_].gain) splits_[i / features_] = candidates_[i];
    }
  }

  Split best_code(const Growing& node, std::size_t feature) const {
    const Column& column = sample_.columns[feature];
    const Bin* negative = node.histogram->data() + feature * kBins;
    const Bin* positive = negative + features_ * kBins;
    std::array<double, kBins> G_left, W_left, value;
    const int values = column.values();
    std::array<Sum, 2> left{0, 0};
    for (int code = 0; code < values; ++code) {
      left[0] += negative[code];
      left[1] += positive[code];
      G_left[static_cast<std::size_t>(code)] = difference(left);
      W_left[static_cast<std::size_t>(code)] = static_cast<double>(static_cast<std::int64_t>(left[0] + left[1]));
    }
    const std::array<Sum, 2> missing{node.weight[0] - left[0], node.weight[1] - left[1]};
    const bool any_missing = missing[0] + missing[1] > 0;
    const double G = difference(node.weight);
    const double W = static_cast<double>(node.weight[0] + node.weight[1]);
    const double l2 = settings_.l2 * unit_;
    const double none = G * G / (W + l2);
    double best = none + 1e-12 * W;  // a split must beat none by more than rounding
    int best_at = -1;
    bool best_missing_left = false;
    // An empty bin repeats the candidate before it, and an empty side gives NaN without l2 and `none` with it: neither
    // is better than what was there.
    const auto look = [&](bool missing_left) {
      split_values(G_left.data(), W_left.data(), values, G, W, l2, value.data());
      for (int code = 0; code < values; ++code) {
        if (value[static_cast<std::size_t>(code)] > best) {
          best = value[static_cast<std::size_t>(code)];
          best_at = code;
          best_missing_left = missing_left;
        }
      }
    };
    look(false);
    if (any_missing) {
      const double G_missing = difference(missing);
      const double W_missing = static_cast<double>(missing[0] + missing[1]);
      for (std::size_t code = 0; code < static_cast<std::size_t>(values); ++code) {
        G_left[code] += G_missing;  // whole numbers below 2^53: exact
        W_left[code] += W_missing;
      }
      look(true);
    }
    if (best_at < 0) return {};
    std::array<Sum, 2> sums{best_missing_left ? missing[0] : 0, best_missing_left ? missing[1] : 0};
    for (int code = 0; code <= best_at; ++code) {
      sums[0] += negative[code];
      sums[1] += positive[code];
    }
    // Missing values that training never saw here go to the heavier side.
    if (!any_missing) best_missing_left = 2 * (sums[0] + sums[1]) >= node.weight[0] + node.weight[1];
    return {best - none, static_cast<std::int32_t>(feature), static_cast<Code>(best_at), best_missing_left, sums};
  }

  // Sends the rows of every node to its children and gives these their histograms.
  std::vector<Growing> partition(const Tree& tree, std::vector<Growing>& nodes, const std::vector<Split>& splits) {
    pieces_.clear();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (int side = 0; side < 2; ++side) {
        cut(pieces_, i, side, nodes[i].first[static_cast<std::size_t>(side)], nodes[i].last[static_cast<std::size_t>(side)], kPiece);
      }
    }
    each(pieces_, [&](int, Piece& piece) {
      const Node& node = tree[static_cast<std::size_t>(nodes[piece.owner].node)];
      const std::size_t feature = static_cast<std::size_t>(node.feature);
      const Code missing = missing_codes_[feature];
      Entry* left = scratch_.data() + piece.first;
      Entry* right = scratch_.data() + piece.last;  // filled backwards; the order of rows does not matter
      const Code* column = sample_.codes.data() + feature;
      for (std::size_t i = piece.first; i < piece.last; ++i) {
        if (i + kAhead < piece.last) __builtin_prefetch(column + active_[i + kAhead].row * features_);
        const Entry entry = active_[i];
        const bool is_left = goes_left(node, column[entry.row * features_], missing);
        *left = entry;
        right[-1] = entry;
        left += is_left;
        right -= !is_left;
      }
      piece.count = static_cast<std::size_t>(left - scratch_.data()) - piece.first;
    });
    std::vector<Growing> children(2 * nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::int32_t left = tree[static_cast<std::size_t>(nodes[i].node)].left;
      for (std::size_t k = 0; k < 2; ++k) children[2 * i + k].node = left + static_cast<std::int32_t>(k);
      children[2 * i].weight = splits[i].left;
      for (std::size_t c = 0; c < 2; ++c) children[2 * i + 1].weight[c] = nodes[i].weight[c] - splits[i].left[c];
    }
    for (std::size_t p = 0; p < pieces_.size();) {  // the pieces of one class of one node are neighbours
      const std::size_t owner = pieces_[p].owner;
      const std::size_t side = static_cast<std::size_t>(pieces_[p].side);
      std::size_t end = p;
      std::size_t count = 0;
      for (; end < pieces_.size() && pieces_[end].owner == owner && pieces_[end].side == pieces_[p].side; ++end) {
        count += pieces_[end].count;
      }
      std::size_t to = nodes[owner].first[side];
      std::size_t to_other = to + count;
      children[2 * owner].first[side] = to;
      children[2 * owner].last[side] = children[2 * owner + 1].first[side] = to_other;
      children[2 * owner + 1].last[side] = nodes[owner].last[side];
      for (; p < end; ++p) {
        pieces_[p].to = to;
        pieces_[p].to_other = to_other;
        to += pieces_[p].count;
        to_other += pieces_[p].last - pieces_[p].first - pieces_[p].count;
      }
    }
    each(pieces_, [&](int, Piece& piece) {
      const Entry* from = scratch_.data() + piece.first;
      std::copy(from, from + piece.count, active_.data() + piece.to);
      std::copy(from + piece.count, from + (piece.last - piece.first), active_.data() + piece.to_other);
    });
    // The child with fewer rows is summed up, its sibling is what remains of the parent.
    std::vector<std::size_t> smaller;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      smaller.push_back(2 * i + (children[2 * i].rows() <= children[2 * i + 1].rows() ? 0 : 1));
    }
    build(children, smaller);
    pool_.chunks(nodes.size(), nodes.size() * features_ < 100 ? nodes.size() : 1, [&](int, std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) {
        Histogram& parent = *nodes[i].histogram;
        const Histogram& child = *children[smaller[i]].histogram;
        for (std::size_t side = 0; side < 2; ++side) {
          for (std::size_t feature = 0; feature < features_; ++feature) {
            const std::size_t start = (side * features_ + feature) * kBins;
            const std::size_t bins = static_cast<std::size_t>(sample_.columns[feature].bins());
            for (std::size_t bin = start; bin < start + bins; ++bin) parent[bin] -= child[bin];
          }
        }
      }
    });
    for (std::size_t i = 0; i < nodes.size(); ++i) children[smaller[i] ^ 1].histogram = std::move(nodes[i].histogram);
    return children;
  }

  // ---- margins ----

  void update() {
    const Tree& tree = trees_.back();
    pieces_.clear();
    for (std::size_t i = 0; i < finished_.size(); ++i) {
      for (int side = 0; side < 2; ++side) {
        const std::size_t s = static_cast<std::size_t>(side);
        cut(pieces_, i, side, finished_[i].first[s], finished_[i].last[s], kPiece);
      }
    }
    each(pieces_, [&](int, Piece& piece) {
      const Node& node = tree[static_cast<std::size_t>(finished_[piece.owner].node)];
      const double sign = piece.side == 1 ? 1.0 : -1.0;
      if (node.feature < 0) {
        for (std::size_t i = piece.first; i < piece.last; ++i) margins_[active_[i].row] += sign * node.value;
        return;
      }
      const std::size_t feature = static_cast<std::size_t>(node.feature);
      const double left = sign * tree[static_cast<std::size_t>(node.left)].value;
      const double right = sign * tree[static_cast<std::size_t>(node.left) + 1].value;
      for (std::size_t i = piece.first; i < piece.last; ++i) {
        if (i + kAhead < piece.last) __builtin_prefetch(sample_.codes.data() + active_[i + kAhead].row * features_ + feature);
        const Row row = active_[i].row;
        margins_[row] += goes_left(node, sample_.codes[row * features_ + feature], missing_codes_[feature]) ? left : right;
      }
    });
    std::size_t present = 0;
    for (const Growing& node : finished_) present += node.rows();
    if (present == sample_.rows) return;
    pool_.chunks(sample_.rows, kPiece, [&](int, std::size_t first, std::size_t last) {
      for (std::size_t row = first; row < last; ++row) {
        if (weight_[row] > 0) continue;
        const double value = leaf_value(tree, missing_codes_, sample_.codes.data() + row * features_);
        margins_[row] += row >= sample_.negatives ? value : -value;
      }
    });
  }

  Settings settings_;
  ClippedWeight clipped_;
  double unit_;  // the fixed-point weight 1
  std::size_t features_;
  ThreadPool pool_;
  std::vector<double> margins_;
  std::vector<std::uint32_t> weight_;
  std::vector<Entry> active_, scratch_;
  std::vector<std::vector<std::uint32_t>> sums_;  // one per thread
  std::vector<Code> missing_codes_;
  std::vector<Piece> pieces_;
  std::vector<Split> candidates_, splits_;
  std::vector<Growing> finished_;
  std::vector<std::unique_ptr<Histogram>> spare_;
  std::mutex flush_;
  std::array<Sum, 2> total_{};
  Growing root_;
};

inline std::unique_ptr<Booster> make_rounds(Sample sample, Settings settings, int threads) {
  if (fits_32_bits(sample.total_weight, sample.rows)) return std::make_unique<Rounds<std::uint32_t>>(std::move(sample), settings, threads);
  return std::make_unique<Rounds<std::uint64_t>>(std::move(sample), settings, threads);
}

}  // namespace untwist
