#include "regions.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace cobpm {
namespace {

constexpr std::int32_t kPackedSingle = -4;  // −4 − point; above it the constants of Ref

std::uint64_t mix(std::uint64_t z, std::uint64_t salt) {
  z = (z + salt) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 29)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 32);
}

// One coordinate's share of a region's key. Shares are added up, so halving a column changes one of them.
std::uint64_t share(int column, int level, std::uint64_t index, std::uint64_t salt) {
  return level == 0 ? 0 : mix(mix((static_cast<std::uint64_t>(column) << 8) | level, salt) ^ index, salt);
}
constexpr std::uint64_t kSaltA = 0x9e3779b97f4a7c15ULL, kSaltB = 0xd1b54a32d192ed03ULL;

// Number of multisets of size k from n kinds, C(n+k−1, k): how many level vectors of n columns have depth k.
std::uint64_t multisets(std::uint64_t n, std::uint64_t k) {
  if (n == 0) return k == 0;
  std::uint64_t result = 1;
  for (std::uint64_t i = 1; i <= k; ++i) result = result * (n + i - 1) / i;
  return result;
}

}  // namespace

Regions::Regions(Points points, int base_depth, int threads, Monitor& monitor) : points_(points), base_depth_(base_depth) {
  if (base_depth < 0 || base_depth > 30) throw std::invalid_argument("base depth must lie between 0 and 30");
  if (points.d > INT16_MAX || points.n > INT32_MAX - 8) throw std::invalid_argument("more columns or points than can be numbered");
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < points.n; ++i) all += points.weight(i);
  if (all > UINT32_MAX) throw std::invalid_argument("more points than can be counted");
  if (points.d == 0) base_depth_ = 0;  // no column to halve: the whole space is one region
  lay_out();
  count(threads, monitor);
}

// Level vectors of depth m are multisets of m columns; a multiset a_1 ≤ … ≤ a_m has rank Σ_i C(a_i+i−1, i) (the combinatorial number
// system), so the rank of a child, one more column in the multiset, is two partial sums and one new term.
void Regions::lay_out() {
  const int d = points_.d;
  depth_start_.assign(1, 0);
  for (int m = 0; m <= base_depth_; ++m) {
    const std::int64_t vectors = static_cast<std::int64_t>(multisets(d, m));
    vectors_at_.push_back(vectors);
    depth_start_.push_back(depth_start_.back() + (vectors << m));
    auto& levels = levels_.emplace_back(vectors * d);
    auto& low = low_bits_.emplace_back(vectors * d);
    auto& child = child_.emplace_back(vectors * d);
    std::vector<int> a(m, 0);
    for (std::int64_t rank = 0; rank < vectors; ++rank) {
      std::uint8_t* v = levels.data() + rank * d;
      for (int column : a) ++v[column];
      for (int column = d - 1, bits = 0; column >= 0; --column) {
        low[rank * d + column] = static_cast<std::uint8_t>(bits);
        bits += v[column];
      }
      if (m < base_depth_) {
        std::uint64_t after = 0, before = 0;
        for (int i = 0; i < m; ++i) after += multisets(a[i], i + 2);
        for (int column = 0, i = 0; column < d; ++column) {
          for (; i < m && a[i] <= column; ++i) {
            before += multisets(a[i], i + 1);
            after -= multisets(a[i], i + 2);
          }
          child[rank * d + column] = static_cast<std::uint32_t>(before + multisets(column, i + 1) + after);
        }
      }
      // Next multiset in the order of their ranks: raise the first entry that can be raised, set those before it to zero.
      for (int i = 0; i < m; ++i) {
        if (a[i] < (i + 1 < m ? a[i + 1] : d - 1)) {
          ++a[i];
          std::fill(a.begin(), a.begin() + i, 0);
          break;
        }
      }
    }
  }
  cells_ = depth_start_[base_depth_ + 1];
}

