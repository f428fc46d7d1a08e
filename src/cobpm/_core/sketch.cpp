#include "sketch.hpp"

#include <algorithm>
#include <stdexcept>

namespace cobpm {
namespace {

constexpr std::size_t kBlock = 1024;  // rows whose keys stay in the first-level cache
constexpr std::size_t kAhead = 16;    // rows whose slots are on their way from memory

void fetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address, 1);
#endif
}

std::size_t home(std::uint64_t key, std::size_t mask) {
  key *= 0x9e3779b97f4a7c15ULL;
  return (key ^ (key >> 32)) & mask;
}

// How many of 2^finest − 1 cuts are at most each value, rounded down to a multiple of 2^drop. All values of a block take one step of the search before any takes the next: steps of
// different values do not wait for each other.
void search(const double* cuts, int finest, int drop, const double* values, std::ptrdiff_t stride, std::size_t size, std::uint32_t* below) {
  std::fill(below, below + size, 0u);
  for (int bit = finest - 1; bit >= drop; --bit) {
    const std::uint32_t step = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < size; ++i) {
      below[i] += step & -static_cast<std::uint32_t>(cuts[below[i] + step - 1] <= values[static_cast<std::ptrdiff_t>(i) * stride]);
    }
  }
}

// The same for even cuts: a guess that is off by one at most, made right by looking.
std::uint32_t look_up(const double* cuts, std::uint32_t cells, double scale, double value) {
  const double guess = (value - cuts[0]) * scale + 1.0;
  std::uint32_t below = guess <= 0.0 ? 0 : guess >= cells - 1 ? cells - 1 : static_cast<std::uint32_t>(guess);
  while (below > 0 && cuts[below - 1] > value) --below;
  while (below + 1 < cells && cuts[below] <= value) ++below;
  return below;
}

}  // namespace

CellCounter::CellCounter(std::vector<GridColumn> columns, int finest, int bits, std::size_t max_cells)
    : columns_(std::move(columns)), finest_(finest), bits_(bits), max_cells_(max_cells) {
  const int d = static_cast<int>(columns_.size());
  if (d == 0 || finest < 1 || finest > 24) throw std::invalid_argument("a grid needs columns of 1 to 24 bits");
  if (bits < 0 || bits > 63 || bits > d * finest) throw std::invalid_argument("so many bits do not fit");
  if (max_cells == 0) throw std::invalid_argument("at least one cell is needed");
  for (const GridColumn& column : columns_) {
    if (column.cuts.size() + 1 != std::size_t{1} << finest) throw std::invalid_argument("a column has a wrong number of cuts");
    if (!std::is_sorted(column.cuts.begin(), column.cuts.end())) throw std::invalid_argument("cuts must ascend");
  }
  lay_out();
  slots_.assign(1024, {0, 0});
}

void CellCounter::lay_out() {
  const int d = static_cast<int>(columns_.size());
  column_bits_.clear();
  for (int column = 0; column < d; ++column) column_bits_.push_back(bits_ / d + (column < bits_ % d));
}

void CellCounter::put(std::uint64_t key, std::uint64_t count) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = home(key, mask);
  while (slots_[at].count != 0 && slots_[at].key != key) at = (at + 1) & mask;
  if (slots_[at].count == 0) {
    slots_[at].key = key;
    ++used_;
  }
  slots_[at].count += count;
  if (used_ > max_cells_) {
    coarsen(bits_ - 1);
  } else if (2 * used_ > slots_.size()) {
    resize(2 * slots_.size());
  }
}

void CellCounter::resize(std::size_t size) {
  std::vector<Slot> old(size, Slot{0, 0});
  old.swap(slots_);
  used_ = 0;
  const std::size_t mask = size - 1;
  for (const Slot& slot : old) {
    if (slot.count == 0) continue;
    std::size_t at = home(slot.key, mask);
    while (slots_[at].count != 0) at = (at + 1) & mask;
    slots_[at] = slot;
    ++used_;
  }
}

