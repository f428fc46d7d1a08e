#include "sketch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace cobpm {
namespace {

constexpr std::size_t kBlock = 1024;             // rows whose keys stay in the first-level cache
constexpr std::size_t kAhead = 16;               // rows whose slots are on their way from memory
constexpr std::size_t kWaiting = 1 << 21;        // rows that wait at most before a table takes them
constexpr std::uint64_t kDense = 1 << 21;        // cells of a table with a place for each

void fetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address, 1);
#endif
}

std::size_t home(std::uint64_t key, std::size_t mask) {
  key *= 0x9e3779b97f4a7c15ULL;
  return (key ^ (key >> 32)) & mask;
}

// How many of 2^bits − 1 cuts are at most each value. Several values take one step of the search together: steps of different values do not wait for each other.
void search(const double* cuts, int bits, const double* values, std::ptrdiff_t stride, std::size_t size, std::uint64_t* keys) {
  constexpr std::size_t kTogether = 8;
  std::uint64_t below[kTogether];
  double value[kTogether];
  for (std::size_t start = 0; start < size; start += kTogether) {
    const std::size_t here = std::min(kTogether, size - start);
    for (std::size_t i = 0; i < kTogether; ++i) {
      below[i] = 0;
      value[i] = values[static_cast<std::ptrdiff_t>(start + std::min(i, here - 1)) * stride];
    }
    for (int bit = bits - 1; bit >= 0; --bit) {
      const std::uint64_t step = std::uint64_t{1} << bit;
      const double* first = cuts + (step - 1);
      for (std::size_t i = 0; i < kTogether; ++i) below[i] += step & -static_cast<std::uint64_t>(first[below[i]] <= value[i]);
    }
    for (std::size_t i = 0; i < here; ++i) keys[start + i] = (keys[start + i] << bits) | below[i];
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

std::uint64_t key_of(std::uint64_t key) { return key; }
template <class Slot>
std::uint64_t key_of(const Slot& slot) {
  return slot.key;
}

// Sorts by keys of so many bits, a few of them at a time.
template <class Item>
void sort_by_key(std::vector<Item>& items, int bits) {
  constexpr int kDigit = 11;
  constexpr std::size_t kFew = 2048;
  if (items.size() < kFew) {
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return key_of(a) < key_of(b); });
    return;
  }
  std::vector<Item> other(items.size());
  for (int shift = 0; shift < bits; shift += kDigit) {
    std::array<std::size_t, std::size_t{1} << kDigit> start{};
    for (const Item& item : items) ++start[(key_of(item) >> shift) & (start.size() - 1)];
    std::size_t before = 0;
    for (std::size_t& here : start) before += std::exchange(here, before);
    for (const Item& item : items) other[start[(key_of(item) >> shift) & (start.size() - 1)]++] = item;
    items.swap(other);
  }
}

std::size_t distinct(const std::vector<std::uint64_t>& sorted) {
  std::size_t found = sorted.empty() ? 0 : 1;
  for (std::size_t i = 1; i < sorted.size(); ++i) found += sorted[i] != sorted[i - 1];
  return found;
}

// Takes bits from keys: how many bits lie behind the one that each step gives up.
class Coarsening {
 public:
  Coarsening(int columns, int from, int to) {
    for (int bits = from; bits > to; --bits) {
      int after = 0;
      for (int column = (bits - 1) % columns + 1; column < columns; ++column) after += bits / columns + (column < bits % columns);
      after_.push_back(after);
    }
  }
  std::uint64_t operator()(std::uint64_t key) const {
    for (const int after : after_) {
      const std::uint64_t low = key & ((std::uint64_t{1} << after) - 1);
      key = (key >> (after + 1) << after) | low;
    }
    return key;
  }

 private:
  std::vector<int> after_;
};

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
  set_columns();
}

void CellCounter::set_columns() {
  const int d = static_cast<int>(columns_.size());
  column_bits_.clear();
  cuts_.assign(columns_.size(), {});
  for (int column = 0; column < d; ++column) {
    const int own = bits_ / d + (column < bits_ % d);
    column_bits_.push_back(own);
    for (std::size_t k = 1; k < std::size_t{1} << own; ++k) cuts_[column].push_back(columns_[column].cuts[(k << (finest_ - own)) - 1]);
  }
}

void CellCounter::put(std::uint64_t key, std::uint64_t count) {
  if (held_ == Held::dense) {
    used_ += dense_[key] == 0;
    dense_[key] += count;
  } else {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = home(key, mask);
    while (slots_[at].count != 0 && slots_[at].key != key) at = (at + 1) & mask;
    if (slots_[at].count == 0) {
      slots_[at].key = key;
      ++used_;
    }
    slots_[at].count += count;
    if (used_ <= max_cells_ && 2 * used_ > slots_.size()) resize(2 * slots_.size());
  }
  if (used_ > max_cells_) coarsen(bits_ - 1);
}

