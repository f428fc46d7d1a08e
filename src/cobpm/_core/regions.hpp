// The dyadic boxes of the unit cube and how many points of each set they hold.
//
// A box is given by how often each column was halved (its level vector) and which half was taken each time. Boxes reached by
// different orders of the same halvings are one region. All regions down to `base depth` are held densely: the regions of one level
// vector v are an array of 2^|v| count rows, so children are index arithmetic. Below that, regions are grown one by one where asked
// for, found again through a hash of their coordinates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "monitor.hpp"

namespace cobpm {

constexpr int kBits = 52;  // resolution of the grid: the halvings a column can take

struct Points {
  const std::uint64_t* codes;  // d rows of n coordinates, each kBits long
  const std::uint16_t* sets;   // which set a point belongs to
  std::size_t n;
  int d;
  int sets_count;
  const std::uint32_t* weights = nullptr;    // how often a point counts; once, if there are none
  const std::uint8_t* resolution = nullptr;  // halvings that each column can take; kBits, if not given

  std::uint32_t weight(std::size_t point) const { return weights ? weights[point] : 1; }
  int finest(int column) const { return resolution ? resolution[column] : kBits; }
  std::uint64_t code(int column, std::size_t point) const { return codes[column * n + point]; }
  // Whether a point lies in the upper half of the interval that `level` halvings of a column lead to. Past the end of the grid all points
  // count as lower, here as in trees.cpp.
  bool above_middle(int column, std::size_t point, int level) const {
    return level < kBits && ((code(column, point) >> (kBits - 1 - level)) & 1);
  }
};

// What a split leads to: a region with two points or more (counted by weight) (id ≥ 0), or something so simple that it is never stored.
struct Ref {
  enum : std::int64_t { kEmpty = -1, kSingle = -2, kNone = -3 };  // kNone: the column cannot be halved any further
  std::int64_t id;
  std::int32_t set = -1;    // of a single point
  std::int64_t point = -1;  // which point, where known (the dense arrays only count)
};

class Regions {
 public:
  Regions(Points points, int base_depth, int threads, Monitor& monitor);

  const Points& points() const { return points_; }
  int base_depth() const { return base_depth_; }
  std::int64_t size() const { return cells_ + static_cast<std::int64_t>(grown_.size()); }
  std::size_t bytes() const;

  Ref root() const { return classify(0); }
  int depth(std::int64_t id) const;
  int level(std::int64_t id, int column) const;
  int level(int depth, std::int64_t vector, int column) const { return levels_[depth][vector * points_.d + column]; }  // in the dense part
  const std::uint32_t* counts(std::int64_t id) const { return &counts_[id * points_.sets_count]; }
  std::uint32_t total(std::int64_t id) const { return totals_[id]; }
  // Dense regions above the base depth can be split as they are; others once they were grown.
  bool expanded(std::int64_t id) const { return dense_inner(id) || kids_of(id) >= 0; }
  // Halves of a region. Those in the dense part come by their id however few points they hold; settle() tells.
  void children(std::int64_t id, int depth, int column, Ref& lower, Ref& upper) const;
  Ref settle(const Ref& ref) const { return ref.id >= 0 && totals_[ref.id] < 2 ? classify(ref.id) : ref; }

  // Makes the children of these regions known. Ids already expanded are passed over.
  void expand(const std::vector<std::int64_t>& ids, int threads, Monitor& monitor);
  // Makes the regions of whole partitions known, each in preorder as Partitions has them, from splits[starts[i]] on.
  void plant(const std::int16_t* splits, const std::vector<std::int64_t>& starts, int threads, Monitor& monitor);
  // Regions with two points or more whose children are not known.
  std::vector<std::int64_t> frontier() const;
  // Counts again for points that stay where they are but belong to other sets. Needs the lists of points if regions were grown.
  void relabel(const std::uint16_t* sets, int threads, Monitor& monitor);
  // Lists of points are kept for expanding further. Once that is done they are only in the way.
  void forget_points() { lists_.clear(); }
  // Grown regions by their depth.
  std::vector<std::vector<std::int64_t>> grown_by_depth() const;

  // In the dense part: the level vector of a region, by rank, and the region of a level vector that a point lies in.
  std::int64_t vector_of(std::int64_t id, int depth) const { return (id - depth_start_[depth]) >> depth; }
  std::int64_t cell_of(std::size_t point, int depth, std::int64_t vector) const;
  // Points of a grown region; needs the lists of points.
  std::vector<std::uint32_t> points_in(std::int64_t id) const;