// The last bit of the last column that has most of them goes.
std::uint64_t CellCounter::coarser(std::uint64_t key, int columns, int bits) {
  const int last = (bits - 1) % columns;  // the column that got the last bit
  int after = 0;                          // bits of the columns behind it
  for (int column = last + 1; column < columns; ++column) after += bits / columns + (column < bits % columns);
  const std::uint64_t low = key & ((std::uint64_t{1} << after) - 1);
  return (key >> (after + 1) << after) | low;
}

void CellCounter::coarsen(int bits) {
  if (bits < 0) throw std::invalid_argument("a sketch cannot have fewer than no bits");
  if (bits >= bits_) return;
  std::vector<Slot> old(slots_.size(), Slot{0, 0});
  old.swap(slots_);
  used_ = 0;
  const int from = bits_, d = static_cast<int>(columns_.size());
  bits_ = bits;
  lay_out();
  for (const Slot& slot : old) {
    if (slot.count == 0) continue;
    std::uint64_t key = slot.key;
    for (int b = from; b > bits; --b) key = coarser(key, d, b);
    // Joined cells are never more than there were, so this neither grows nor coarsens further.
    put(key, slot.count);
  }
}

void CellCounter::add_rows(const std::vector<const double*>& values, std::ptrdiff_t stride, std::size_t rows) {
  const int d = static_cast<int>(columns_.size());
  if (values.size() != columns_.size()) throw std::invalid_argument("the number of columns is wrong");
  const std::uint32_t cells = std::uint32_t{1} << finest_;
  std::uint64_t keys[kBlock];
  std::uint32_t below[kBlock];
  for (std::size_t start = 0; start < rows; start += kBlock) {
    const std::size_t block = std::min(kBlock, rows - start);
    const int bits = bits_;
    std::fill(keys, keys + block, std::uint64_t{0});
    for (int column = 0; column < d; ++column) {
      const GridColumn& grid = columns_[column];
      const double* cuts = grid.cuts.data();
      const double* value = values[column] + static_cast<std::ptrdiff_t>(start) * stride;
      const int own = column_bits_[column], drop = finest_ - own;
      if (grid.even && cells > 2) {
        const double scale = (cells - 2) / (cuts[cells - 2] - cuts[0]);
        for (std::size_t i = 0; i < block; ++i) {
          keys[i] = (keys[i] << own) | (look_up(cuts, cells, scale, value[static_cast<std::ptrdiff_t>(i) * stride]) >> drop);
        }
      } else {
        search(cuts, finest_, drop, value, stride, block, below);
        for (std::size_t i = 0; i < block; ++i) keys[i] = (keys[i] << own) | (below[i] >> drop);
      }
    }
    for (std::size_t i = 0; i < block; ++i) {
      if (i + kAhead < block) fetch(&slots_[home(keys[i + kAhead], slots_.size() - 1)]);
      std::uint64_t key = keys[i];
      for (int b = bits; b > bits_; --b) key = coarser(key, d, b);  // bits were given up within this block
      put(key, 1);
    }
  }
}

void CellCounter::add_cells(const std::uint64_t* keys, const std::uint64_t* counts, std::size_t size, int bits) {
  if (bits < bits_) coarsen(bits);
  const int d = static_cast<int>(columns_.size());
  for (std::size_t i = 0; i < size; ++i) {
    std::uint64_t key = keys[i];
    for (int b = bits; b > bits_; --b) key = coarser(key, d, b);
    if (counts[i] > 0) put(key, counts[i]);
  }
}

void CellCounter::cells(std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& counts) const {
  std::vector<Slot> found;
  found.reserve(used_);
  for (const Slot& slot : slots_) {
    if (slot.count != 0) found.push_back(slot);
  }
  std::sort(found.begin(), found.end(), [](const Slot& a, const Slot& b) { return a.key < b.key; });
  for (const Slot& slot : found) {
    keys.push_back(slot.key);
    counts.push_back(slot.count);
  }
}

}  // namespace cobpm