// Asks for the place of a key in the table before it is needed.
void CellCounter::fetch_place(std::uint64_t key) const {
  if (held_ == Held::dense) {
    fetch(&dense_[key]);
  } else {
    fetch(&slots_[home(key, slots_.size() - 1)]);
  }
}

// Cells of so many bits, of which there may be fewer by now, or before the last is in.
void CellCounter::put_all(const Slot* slots, std::size_t size, int from) {
  std::uint64_t keys[kBlock];
  for (std::size_t start = 0; start < size; start += kBlock) {
    const std::size_t block = std::min(kBlock, size - start);
    const int bits = bits_, d = static_cast<int>(columns_.size());
    const Coarsening coarse(d, from, bits);
    for (std::size_t i = 0; i < block; ++i) keys[i] = coarse(slots[start + i].key);
    for (std::size_t i = 0; i < block; ++i) {
      if (i + kAhead < block && bits == bits_) fetch_place(keys[i + kAhead]);
      std::uint64_t key = keys[i];
      for (int b = bits; b > bits_; --b) key = coarser(key, d, b);  // bits were given up within this block
      if (slots[start + i].count != 0) put(key, slots[start + i].count);
    }
  }
}

void CellCounter::resize(std::size_t size) {
  std::vector<Slot> old(size, Slot{0, 0});
  old.swap(slots_);
  used_ = 0;
  put_all(old.data(), old.size(), bits_);
}

// The last bit of the last column that has most of them goes.
std::uint64_t CellCounter::coarser(std::uint64_t key, int columns, int bits) { return Coarsening(columns, bits, bits - 1)(key); }

bool CellCounter::fits_densely(int bits) const {
  const std::uint64_t cells = std::uint64_t{1} << bits;
  return cells <= kDense && cells / 4 <= max_cells_;
}

// What was counted; nothing is left here. What waits must be in order.
std::vector<CellCounter::Slot> CellCounter::taken() {
  std::vector<Slot> found;
  if (held_ == Held::hashed) {
    found.swap(slots_);  // with the free ones
  } else if (held_ == Held::dense) {
    for (std::size_t key = 0; key < dense_.size(); ++key) {
      if (dense_[key] != 0) found.push_back({key, dense_[key]});
    }
  } else {
    for (const std::uint64_t key : waiting_) {
      if (found.empty() || found.back().key != key) found.push_back({key, 0});
      ++found.back().count;
    }
  }
  waiting_ = {};
  dense_ = {};
  held_ = Held::waiting;
  looked_through_ = true;
  used_ = 0;
  return found;
}

void CellCounter::coarsen(int bits) {
  if (bits < 0) throw std::invalid_argument("a sketch cannot have fewer than no bits");
  look_through();
  if (bits < bits_) rebuild(bits);
}

void CellCounter::into_table() {
  look_through();
  if (held_ == Held::waiting) rebuild(bits_);
}

// Puts what was counted into a new table for so many bits.
void CellCounter::rebuild(int bits) {
  const int from = bits_;
  const std::size_t room = std::bit_ceil(std::max<std::size_t>(1024, 2 * std::min(used_, max_cells_)));
  const std::vector<Slot> old = taken();
  bits_ = bits;
  set_columns();
  held_ = fits_densely(bits) ? Held::dense : Held::hashed;
  if (held_ == Held::dense) {
    dense_.assign(std::size_t{1} << bits, 0);
  } else {
    slots_.assign(room, Slot{0, 0});
  }
  put_all(old.data(), old.size(), from);
}

