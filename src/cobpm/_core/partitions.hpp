// Partitions as flat preorder lists, and what all ways of drawing them share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "monitor.hpp"
#include "random.hpp"
#include "regions.hpp"

namespace cobpm {

// Partitions drawn, one after another, as preorder lists of their nodes: the column an inner node is split along (its lower half comes
// first), −1 for a leaf. `counts` holds a row per leaf in the same order.
struct Partitions {
  std::vector<std::int16_t> splits;
  std::vector<std::uint32_t> counts;
  std::vector<std::int64_t> nodes;   // nodes of each partition
  std::vector<std::int64_t> leaves;  // leaves of each partition
  static Partitions joined(std::vector<Partitions>& parts, int threads, Monitor& monitor);  // frees the parts as it goes
};

// Draws that go down the regions together, so that what is read of a region serves all draws that reach it. Each has a random stream of its
// own and uses it in the order of its own nodes: it would come out the same by itself.
class DrawnTogether {
 public:
  // As many draws together as leave every thread two tasks.
  static std::int64_t block(std::int64_t draws, int threads) {
    return std::clamp<std::int64_t>(draws / (2 * std::max(threads, 1)), 16, 2048);
  }

 protected:
  DrawnTogether(const Regions& regions, std::uint64_t seed, std::int64_t first_stream, std::int64_t draws);

  void leaf(const Ref& ref, std::int32_t draw);
  Partitions joined(Monitor& monitor);

  const Regions& regions_;
  std::vector<Partitions> drawn_;
  std::vector<Random> random_;
  std::vector<std::int64_t> open_leaves_;  // leaves with two points or more whose children are unknown, as often as drawn
};

}  // namespace cobpm
