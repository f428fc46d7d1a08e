#include "sketch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace cobpm {
namespace {

constexpr std::size_t kBlock = 1024;       // rows whose keys stay in the first-level cache
constexpr std::size_t kAhead = 16;         // values whose bins are on their way from memory
constexpr std::size_t kWaiting = 1 << 20;  // rows that are sorted together
constexpr int kDense = 21;                 // bits up to which each possible cell may have a place

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
void search(const double* cuts, int bits, const double* values, std::ptrdiff_t stride, std::size_t size, const std::uint64_t* nested, std::uint64_t* keys) {
  constexpr std::size_t kTogether = 8;
  const double* below[kTogether];
  double value[kTogether];
  for (std::size_t start = 0; start < size; start += kTogether) {
    const std::size_t here = std::min(kTogether, size - start);
    for (std::size_t i = 0; i < kTogether; ++i) {
      below[i] = cuts;
      value[i] = values[static_cast<std::ptrdiff_t>(start + std::min(i, here - 1)) * stride];
    }
    for (int bit = bits - 1; bit >= 0; --bit) {
      const std::size_t step = std::size_t{1} << bit;
      for (std::size_t i = 0; i < kTogether; ++i) below[i] += step & -static_cast<std::size_t>(below[i][step - 1] <= value[i]);
    }
    for (std::size_t i = 0; i < here; ++i) keys[start + i] |= nested[below[i] - cuts];
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
  constexpr int kDigit = 9;
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

// Of sorted keys that neighbours tell apart by these bits, counted from the last: how many leading ones can be kept if no more than so many shall differ.
int bits_that_fit(const std::array<std::size_t, 65>& differ, int bits, std::size_t most) {
  std::size_t found = 1;
  int kept = 0;
  while (kept < bits && found + differ[static_cast<std::size_t>(bits - kept)] <= most) found += differ[static_cast<std::size_t>(bits - kept++)];
  return kept;
}

int bits_of(int bits, int columns, int column) { return bits / columns + (column < bits % columns); }

// Where the bits of a column's index lie in a nested key of so many bits.
std::uint64_t nested(std::uint64_t index, int bits, int columns, int column) {
  const int own = bits_of(bits, columns, column);
  std::uint64_t key = 0;
  for (int bit = 0; bit < own; ++bit) key |= ((index >> bit) & 1) << (bits - 1 - ((own - 1 - bit) * columns + column));
  return key;
}

// Brings keys from one order of their bits to another, some bits at a time.
class Reordered {
 public:
  // From names of cells to nested keys, or back.
  Reordered(int bits, int columns, bool back) {
    std::array<int, 64> to{};
    int place = 0;
    for (int column = columns - 1; column >= 0; --column) {
      for (int bit = 0; bit < bits_of(bits, columns, column); ++bit, ++place) {
        const int inside = std::countr_zero(nested(std::uint64_t{1} << bit, bits, columns, column));
        to[static_cast<std::size_t>(back ? inside : place)] = back ? place : inside;
      }
    }
    for (int part = 0; part * kPart < bits; ++part) {
      auto& table = tables_.emplace_back();
      for (std::size_t value = 0; value < table.size(); ++value) {
        table[value] = 0;
        for (int bit = 0; bit < kPart && part * kPart + bit < bits; ++bit) {
          table[value] |= static_cast<std::uint64_t>((value >> bit) & 1) << to[static_cast<std::size_t>(part * kPart + bit)];
        }
      }
    }
  }
  std::uint64_t operator()(std::uint64_t key) const {
    std::uint64_t found = 0;
    for (const auto& table : tables_) {
      found |= table[key & (table.size() - 1)];
      key >>= kPart;
    }
    return found;
  }

 private:
  static constexpr int kPart = 8;
  std::vector<std::array<std::uint64_t, std::size_t{1} << kPart>> tables_;
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
  used_.clear();
  for (int column = 0; column < d; ++column) {
    Used own{bits_of(bits_, d, column), {}, {}, 0.0};
    for (std::size_t k = 0; k < std::size_t{1} << own.bits; ++k) {
      if (k > 0) own.cuts.push_back(columns_[static_cast<std::size_t>(column)].cuts[(k << (finest_ - own.bits)) - 1]);
      own.nested.push_back(nested(k, bits_, d, column));
    }
    if (columns_[static_cast<std::size_t>(column)].even && own.bits > 1) {
      const double scale = static_cast<double>(own.cuts.size() - 1) / (own.cuts.back() - own.cuts.front());
      if (scale > 0.0 && std::isfinite(scale)) own.scale = scale;
    }
    used_.push_back(std::move(own));
  }
}

void CellCounter::nested_keys(const std::vector<const double*>& values, std::ptrdiff_t stride, std::size_t start, std::size_t rows, std::uint64_t* keys) const {
  std::fill(keys, keys + rows, std::uint64_t{0});
  for (std::size_t column = 0; column < used_.size(); ++column) {
    const Used& own = used_[column];
    const double* value = values[column] + static_cast<std::ptrdiff_t>(start) * stride;
    if (own.scale > 0.0) {
      const auto cells = static_cast<std::uint32_t>(own.nested.size());
      for (std::size_t i = 0; i < rows; ++i) keys[i] |= own.nested[look_up(own.cuts.data(), cells, own.scale, value[static_cast<std::ptrdiff_t>(i) * stride])];
    } else {
      search(own.cuts.data(), own.bits, value, stride, rows, own.nested.data(), keys);
    }
  }
}

void CellCounter::add_rows(const std::vector<const double*>& values, std::ptrdiff_t stride, std::size_t rows) {
  if (values.size() != columns_.size()) throw std::invalid_argument("the number of columns is wrong");
  std::uint64_t keys[kBlock];
  for (std::size_t start = 0; start < rows; start += kBlock) {
    const std::size_t block = std::min(kBlock, rows - start);
    nested_keys(values, stride, start, block, keys);
    if (dense_.empty()) {
      waiting_.insert(waiting_.end(), keys, keys + block);
      if (waiting_.size() < kWaiting) continue;
      settle();
      if (fits_densely()) make_dense();
    } else if (dense_.size() <= max_cells_) {
      for (std::size_t i = 0; i < block; ++i) ++dense_[keys[i]];
    } else {
      for (std::size_t i = 0; i < block; ++i) occupied_ += dense_[keys[i]]++ == 0;
      fit();
    }
  }
}

// Merges the keys that wait with those that came before.
void CellCounter::settle() {
  if (waiting_.empty()) return;
  sort_by_key(waiting_, bits_);
  std::size_t size = 1;
  for (std::size_t i = 1; i < waiting_.size(); ++i) size += waiting_[i] != waiting_[i - 1];
  std::vector<Slot> slots(size, Slot{0, 0});
  std::size_t at = 0;
  std::uint64_t before = waiting_[0];
  for (const std::uint64_t key : waiting_) {
    at += key != before;
    slots[at].key = before = key;
    ++slots[at].count;
  }
  waiting_.clear();
  take(slots);
}

// Cells of as many bits as there are here, in ascending order.
void CellCounter::take(const std::vector<Slot>& slots) {
  if (!dense_.empty()) {
    for (const Slot& slot : slots) {
      occupied_ += dense_[slot.key] == 0;
      dense_[slot.key] += slot.count;
    }
  } else if (run_.empty()) {
    run_ = slots;
  } else {
    std::vector<Slot> both(run_.size() + slots.size());
    std::size_t i = 0, j = 0, at = 0;
    while (i < run_.size() && j < slots.size()) {  // without branches: which is next cannot be guessed
      const std::uint64_t key = std::min(run_[i].key, slots[j].key);
      const bool here = run_[i].key == key, there = slots[j].key == key;
      both[at++] = {key, (run_[i].count & -std::uint64_t{here}) + (slots[j].count & -std::uint64_t{there})};
      i += here;
      j += there;
    }
    while (i < run_.size()) both[at++] = run_[i++];
    while (j < slots.size()) both[at++] = slots[j++];
    both.resize(at);
    run_.swap(both);
  }
  fit();
}

// Gives up bits until there are no more cells than allowed.
void CellCounter::fit() {
  if (!dense_.empty()) {
    while (occupied_ > max_cells_) coarsen(bits_ - 1);
  } else if (run_.size() > max_cells_) {
    std::array<std::size_t, 65> differ{};
    for (std::size_t i = 1; i < run_.size(); ++i) ++differ[static_cast<std::size_t>(std::bit_width(run_[i].key ^ run_[i - 1].key))];
    coarsen(bits_that_fit(differ, bits_, max_cells_));
  }
}

void CellCounter::coarsen(int bits) {
  if (bits < 0) throw std::invalid_argument("a sketch cannot have fewer than no bits");
  if (bits >= bits_) return;
  const int shift = bits_ - bits;
  bits_ = bits;
  set_columns();
  for (std::uint64_t& key : waiting_) key >>= shift;
  std::size_t size = 0;
  for (const Slot& slot : run_) {
    const std::uint64_t key = slot.key >> shift;
    if (size > 0 && run_[size - 1].key == key) {
      run_[size - 1].count += slot.count;
    } else {
      run_[size++] = {key, slot.count};
    }
  }
  run_.resize(size);
  if (dense_.empty()) return;
  occupied_ = 0;
  for (std::size_t cell = 0; cell < dense_.size() >> shift; ++cell) {
    const auto first = dense_.begin() + static_cast<std::ptrdiff_t>(cell << shift);
    dense_[cell] = std::accumulate(first, first + (std::ptrdiff_t{1} << shift), std::uint64_t{0});
    occupied_ += dense_[cell] != 0;
  }
  dense_.resize(dense_.size() >> shift);
}

bool CellCounter::fits_densely() const { return bits_ <= kDense && (std::size_t{1} << bits_) / 4 <= max_cells_; }

void CellCounter::make_dense() {
  if (!dense_.empty()) return;
  settle();
  const std::vector<Slot> slots = std::exchange(run_, {});
  dense_.assign(std::size_t{1} << bits_, 0);
  occupied_ = 0;
  take(slots);
  waiting_ = {};
}

int CellCounter::bits() {
  settle();
  return bits_;
}

std::size_t CellCounter::size() {
  settle();
  if (dense_.empty()) return run_.size();
  return dense_.size() - static_cast<std::size_t>(std::count(dense_.begin(), dense_.end(), std::uint64_t{0}));
}

void CellCounter::add_cells(const std::uint64_t* keys, const std::uint64_t* counts, std::size_t size, int bits) {
  coarsen(bits);
  settle();
  const Reordered to_nested(bits, static_cast<int>(columns_.size()), false);
  std::vector<Slot> slots;
  slots.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    if (counts[i] > 0) slots.push_back({to_nested(keys[i]) >> (bits - bits_), counts[i]});
  }
  sort_by_key(slots, bits_);
  std::size_t at = 0;
  for (const Slot& slot : slots) {
    if (at > 0 && slots[at - 1].key == slot.key) {
      slots[at - 1].count += slot.count;
    } else {
      slots[at++] = slot;
    }
  }
  slots.resize(at);
  take(slots);
}

void CellCounter::absorb(CellCounter& other) {
  other.coarsen(bits_);
  coarsen(other.bits_);
  if (!other.dense_.empty()) make_dense();  // which may leave fewer bits
  other.coarsen(bits_);
  for (std::size_t cell = 0; cell < other.dense_.size(); ++cell) dense_[cell] += other.dense_[cell];
  if (!dense_.empty()) occupied_ = size();
  take(other.run_);
  other.coarsen(bits_);
  waiting_.insert(waiting_.end(), other.waiting_.begin(), other.waiting_.end());
  other.waiting_ = {};
  other.run_ = {};
  std::fill(other.dense_.begin(), other.dense_.end(), std::uint64_t{0});
  other.occupied_ = 0;
  if (!dense_.empty() || waiting_.size() >= kWaiting) settle();
}

void CellCounter::cells(std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& counts) {
  settle();
  const int d = static_cast<int>(columns_.size());
  if (!dense_.empty()) {
    const Reordered to_nested(bits_, d, false);
    for (std::size_t key = 0; key < dense_.size(); ++key) {
      if (const std::uint64_t count = dense_[to_nested(key)]; count != 0) {
        keys.push_back(key);
        counts.push_back(count);
      }
    }
    return;
  }
  const Reordered to_name(bits_, d, true);
  std::vector<Slot> found = run_;
  for (Slot& slot : found) slot.key = to_name(slot.key);
  sort_by_key(found, bits_);
  keys.reserve(found.size());
  counts.reserve(found.size());
  for (const Slot& slot : found) {
    keys.push_back(slot.key);
    counts.push_back(slot.count);
  }
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
  return bits_to_drop(keys);
}

int BinCounter::bits_to_drop(std::vector<std::uint64_t>& keys) const {
  for (std::uint64_t& key : keys) key >>= dropped_;
  sort_by_key(keys, 64 - dropped_);
  std::array<std::size_t, 65> differ{};  // neighbours by the first bit that differs
  for (std::size_t i = 1; i < keys.size(); ++i) ++differ[static_cast<std::size_t>(std::bit_width(keys[i] ^ keys[i - 1]))];
  return 64 - bits_that_fit(differ, 64 - dropped_, most_);
}

void BinCounter::add(const double* values, std::size_t size) {
  std::uint64_t points[kBlock];
  if (used_ == 0 && size > most_) {  // sorting many says at once how many bits to drop at least
    std::vector<std::uint64_t> keys(std::min(size, 2 * most_));
    std::transform(values, values + keys.size(), keys.begin(), ordered);
    dropped_ = bits_to_drop(keys);
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

void BinCounter::add_all(const BinCounter& other) {
  if (other.dropped_ > dropped_) rebuild(bins_.size(), other.dropped_);
  for (const Bin& bin : other.bins_) {
    if (bin.count != 0) put(bin);
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