// Of so many bits, so many that there are no more cells than allowed. The bits of different columns are put in the order in which they would be given up:
// then neighbours of sorted keys agree in as many bits as there are before the first that differs.
int CellCounter::bits_that_fit(std::vector<std::uint64_t> keys) const {
  constexpr int kPart = 12;
  const int d = static_cast<int>(columns_.size());
  // Where the bits of a column's index go, for the last ones and for those before.
  std::vector<std::array<std::vector<std::uint64_t>, 2>> spread(columns_.size());
  for (int column = 0; column < d; ++column) {
    for (int part = 0; part < 2; ++part) {
      const int own = column_bits_[column], size = std::clamp(own - part * kPart, 0, kPart);
      auto& table = spread[column][part];
      table.assign(std::size_t{1} << size, 0);
      for (std::size_t index = 0; index < table.size(); ++index) {
        for (int bit = 0; bit < size; ++bit) {
          const int from_top = own - 1 - (bit + part * kPart), place = bits_ - 1 - (from_top * d + column);
          table[index] |= static_cast<std::uint64_t>((index >> bit) & 1) << place;
        }
      }
    }
  }
  for (std::uint64_t& key : keys) {
    std::uint64_t rest = key, mixed = 0;
    for (int column = d - 1; column >= 0; --column) {
      const int own = column_bits_[column];
      const std::uint64_t index = rest & ((std::uint64_t{1} << own) - 1);
      rest >>= own;
      mixed |= spread[column][0][index & ((1 << kPart) - 1)] | spread[column][1][index >> kPart];
    }
    key = mixed;
  }
  sort_by_key(keys, bits_);
  std::array<std::size_t, 65> differ{};  // neighbours by the first bit that differs
  for (std::size_t i = 1; i < keys.size(); ++i) ++differ[static_cast<std::size_t>(std::bit_width(keys[i] ^ keys[i - 1]))];
  std::size_t cells = 1;
  int bits = 0;
  while (bits < bits_ && cells + differ[static_cast<std::size_t>(bits_ - bits)] <= max_cells_) cells += differ[static_cast<std::size_t>(bits_ - bits++)];
  return bits;
}

void CellCounter::look_through() {
  if (held_ != Held::waiting || looked_through_) return;
  sort_by_key(waiting_, bits_);
  used_ = distinct(waiting_);
  looked_through_ = true;
  if (used_ > max_cells_) coarsen(bits_that_fit(waiting_));
}

int CellCounter::bits() {
  look_through();
  return bits_;
}

std::size_t CellCounter::size() {
  look_through();
  return used_;
}

void CellCounter::keys_of(const std::vector<const double*>& values, std::ptrdiff_t stride, std::size_t start, std::size_t rows, std::uint64_t* keys) const {
  std::fill(keys, keys + rows, std::uint64_t{0});
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    const double* cuts = cuts_[column].data();
    const double* value = values[column] + static_cast<std::ptrdiff_t>(start) * stride;
    const int own = column_bits_[column];
    const std::uint32_t cells = std::uint32_t{1} << own;
    const double scale = columns_[column].even && own > 1 ? (cells - 2) / (cuts[cells - 2] - cuts[0]) : 0.0;
    if (scale > 0.0 && std::isfinite(scale)) {
      for (std::size_t i = 0; i < rows; ++i) keys[i] = (keys[i] << own) | look_up(cuts, cells, scale, value[static_cast<std::ptrdiff_t>(i) * stride]);
    } else {
      search(cuts, own, value, stride, rows, keys);
    }
  }
}

void CellCounter::add_rows(const std::vector<const double*>& values, std::ptrdiff_t stride, std::size_t rows) {
  if (values.size() != columns_.size()) throw std::invalid_argument("the number of columns is wrong");
  const int d = static_cast<int>(columns_.size());
  std::uint64_t keys[kBlock];
  for (std::size_t start = 0; start < rows; start += kBlock) {
    const std::size_t block = std::min(kBlock, rows - start);
    const int bits = bits_;
    keys_of(values, stride, start, block, keys);
    if (held_ == Held::waiting) {
      waiting_.insert(waiting_.end(), keys, keys + block);
      looked_through_ = false;
      if (waiting_.size() < std::min(kWaiting, std::max(kBlock, 2 * std::min(max_cells_, kWaiting)))) continue;
      into_table();
      continue;
    }
    for (std::size_t i = 0; i < block; ++i) {
      if (i + kAhead < block && bits == bits_) fetch_place(keys[i + kAhead]);
      std::uint64_t key = keys[i];
      for (int b = bits; b > bits_; --b) key = coarser(key, d, b);  // bits were given up within this block
      put(key, 1);
    }
  }
}

void CellCounter::add_cells(const std::uint64_t* keys, const std::uint64_t* counts, std::size_t size, int bits) {
  std::vector<Slot> slots(size);
  for (std::size_t i = 0; i < size; ++i) slots[i] = {keys[i], counts[i]};
  if (bits < bits_) coarsen(bits);
  into_table();
  put_all(slots.data(), slots.size(), bits);
}

void CellCounter::absorb(CellCounter& other) {
  if (held_ == Held::waiting && other.held_ == Held::waiting && bits_ == other.bits_) {
    waiting_.insert(waiting_.end(), other.waiting_.begin(), other.waiting_.end());
    other.waiting_ = {};
    looked_through_ = false;
    return;
  }
  other.look_through();
  coarsen(other.bits_);
  into_table();
  const std::vector<Slot> theirs = other.taken();
  put_all(theirs.data(), theirs.size(), other.bits_);
}

