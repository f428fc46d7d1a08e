#include "trees.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "regions.hpp"

namespace cobpm {
namespace {

// One tree with what preorder leaves implicit: where the upper half of each node begins, and how many leaves come before it.
struct Tree {
  const std::int16_t* splits;
  std::vector<std::int32_t> upper;        // node → its upper child
  std::vector<std::int32_t> leaf_before;  // node → leaves written before it

  Tree(const Forest& forest, std::int64_t which) : splits(forest.splits + forest.node_start[which]) {
    const std::int64_t nodes = forest.node_start[which + 1] - forest.node_start[which];
    upper.assign(nodes, -1);
    leaf_before.resize(nodes);
    std::vector<std::int32_t> open;
    std::int32_t leaves = 0;
    for (std::int32_t i = 0; i < nodes; ++i) {
      leaf_before[i] = leaves;
      if (splits[i] >= 0) {
        open.push_back(i);
        continue;
      }
      ++leaves;
      // A finished subtree ends every ancestor whose upper half it was; the next node is the upper half of the one that remains.
      while (!open.empty() && upper[open.back()] >= 0) open.pop_back();
      if (!open.empty()) upper[open.back()] = i + 1;
    }
  }
};

}  // namespace

void describe(const Forest& forest, std::uint16_t* depth, double* log_orders, int threads, Monitor& monitor) {
  monitor.parallel(forest.trees, threads, [&](std::size_t which) {
    const std::int16_t* splits = forest.splits + forest.node_start[which];
    const std::int64_t nodes = forest.node_start[which + 1] - forest.node_start[which];
    std::uint16_t* out = depth + forest.leaf_start[which];
    struct Open {
      bool upper;
      std::int64_t inner;
    };
    std::vector<Open> path;
    double log_product = 0.0;
    for (std::int64_t i = 0; i < nodes; ++i) {
      if (splits[i] >= 0) {
        path.push_back({false, 1});
        continue;
      }
      *out++ = static_cast<std::uint16_t>(path.size());
      while (!path.empty() && path.back().upper) {
        const std::int64_t inner = path.back().inner;
        log_product += std::log(static_cast<double>(inner));
        path.pop_back();
        if (!path.empty()) path.back().inner += inner;
      }
      if (!path.empty()) path.back().upper = true;
    }
    log_orders[which] = std::lgamma(static_cast<double>((nodes + 1) / 2)) - log_product;
  });
}

void locate(const Forest& forest, const std::uint64_t* codes, std::int64_t n, std::int64_t* leaf, int threads, Monitor& monitor) {
  monitor.parallel(forest.trees, threads, [&](std::size_t which) {
    const Tree tree(forest, which);
    std::vector<std::int32_t> level(forest.d);
    for (std::int64_t point = 0; point < n; ++point) {
      std::fill(level.begin(), level.end(), 0);
      std::int32_t at = 0;
      while (tree.splits[at] >= 0) {
        const int column = tree.splits[at];
        const int shift = kBits - ++level[column];
        const bool up = shift >= 0 && ((codes[column * n + point] >> shift) & 1);
        at = up ? tree.upper[at] : at + 1;
      }
      leaf[which * n + point] = forest.leaf_start[which] + tree.leaf_before[at];
    }
    monitor.check(1.0);
  });
}

namespace {

// What a leaf and a box have in common.
struct Overlap {
  std::int64_t leaf;  // within its tree
  std::int64_t box;
  double share;  // of the leaf
};

// All overlaps of a tree's leaves with dyadic boxes, as shares of the leaves' volumes.
std::vector<Overlap> overlaps_of(const Tree& tree, int d, const std::uint8_t* levels, const std::uint64_t* indices, std::int64_t boxes) {
  struct Visit {
    std::int32_t node;
    std::int32_t depth;  // length of the path when it was put off
  };
  std::vector<Overlap> found;
  std::vector<Visit> stack;
  std::vector<int> path;
  std::vector<int> level(d);
  for (std::int64_t box = 0; box < boxes; ++box) {
    const std::uint8_t* box_level = levels + box * d;
    const std::uint64_t* box_index = indices + box * d;
    std::fill(level.begin(), level.end(), 0);
    path.clear();
    stack.assign(1, {0, 0});
    while (!stack.empty()) {
      auto [at, depth] = stack.back();
      stack.pop_back();
      for (; static_cast<std::int32_t>(path.size()) > depth; path.pop_back()) --level[path.back()];
      while (tree.splits[at] >= 0) {
        const int column = tree.splits[at];
        const int deeper = box_level[column] - level[column];
        path.push_back(column);
        ++level[column];
        if (deeper > 0) {  // the box lies in one half
          at = (box_index[column] >> (deeper - 1)) & 1 ? tree.upper[at] : at + 1;
        } else {  // it spans both
          stack.push_back({tree.upper[at], static_cast<std::int32_t>(path.size())});
          at = at + 1;
        }
      }
      int finer = 0;  // halvings of the box that the leaf has not made
      for (int column = 0; column < d; ++column) finer += std::max(0, box_level[column] - level[column]);
      found.push_back({tree.leaf_before[at], box, std::ldexp(1.0, -finer)});
    }
  }
  return found;
}

// Turn shares of volume into shares of points: of all ways to spread the points of each leaf over the boxes that give each box its points, the one
// nearest to even. Leaves and boxes are scaled to their totals in turn (iterative proportional fitting); where no box crosses a leaf, once is enough.
void spread_as_points(std::vector<Overlap>& overlaps, const std::int64_t* leaf_points, std::int64_t leaves, const std::int64_t* box_points,
                      std::int64_t boxes) {
  constexpr int kRounds = 50;
  constexpr double kClose = 1e-5;   // of all points may be in another box
  constexpr double kEmpty = 1e-9;  // points of an empty box, which keeps the ratio of what is around it
  std::vector<double> in_leaf(leaves), in_box(boxes);
  double total = 0.0;
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) total += static_cast<double>(leaf_points[leaf]);
  for (int round = 0; round < kRounds; ++round) {
    std::fill(in_box.begin(), in_box.end(), 0.0);
    for (const Overlap& one : overlaps) in_box[one.box] += one.share * static_cast<double>(leaf_points[one.leaf]);
    double misplaced = 0.0;
    for (std::int64_t box = 0; box < boxes; ++box) {
      const double wanted = std::max(static_cast<double>(box_points[box]), kEmpty);
      misplaced += std::abs(wanted - in_box[box]);
      in_box[box] = in_box[box] > 0.0 ? wanted / in_box[box] : 1.0;
    }
    if (misplaced <= 2.0 * kClose * total) break;
    std::fill(in_leaf.begin(), in_leaf.end(), 0.0);
    for (Overlap& one : overlaps) in_leaf[one.leaf] += one.share *= in_box[one.box];
    for (Overlap& one : overlaps) one.share /= in_leaf[one.leaf];
  }
}

}  // namespace

void box_masses(const Forest& forest, const double* leaf_mass, int sets, const std::uint8_t* levels, const std::uint64_t* indices,
                std::int64_t boxes, PointsIn points, double* mass, int threads, Monitor& monitor) {
  monitor.parallel(forest.trees, threads, [&](std::size_t which) {
    const std::int64_t first = forest.leaf_start[which], leaves = forest.leaf_start[which + 1] - first;
    std::vector<Overlap> overlaps = overlaps_of(Tree(forest, which), forest.d, levels, indices, boxes);
    if (points.leaves) spread_as_points(overlaps, points.leaves + first, leaves, points.boxes, boxes);
    double* out = mass + which * boxes * sets;
    std::fill(out, out + boxes * sets, 0.0);
    for (const Overlap& one : overlaps) {
      for (int set = 0; set < sets; ++set) out[one.box * sets + set] += one.share * leaf_mass[(first + one.leaf) * sets + set];
    }
    monitor.check(1.0);
  });
}

}  // namespace cobpm