// A pass over the points for each level vector at the base depth. Keys of `base` bits in lanes as narrow as they allow.
template <class Code>
void Regions::count_base(int threads, Monitor& monitor) {
  const int d = points_.d, s = points_.sets_count, base = base_depth_;
  const std::size_t n = points_.n;
  std::vector<Code> top(d * n);
  monitor.parallel(d, threads, [&](std::size_t column) {
    const std::uint64_t* code = points_.codes + column * n;
    Code* out = top.data() + column * n;
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Code>(code[i] >> (kBits - base));
  });
  monitor.parallel(vectors_at_[base], threads, [&](std::size_t rank) {
    constexpr std::size_t kBlock = 2048;  // keys of a block stay in the first-level cache
    Code key[kBlock];
    const std::uint8_t* v = levels_[base].data() + rank * d;
    std::uint32_t* row = counts_.data() + (depth_start_[base] + (static_cast<std::int64_t>(rank) << base)) * s;
    for (std::size_t start = 0; start < n; start += kBlock) {
      if (start % (64 * kBlock) == 0) monitor.check();
      const std::size_t block = std::min(kBlock, n - start);
      std::fill(key, key + block, Code{0});
      for (int column = 0; column < d; ++column) {
        if (v[column] == 0) continue;
        const Code* code = top.data() + column * n + start;
        const int level = v[column], drop = base - level;
        for (std::size_t i = 0; i < block; ++i) key[i] = static_cast<Code>((key[i] << level) | (code[i] >> drop));
      }
      const std::uint16_t* set = points_.sets + start;
      if (points_.weights) {
        const std::uint32_t* weight = points_.weights + start;
        for (std::size_t i = 0; i < block; ++i) row[static_cast<std::size_t>(key[i]) * s + set[i]] += weight[i];
      } else {
        for (std::size_t i = 0; i < block; ++i) ++row[static_cast<std::size_t>(key[i]) * s + set[i]];
      }
    }
  });
}

// Counts at the base depth from the points; above it, sums of pairs.
void Regions::count(int threads, Monitor& monitor) {
  const int d = points_.d, s = points_.sets_count, base = base_depth_;
  counts_.resize(std::max(counts_.size(), static_cast<std::size_t>(cells_ * s)));
  std::fill_n(counts_.begin(), cells_ * s, 0);
  if (base == 0) {
    for (std::size_t i = 0; i < points_.n; ++i) add(counts_.data(), i);
  } else if (base <= 16) {
    count_base<std::uint16_t>(threads, monitor);
  } else {
    count_base<std::uint32_t>(threads, monitor);
  }
  for (int m = base - 1; m >= 0; --m) {
    monitor.parallel(vectors_at_[m], threads, [&](std::size_t rank) {
      // The last column owns the lowest index bits: its halves are neighbours.
      const Halving last = halving(m, rank, d - 1);
      for (std::int64_t cell = 0; cell < std::int64_t{1} << m; ++cell) {
        std::uint32_t* out = counts_.data() + (depth_start_[m] + (static_cast<std::int64_t>(rank) << m) + cell) * s;
        const std::uint32_t* in = counts_.data() + last.lower(cell) * s;
        for (int set = 0; set < s; ++set) out[set] = in[set] + in[s + set];
      }
    });
  }
  if (!totals_.empty()) return;  // counted before: totals do not depend on who belongs to which set
  totals_.resize(cells_);
  const std::int64_t chunk = 1 << 14;
  monitor.parallel((cells_ + chunk - 1) / chunk, threads, [&](std::size_t task) {
    const std::int64_t first = task * chunk, last = std::min(cells_, first + chunk);
    for (std::int64_t id = first; id < last; ++id) totals_[id] = std::accumulate(counts(id), counts(id) + s, 0u);
  });
}

Regions::Halving Regions::halving(int depth, std::int64_t vector, int column) const {
  const std::size_t at = vector * points_.d + column;
  return {depth_start_[depth + 1] + (static_cast<std::int64_t>(child_[depth][at]) << (depth + 1)), low_bits_[depth][at]};
}

int Regions::depth(std::int64_t id) const {
  if (id >= cells_) return grown_[id - cells_].depth;
  int m = 0;
  while (id >= depth_start_[m + 1]) ++m;
  return m;
}

const std::uint8_t* Regions::levels_of(std::int64_t id) const {
  if (id >= cells_) return grown_levels_.data() + (id - cells_) * points_.d;
  const int m = depth(id);
  return levels_[m].data() + ((id - depth_start_[m]) >> m) * points_.d;
}

int Regions::level(std::int64_t id, int column) const { return levels_of(id)[column]; }

