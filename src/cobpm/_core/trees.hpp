// Questions to partitions stored as flat preorder lists: which leaf holds a point, how deep leaves lie, what mass a box holds.
#pragma once

#include <cstdint>

#include "monitor.hpp"

namespace cobpm {

// Many partitions one after another: nodes of partition i are splits[node_start[i]] …, its leaves rows leaf_start[i] ….
struct Forest {
  const std::int16_t* splits;
  const std::int64_t* node_start;
  const std::int64_t* leaf_start;
  std::int64_t trees;
  int d;
};

// Depth of every leaf, and for every tree the log of the number of orders its splits can come in, (l−1)!/Π (splits in each subtree).
void describe(const Forest& forest, std::uint16_t* depth, double* log_orders, int threads, Monitor& monitor);

// leaf[tree·n + point]: row of the leaf that holds the point; codes are d rows of n.
void locate(const Forest& forest, const std::uint64_t* codes, std::int64_t n, std::int64_t* leaf, int threads, Monitor& monitor);

// mass[(tree·boxes + box)·S + set]: what the leaves put on dyadic boxes (levels and indices, d to a box). A box gets of a leaf's mass what it has
// of its volume; or, where points are given, what it has of its points, spread evenly over a leaf as far as the points of all boxes allow.
struct PointsIn {
  const std::int64_t* leaves = nullptr;  // points of all sets in each leaf
  const std::int64_t* boxes = nullptr;   // and in each box
};
void box_masses(const Forest& forest, const double* leaf_mass, int sets, const std::uint8_t* levels, const std::uint64_t* indices,
                std::int64_t boxes, PointsIn points, double* mass, int threads, Monitor& monitor);

}  // namespace cobpm
