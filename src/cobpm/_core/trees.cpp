#include "trees.hpp"

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

void box_masses(const Forest& forest, const double* leaf_mass, int sets, const std::uint8_t* levels, const std::uint64_t* indices,
                std::int64_t boxes, PointsIn points, double* mass, int threads, Monitor& monitor) {
  monitor.parallel(forest.trees, threads, [&](std::size_t which) {
    const Tree tree(forest, which);
    struct Visit {
      std::int32_t node;
      std::int32_t depth;  // length of the path when it was put off
    };
    std::vector<Visit> stack;
    std::vector<int> path;
    std::vector<int> level(forest.d);
    for (std::int64_t box = 0; box < boxes; ++box) {
      const std::uint8_t* box_level = levels + box * forest.d;
      const std::uint64_t* box_index = indices + box * forest.d;
      double* out = mass + (which * boxes + box) * sets;
      std::fill(out, out + sets, 0.0);
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
        bool inside = true;
        for (int column = 0; column < forest.d; ++column) {
          finer += std::max(0, box_level[column] - level[column]);
          inside = inside && box_level[column] >= level[column];
        }
        const std::int64_t leaf = forest.leaf_start[which] + tree.leaf_before[at];
        double share = std::ldexp(1.0, -finer);
        if (points.leaves && inside && points.leaves[leaf] > 0) {
          share = static_cast<double>(points.boxes[box]) / static_cast<double>(points.leaves[leaf]);
        }
        for (int set = 0; set < sets; ++set) out[set] += share * leaf_mass[leaf * sets + set];
      }
    }
    monitor.check(1.0);
  });
}

}  // namespace cobpm