std::int64_t Regions::kids_of(std::int64_t id) const {
  if (id >= cells_) return grown_[id - cells_].kids;
  if (base_kids_.empty()) return -1;
  const auto found = base_kids_.find(id);
  return found == base_kids_.end() ? -1 : found->second;
}

Ref Regions::classify(std::int64_t id) const {
  if (totals_[id] > 1) return {id};
  if (totals_[id] == 0) return {Ref::kEmpty};
  const std::uint32_t* row = counts(id);
  std::int32_t set = 0;
  while (row[set] == 0) ++set;
  return {Ref::kSingle, set, points_.n == 1 ? 0 : -1};
}

Ref Regions::unpack(std::int32_t kid) const {
  if (kid > kPackedSingle) return {kid};
  const std::int64_t point = kPackedSingle - static_cast<std::int64_t>(kid);
  return {Ref::kSingle, points_.sets[point], point};
}

void Regions::children(std::int64_t id, int depth, int column, Ref& lower, Ref& upper) const {
  if (dense_inner(id)) {
    const std::int64_t offset = id - depth_start_[depth], vector = offset >> depth;
    if (points_.resolution && levels_[depth][vector * points_.d + column] >= points_.resolution[column]) {
      lower = upper = {Ref::kNone};
      return;
    }
    const Halving half = halving(depth, vector, column);
    const std::int64_t first = half.lower(offset & ((std::int64_t{1} << depth) - 1));
    lower = {first};
    upper = {first + half.upper_offset()};
  } else {
    const std::int64_t kids = kids_of(id);
    if (kids < 0) throw std::logic_error("the halves of a region were asked for before it was expanded");
    const std::int32_t* kid = kids_.data() + kids + 2 * column;
    lower = unpack(kid[0]);
    upper = unpack(kid[1]);
  }
}

std::int64_t Regions::cell_of(std::size_t point, int depth, std::int64_t vector) const {
  const std::uint8_t* v = levels_[depth].data() + vector * points_.d;
  std::int64_t cell = 0;
  for (int column = 0; column < points_.d; ++column) {
    if (v[column]) cell = (cell << v[column]) | static_cast<std::int64_t>(points_.code(column, point) >> (kBits - v[column]));
  }
  return depth_start_[depth] + (vector << depth) + cell;
}

std::vector<std::uint32_t> Regions::points_in(std::int64_t id) const {
  const auto own = lists_.find(id);
  if (own != lists_.end()) return *own->second;
  const Grown& region = grown_.at(id - cells_);
  const auto from = lists_.find(region.parent);
  if (from == lists_.end()) throw std::logic_error("the lists of points were dropped");
  std::vector<std::uint32_t> list;
  const int shift = kBits - level(id, region.column);
  for (const std::uint32_t point : *from->second) {
    if (((points_.code(region.column, point) >> shift) & 1) == region.upper) list.push_back(point);
  }
  return list;
}

void Regions::relabel(const std::uint16_t* sets, int threads, Monitor& monitor) {
  const int s = points_.sets_count;
  points_.sets = sets;
  count(threads, monitor);
  monitor.parallel(grown_.size(), threads, [&](std::size_t i) {
    const std::int64_t id = cells_ + static_cast<std::int64_t>(i);
    std::uint32_t* row = counts_.data() + id * s;
    std::fill_n(row, s, 0);
    for (const std::uint32_t point : points_in(id)) add(row, point);
  });
}