void CellCounter::cells(std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& counts) {
  look_through();
  keys.reserve(used_);
  counts.reserve(used_);
  const auto emit = [&](std::uint64_t key, std::uint64_t count) {
    keys.push_back(key);
    counts.push_back(count);
  };
  if (held_ == Held::dense) {
    for (std::size_t key = 0; key < dense_.size(); ++key) {
      if (dense_[key] != 0) emit(key, dense_[key]);
    }
    return;
  }
  if (held_ == Held::waiting) {
    for (const std::uint64_t key : waiting_) {
      if (keys.empty() || keys.back() != key) emit(key, 0);
      ++counts.back();
    }
    return;
  }
  std::vector<Slot> found;
  found.reserve(used_);
  for (const Slot& slot : slots_) {
    if (slot.count != 0) found.push_back(slot);
  }
  sort_by_key(found, bits_);
  for (const Slot& slot : found) emit(slot.key, slot.count);
}

// --- bins of a column ---------------------------------------------------------------------------------------------------------------------------------

BinCounter::BinCounter(std::size_t most, int dropped) : most_(most), dropped_(dropped) {
  if (most < 2 || dropped < 0 || dropped > 63) throw std::invalid_argument("two bins and one bit are needed");
  bins_.assign(1024, Bin{0, 0, 0, 0});
}

std::uint64_t BinCounter::ordered(double value) {
  constexpr std::uint64_t kTop = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);  // minus zero becomes zero
  return bits & kTop ? ~bits : bits | kTop;
}

double BinCounter::value(std::uint64_t ordered) {
  constexpr std::uint64_t kTop = std::uint64_t{1} << 63;
  return std::bit_cast<double>(ordered & kTop ? ordered & ~kTop : ~ordered);
}

void BinCounter::put(const Bin& bin) {
  const std::uint64_t key = bin.key >> dropped_ << dropped_;
  const std::size_t mask = bins_.size() - 1;
  std::size_t at = home(key >> dropped_, mask);
  while (bins_[at].count != 0 && bins_[at].key != key) at = (at + 1) & mask;
  Bin& here = bins_[at];
  if (here.count == 0) {
    here = bin;
    here.key = key;
    if (++used_ > most_) {
      rebuild(bins_.size(), bits_to_drop());
    } else if (2 * used_ > bins_.size()) {
      rebuild(2 * bins_.size(), dropped_);
    }
    return;
  }
  here.count += bin.count;
  here.low = std::min(here.low, bin.low);
  here.high = std::max(here.high, bin.high);
}

void BinCounter::rebuild(std::size_t size, int dropped) {
  std::vector<Bin> old(size, Bin{0, 0, 0, 0});
  old.swap(bins_);
  used_ = 0;
  dropped_ = dropped;
  for (const Bin& bin : old) {
    if (bin.count != 0) put(bin);
  }
}

// So few that there are no more bins than allowed.
int BinCounter::bits_to_drop() const {
  std::vector<std::uint64_t> keys;
  keys.reserve(used_);
  for (const Bin& bin : bins_) {
    if (bin.count != 0) keys.push_back(bin.key);
  }
  return std::max(dropped_, bits_to_drop(keys));
}

int BinCounter::bits_to_drop(std::vector<std::uint64_t>& keys) const {
  sort_by_key(keys, 64);
  std::array<std::size_t, 65> differ{};  // neighbours by the first bit that differs
  for (std::size_t i = 1; i < keys.size(); ++i) ++differ[static_cast<std::size_t>(std::bit_width(keys[i] ^ keys[i - 1]))];
  std::size_t bins = 1;
  int kept = 0;
  while (kept < 64 && bins + differ[static_cast<std::size_t>(64 - kept)] <= most_) bins += differ[static_cast<std::size_t>(64 - kept++)];
  return 64 - kept;
}

void BinCounter::add(const double* values, std::size_t size) {
  std::uint64_t points[kBlock];
  if (used_ == 0 && size > most_) {  // sorting many says at once how many bits to drop
    std::vector<std::uint64_t> keys(size);
    std::transform(values, values + size, keys.begin(), ordered);
    dropped_ = std::max(dropped_, bits_to_drop(keys));
  }
  for (std::size_t start = 0; start < size; start += kBlock) {
    const std::size_t block = std::min(kBlock, size - start);
    for (std::size_t i = 0; i < block; ++i) points[i] = ordered(values[start + i]);
    for (std::size_t i = 0; i < block; ++i) {
      if (i + kAhead < block) fetch(&bins_[home(points[i + kAhead] >> dropped_, bins_.size() - 1)]);
      put({points[i], 1, points[i], points[i]});
    }
  }
}

std::vector<BinCounter::Bin> BinCounter::bins() const {
  std::vector<Bin> found;
  found.reserve(used_);
  for (const Bin& bin : bins_) {
    if (bin.count != 0) found.push_back(bin);
  }
  sort_by_key(found, 64);
  return found;
}

}  // namespace cobpm
