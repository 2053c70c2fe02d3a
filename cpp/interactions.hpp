// Tells which columns may meet on the way from the root of a tree to a leaf.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace untwist {

// The columns of a way must all be in one group. A column may be in several groups, and is in one at least.
class Interactions {
 public:
  // This is what splits so far leave open: the groups that have all their columns, and the columns of these groups.
  struct Way {
    std::vector<std::uint32_t> groups;
    std::vector<bool> allowed;  // A column has an entry.
  };

  Interactions(std::vector<std::vector<std::uint32_t>> groups, std::size_t columns)
      : columns_of_group_(std::move(groups)), groups_of_column_(columns) {
    for (std::size_t group = 0; group < columns_of_group_.size(); ++group) {
      for (const std::uint32_t column : columns_of_group_[group]) {
        groups_of_column_[column].push_back(static_cast<std::uint32_t>(group));
      }
    }
  }

  std::size_t columns() const { return groups_of_column_.size(); }

  // Returns what is left open below a split by a column. Nothing was split before where `before` is null.
  std::shared_ptr<const Way> follow(const Way* before, std::size_t column) const {
    const std::vector<std::uint32_t>& of_column = groups_of_column_[column];
    auto way = std::make_shared<Way>();
    if (before == nullptr) {
      way->groups = of_column;
    } else {
      std::set_intersection(before->groups.begin(), before->groups.end(), of_column.begin(), of_column.end(),
                            std::back_inserter(way->groups));
    }
    way->allowed.resize(columns(), false);
    for (const std::uint32_t group : way->groups) {
      for (const std::uint32_t one : columns_of_group_[group]) way->allowed[one] = true;
    }
    return way;
  }

 private:
  const std::vector<std::vector<std::uint32_t>> columns_of_group_;
  std::vector<std::vector<std::uint32_t>> groups_of_column_;
};

}  // namespace untwist