// Lists the points of regions about to be expanded: grown ones from their parent's list, dense ones in a pass per level vector.
void Regions::find_points(const std::vector<std::int64_t>& ids, int threads, Monitor& monitor) {
  std::vector<std::pair<std::int64_t, List>> made(ids.size());
  std::unordered_map<std::int64_t, std::vector<std::size_t>> by_vector;
  std::vector<std::size_t> from_parent;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= cells_) {
      from_parent.push_back(i);
    } else {
      by_vector[(ids[i] - depth_start_[base_depth_]) >> base_depth_].push_back(i);
    }
  }
  monitor.parallel(from_parent.size(), threads, [&](std::size_t task) {
    const std::size_t i = from_parent[task];
    const Grown& region = grown_[ids[i] - cells_];
    const List& parent = lists_.at(region.parent);
    // An empty half was cut off: share the list. (Totals of weighted points say nothing of how many there are.)
    if (!points_.weights && parent->size() == total(ids[i])) {
      made[i] = {ids[i], parent};
      return;
    }
    auto list = std::make_shared<std::vector<std::uint32_t>>();
    list->reserve(std::min<std::size_t>(total(ids[i]), parent->size()));
    const int shift = kBits - level(ids[i], region.column);
    for (const std::uint32_t point : *parent) {
      if (((points_.code(region.column, point) >> shift) & 1) == region.upper) list->push_back(point);
    }
    made[i] = {ids[i], std::move(list)};
  });
  std::vector<std::pair<std::int64_t, std::vector<std::size_t>>> groups(by_vector.begin(), by_vector.end());
  monitor.parallel(groups.size(), threads, [&](std::size_t task) {
    const auto& [vector, wanted] = groups[task];
    std::unordered_map<std::int64_t, std::size_t> slot;
    std::vector<std::shared_ptr<std::vector<std::uint32_t>>> lists;
    for (const std::size_t i : wanted) {
      slot[ids[i]] = lists.size();
      lists.push_back(std::make_shared<std::vector<std::uint32_t>>());
      lists.back()->reserve(std::min<std::size_t>(total(ids[i]), points_.n));
    }
    for (std::size_t point = 0; point < points_.n; ++point) {
      if (point % (1 << 16) == 0) monitor.check();
      const auto found = slot.find(cell_of(point, base_depth_, vector));
      if (found != slot.end()) lists[found->second]->push_back(static_cast<std::uint32_t>(point));
    }
    for (std::size_t k = 0; k < wanted.size(); ++k) made[wanted[k]] = {ids[wanted[k]], std::move(lists[k])};
  });
  for (auto& [id, list] : made) lists_[id] = std::move(list);
}

// Reference to one half of a region, made if it is new.
std::int32_t Regions::link(std::int64_t id, Key parent_key, std::size_t witness, int column, bool upper,
                           const std::uint32_t* counts, std::int64_t single) {
  const int s = points_.sets_count, d = points_.d;
  const std::uint32_t total = std::accumulate(counts, counts + s, 0u);
  if (total == 0) return Ref::kEmpty;
  if (total == 1) return static_cast<std::int32_t>(kPackedSingle - single);
  const int level = levels_of(id)[column];
  const std::uint64_t code = points_.code(column, witness);
  const std::uint64_t index = level ? code >> (kBits - level) : 0, half = (index << 1) | upper;
  const Key key{parent_key.a - share(column, level, index, kSaltA) + share(column, level + 1, half, kSaltA),
                parent_key.b - share(column, level, index, kSaltB) + share(column, level + 1, half, kSaltB)};
  const auto [found, is_new] = by_key_.try_emplace(key, size());
  if (is_new) {
    if (size() >= INT32_MAX) throw std::length_error("more regions than can be numbered");
    const std::size_t at = grown_levels_.size();
    grown_levels_.resize(at + d);
    std::copy_n(levels_of(id), d, grown_levels_.begin() + at);
    ++grown_levels_[at + column];
    grown_.push_back({key, id, static_cast<std::int16_t>(column), upper, static_cast<std::uint16_t>(depth(id) + 1)});
    counts_.insert(counts_.end(), counts, counts + s);
    totals_.push_back(total);
  }
  return static_cast<std::int32_t>(found->second);
}