  // Chunks of regions, each region after its halves: work(depth, size, id_at), where id_at(i) is the chunk's i-th region.
  template <class Work>
  void upward(int threads, Monitor& monitor, Work work) const;

  // Dense layout, for loops over whole depths: ids of depth m are [depth_start(m), depth_start(m+1)), 2^m to a level vector.
  std::int64_t depth_start(int m) const { return depth_start_[m]; }
  struct Halving {
    std::int64_t child_start;  // id of the first cell of the child's level vector
    int low_bits;              // index bits below the halved column's
    std::int64_t lower(std::int64_t cell) const {
      return child_start + (((cell >> low_bits) << (low_bits + 1)) | (cell & ((std::int64_t{1} << low_bits) - 1)));
    }
    std::int64_t upper_offset() const { return std::int64_t{1} << low_bits; }
  };
  Halving halving(int depth, std::int64_t vector, int column) const;

 private:
  struct Key {
    std::uint64_t a, b;
    bool operator==(const Key& other) const { return a == other.a && b == other.b; }
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return key.a; }
  };
  struct Grown {
    Key key;
    std::int64_t parent;  // the region it was first reached from, by halving `column` and taking the upper half or not
    std::int16_t column;
    bool upper;
    std::uint16_t depth;
    std::int64_t kids = -1;
  };
  using List = std::shared_ptr<const std::vector<std::uint32_t>>;

  void lay_out();
  void count(int threads, Monitor& monitor);
  template <class Code>
  void count_base(int threads, Monitor& monitor);
  void add(std::uint32_t* row, std::size_t point) const { row[points_.sets[point]] += points_.weight(point); }
  bool dense_inner(std::int64_t id) const { return id < depth_start_[base_depth_]; }
  std::int64_t kids_of(std::int64_t id) const;
  Ref classify(std::int64_t id) const;
  Ref unpack(std::int32_t kid) const;
  const std::uint8_t* levels_of(std::int64_t id) const;
  void find_points(const std::vector<std::int64_t>& ids, int threads, Monitor& monitor);
  std::int32_t link(std::int64_t id, Key parent_key, std::size_t witness, int column, bool upper,
                    const std::uint32_t* counts, std::int64_t single);

  Points points_;
  int base_depth_;
  std::int64_t cells_ = 0;
  std::vector<std::int64_t> depth_start_;            // per depth 0 … base, and one past
  std::vector<std::int64_t> vectors_at_;             // level vectors per depth
  std::vector<std::vector<std::uint8_t>> levels_;    // [depth][vector·d + column]
  std::vector<std::vector<std::uint8_t>> low_bits_;  // [depth][vector·d + column]
  std::vector<std::vector<std::uint32_t>> child_;    // [depth][vector·d + column]: rank of the child's level vector
  std::vector<std::uint32_t> counts_;                // [id·S + set], dense then grown
  std::vector<std::uint32_t> totals_;                // [id]

  std::vector<Grown> grown_;
  std::vector<std::uint8_t> grown_levels_;  // [grown·d + column]
  std::unordered_map<Key, std::int64_t, KeyHash> by_key_;
  std::unordered_map<std::int64_t, std::int64_t> base_kids_;  // expanded dense regions at the base depth
  std::vector<std::int32_t> kids_;                            // [kids + 2·column + upper], packed references
  std::unordered_map<std::int64_t, List> lists_;              // points of the expanded regions
};

template <class Work>
void Regions::upward(int threads, Monitor& monitor, Work work) const {
  const std::int64_t chunk = 2048;
  const auto in_chunks = [&](int depth, std::int64_t size, auto id_at) {
    monitor.parallel((size + chunk - 1) / chunk, threads, [&](std::size_t task) {
      const std::int64_t first = task * chunk, last = std::min(size, first + chunk);
      work(depth, static_cast<std::size_t>(last - first), [&](std::size_t i) { return id_at(first + static_cast<std::int64_t>(i)); });
      monitor.check(static_cast<double>(last - first));
    });
  };
  const auto grown = grown_by_depth();
  for (int depth = static_cast<int>(grown.size()) - 1; depth > base_depth_; --depth) {
    in_chunks(depth, static_cast<std::int64_t>(grown[depth].size()), [&](std::int64_t i) { return grown[depth][i]; });
  }
  for (int depth = base_depth_; depth >= 0; --depth) {
    const std::int64_t start = depth_start_[depth];
    in_chunks(depth, depth_start_[depth + 1] - start, [&](std::int64_t i) { return start + i; });
  }
}

}  // namespace cobpm