void Regions::expand(const std::vector<std::int64_t>& wanted, int threads, Monitor& monitor) {
  const int s = points_.sets_count, d = points_.d;
  std::vector<std::int64_t> ids;
  for (const std::int64_t id : wanted) {
    if (total(id) > 1 && !expanded(id)) ids.push_back(id);
  }
  const std::size_t batch = 1024;
  struct Half {
    std::vector<std::uint32_t> counts;  // [(2·column + upper)·S + set]
    std::vector<std::int64_t> single;   // the point of a half that holds one
  };
  for (std::size_t start = 0; start < ids.size(); start += batch) {
    const std::vector<std::int64_t> some(ids.begin() + start, ids.begin() + std::min(ids.size(), start + batch));
    find_points(some, threads, monitor);
    std::vector<Half> halves(some.size());
    monitor.parallel(some.size(), threads, [&](std::size_t i) {
      const std::vector<std::uint32_t>& list = *lists_.at(some[i]);
      const std::uint8_t* levels = levels_of(some[i]);
      Half& half = halves[i];
      half.counts.assign(2 * d * s, 0);
      half.single.assign(2 * d, -1);
      for (int column = 0; column < d; ++column) {
        if (levels[column] >= points_.finest(column)) continue;
        const int shift = kBits - 1 - levels[column];
        std::uint32_t* count = half.counts.data() + 2 * column * s;
        std::int64_t* single = half.single.data() + 2 * column;
        monitor.check();
        for (const std::uint32_t point : list) {
          const int upper = (points_.code(column, point) >> shift) & 1;
          add(count + upper * s, point);
          single[upper] = point;
        }
      }
    });
    for (std::size_t i = 0; i < some.size(); ++i) {
      const std::int64_t id = some[i];
      const std::size_t witness = lists_.at(id)->front();
      Key key{0, 0};
      if (id >= cells_) {
        key = grown_[id - cells_].key;
      } else {
        for (int column = 0; column < d; ++column) {
          const int level = levels_of(id)[column];
          const std::uint64_t index = level ? points_.code(column, witness) >> (kBits - level) : 0;
          key.a += share(column, level, index, kSaltA);
          key.b += share(column, level, index, kSaltB);
        }
      }
      const std::int64_t at = static_cast<std::int64_t>(kids_.size());
      kids_.resize(at + 2 * d, Ref::kNone);
      for (int column = 0; column < d; ++column) {
        if (levels_of(id)[column] >= points_.finest(column)) continue;
        for (int upper = 0; upper < 2; ++upper) {
          const int half = 2 * column + upper;
          kids_[at + half] = link(id, key, witness, column, upper, halves[i].counts.data() + half * s, halves[i].single[half]);
        }
      }
      if (id >= cells_) {
        grown_[id - cells_].kids = at;
      } else {
        base_kids_[id] = at;
      }
    }
  }
}

// All partitions at once, a depth at a time, so that regions are expanded in batches.
void Regions::plant(const std::int16_t* splits, const std::vector<std::int64_t>& starts, int threads, Monitor& monitor) {
  struct Visit {
    std::int64_t node, id;
  };
  auto end_of = [&](std::int64_t node) {  // one past the subtree that begins here
    for (std::int64_t open = 1; open > 0; ++node) open += splits[node] < 0 ? -1 : 1;
    return node;
  };
  std::vector<Visit> level, next;
  if (root().id >= 0) {
    for (const std::int64_t start : starts) level.push_back({start, root().id});
  }
  for (int at = 0; !level.empty(); ++at) {
    std::vector<std::int64_t> wanted;
    for (const Visit& visit : level) {
      if (splits[visit.node] >= 0) wanted.push_back(visit.id);
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    expand(wanted, threads, monitor);
    next.clear();
    for (const Visit& visit : level) {
      if (splits[visit.node] < 0) continue;
      Ref lower, upper;
      children(visit.id, at, splits[visit.node], lower, upper);
      lower = settle(lower);
      upper = settle(upper);
      if (lower.id >= 0) next.push_back({visit.node + 1, lower.id});
      if (upper.id >= 0) next.push_back({end_of(visit.node + 1), upper.id});
    }
    level.swap(next);
  }
}

std::vector<std::int64_t> Regions::frontier() const {
  std::vector<std::int64_t> ids;
  for (std::int64_t id = depth_start_[base_depth_]; id < size(); ++id) {
    if (totals_[id] > 1 && !expanded(id)) ids.push_back(id);
  }
  return ids;
}

std::vector<std::vector<std::int64_t>> Regions::grown_by_depth() const {
  std::vector<std::vector<std::int64_t>> result;
  for (std::size_t i = 0; i < grown_.size(); ++i) {
    if (result.size() <= grown_[i].depth) result.resize(grown_[i].depth + 1);
    result[grown_[i].depth].push_back(cells_ + static_cast<std::int64_t>(i));
  }
  return result;
}

std::size_t Regions::bytes() const {
  std::size_t lists = 0;
  for (const auto& [id, list] : lists_) lists += list->size() * sizeof(std::uint32_t) + 64;
  return (counts_.capacity() + totals_.capacity() + kids_.capacity()) * 4 + grown_.capacity() * sizeof(Grown) +
         grown_levels_.capacity() + by_key_.size() * 48 + lists;
}

}  // namespace cobpm
