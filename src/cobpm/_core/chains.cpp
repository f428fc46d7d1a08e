#include "chains.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace cobpm {
namespace {

constexpr double kLog2 = 0.69314718055994530942;
constexpr double kBlockLog = 512 * kLog2;
constexpr double kUp = 0x1.0p+512, kDown = 0x1.0p-512;

Wide operator+(const Wide& a, const Wide& b) {
  if (a.block == b.block) {
    Wide sum{a.value + b.value, a.block};
    if (sum.value >= 0x1.0p+256) sum = {sum.value * kDown, sum.block + 1};
    return sum;
  }
  const Wide &big = a.block > b.block ? a : b, &small = a.block > b.block ? b : a;
  if (big.block - small.block > 1) return big;
  return {big.value + small.value * kDown, big.block};
}

// As a double, where its size matters only as far as "vast" or "nothing".
double plain(double value, std::int32_t block) {
  if (block == 0) return value;
  return block > 0 ? (block > 1 ? HUGE_VAL : value * kUp) : (block < -1 ? 0.0 : value * kDown);
}

// a/b where both are sums of weights, a part of b.
double fraction(const Wide& a, const Wide& b) {
  const int gap = b.block - a.block;
  if (gap == 0) return a.value / b.value;
  return gap == 1 ? a.value * kDown / b.value : 0.0;
}

}  // namespace

Wide Wide::from_log(double log) {
  if (log == -HUGE_VAL) return {};
  const double block = std::floor(log / kBlockLog + 0.5);
  return {std::exp(log - block * kBlockLog), static_cast<std::int32_t>(block)};
}

double Wide::log() const { return value == 0.0 ? -HUGE_VAL : std::log(value) + block * kBlockLog; }

void SumTree::grow(std::size_t slots) {
  if (slots <= capacity_) return;
  std::vector<Wide> old(node_.begin() + capacity_, node_.end());
  while (capacity_ < slots) capacity_ *= 2;
  node_.assign(2 * capacity_, Wide{});
  std::copy(old.begin(), old.end(), node_.begin() + capacity_);
  for (std::size_t i = capacity_ - 1; i > 0; --i) node_[i] = node_[2 * i] + node_[2 * i + 1];
}

void SumTree::set(std::size_t slot, Wide weight) {
  std::size_t i = capacity_ + slot;
  node_[i] = weight;
  while (i > 1) {
    i /= 2;
    node_[i] = node_[2 * i] + node_[2 * i + 1];
  }
}

std::size_t SumTree::draw(double uniform) const {
  std::size_t i = 1;
  double mark = uniform;  // a fraction of node i
  while (i < capacity_) {
    const double lower = fraction(node_[2 * i], node_[i]);
    if (mark < lower || node_[2 * i + 1].value == 0.0) {
      mark = std::min(mark / lower, 1.0);
      i = 2 * i;
    } else {
      mark = std::min((mark - lower) / (1.0 - lower), 1.0);
      i = 2 * i + 1;
    }
  }
  return i - capacity_;
}

Chain::Chain(Regions& regions, LogGamma log_gamma, const std::vector<double>& log_price, Kernel kernel, Random random)
    : regions_(regions), log_gamma_(std::move(log_gamma)), kernel_(kernel), random_(random) {
  // From a single leaf a split is proposed surely, not with probability ½.
  for (std::size_t leaves = 0; leaves < log_price.size(); ++leaves) {
    price_.push_back(leaves == 0 ? Wide{} : Wide::from_log(log_price[leaves] - (leaves == 1 ? kLog2 : 0.0)));
  }
  const int d = regions_.points().d;
  const double log_empty = regions_.points().sets_count * log_gamma_[0];
  weight_empty_ = Wide::from_log(d ? std::log(d) + log_empty : -HUGE_VAL);
  weight_single_ = Wide::from_log(d ? std::log(2.0 * d) + log_empty : -HUGE_VAL);
  reset(random);
}

double Chain::log_weight(const Ref& ref, int depth) const {
  const int s = regions_.points().sets_count;
  if (ref.id == Ref::kEmpty) return s * log_gamma_[0];
  if (ref.id == Ref::kSingle) return (s - 1) * log_gamma_[0] + log_gamma_[1] + depth * kLog2;
  const std::uint32_t* counts = regions_.counts(ref.id);
  double result = depth * kLog2 * regions_.total(ref.id);
  for (int set = 0; set < s; ++set) result += log_gamma_[counts[set]];
  return result;
}

// A region's candidates are worked out once, when it first becomes a leaf.
Chain::Candidates& Chain::candidates(std::int64_t id) {
  if (id < static_cast<std::int64_t>(candidates_.size()) && candidates_[id].at >= 0) return candidates_[id];
  const int d = regions_.points().d;
  if (!regions_.expanded(id)) {
    Monitor quiet(nullptr, 0.0);
    regions_.expand({id}, 1, quiet);
  }
  if (candidates_.size() < static_cast<std::size_t>(regions_.size())) candidates_.resize(regions_.size());
  const int depth = regions_.depth(id);
  const double whole = log_weight({id}, depth);
  std::vector<double> rho(d, -HUGE_VAL);
  double top = -HUGE_VAL;
  for (int column = 0; column < d; ++column) {
    Ref lower, upper;
    regions_.children(id, depth, column, lower, upper);
    if (lower.id == Ref::kNone) continue;
    rho[column] = log_weight(lower, depth + 1) + log_weight(upper, depth + 1) - whole;
    top = std::max(top, rho[column]);
  }
  Candidates& found = candidates_[id];
  found.at = static_cast<std::int64_t>(shares_.size());
  double sum = 0.0;
  for (int column = 0; column < d; ++column) {
    sum += top == -HUGE_VAL ? 0.0 : std::exp(rho[column] - top);
    shares_.push_back(sum);
    log_rho_.push_back(rho[column]);
  }
  for (int column = 0; column < d; ++column) shares_[found.at + column] /= sum > 0.0 ? sum : 1.0;
  found.weight = Wide::from_log(top == -HUGE_VAL ? top : top + std::log(sum));
  return found;
}

Wide Chain::weight_of(const Node& node) {
  if (node.ref.id >= 0) return candidates(node.ref.id).weight;
  return node.ref.id == Ref::kEmpty ? weight_empty_ : weight_single_;
}

double Chain::log_rho(const Node& node, int column) {
  if (node.ref.id < 0) return weight_of(node).log() - std::log(regions_.points().d);
  return log_rho_[candidates(node.ref.id).at + column];
}

int Chain::draw_column(const Node& node) {
  const int d = regions_.points().d;
  if (node.ref.id < 0) return static_cast<int>(random_.below(d));
  const double* share = shares_.data() + candidates(node.ref.id).at;
  const double mark = random_.uniform();
  int column = 0;
  while (column + 1 < d && share[column] <= mark) ++column;
  return column;
}

void Chain::halves(const Node& node, int column, Ref& lower, Ref& upper) const {
  if (node.ref.id >= 0) {
    regions_.children(node.ref.id, node.depth, column, lower, upper);
    return;
  }
  lower = upper = {Ref::kEmpty};
  if (node.ref.id == Ref::kEmpty) return;
  int level = 0;  // how often this column was halved on the way here
  for (std::int32_t up = node.parent; up >= 0; up = nodes_[up].parent) level += nodes_[up].column == column;
  (regions_.points().above_middle(column, node.ref.point, level) ? upper : lower) = node.ref;
}

std::int32_t Chain::make_node(const Ref& ref, std::int32_t parent, std::int32_t depth) {
  std::int32_t at;
  if (free_.empty()) {
    at = static_cast<std::int32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    at = free_.back();
    free_.pop_back();
  }
  nodes_[at] = Node{};
  nodes_[at].ref = ref;
  nodes_[at].parent = parent;
  nodes_[at].depth = depth;
  return at;
}

void Chain::place(std::int32_t node, std::size_t slot) {
  if (slot >= slots_.size()) {
    slots_.resize(slot + 1);
    sums_.grow(slot + 1);
  }
  slots_[slot] = node;
  nodes_[node].slot = static_cast<std::int32_t>(slot);
  sums_.set(slot, weight_of(nodes_[node]));
}

// The lower half takes the slot of the region split, the upper half a new one at the end.
void Chain::split(std::size_t slot, int column) {
  const std::int32_t at = slots_[slot];
  if (kernel_ != Kernel::cherry) {
    undo_.push_back(1.0 / (kernel_ == Kernel::guided ? split_ratio_ : uniform_ratio(slot, column)));
  }
  Ref lower, upper;
  halves(nodes_[at], column, lower, upper);
  const std::int32_t depth = nodes_[at].depth + 1;
  const std::int32_t low = make_node(lower, at, depth), high = make_node(upper, at, depth);
  nodes_[at].lower = low;
  nodes_[at].upper = high;
  nodes_[at].column = column;
  nodes_[at].slot = -1;
  if (kernel_ == Kernel::cherry) {
    for (std::int32_t up = at; up >= 0; up = nodes_[up].parent) ++nodes_[up].inner;
  } else {
    history_.push_back(at);
  }
  place(low, slot);
  place(high, slots_.size());
  refresh();
}

// Undoes a split whose halves are both leaves.
void Chain::join(std::int32_t at) {
  const std::int32_t low = nodes_[at].lower, high = nodes_[at].upper;
  const std::size_t slot = nodes_[low].slot, hole = nodes_[high].slot, last = slots_.size() - 1;
  nodes_[at].lower = nodes_[at].upper = nodes_[at].column = -1;
  nodes_[low] = nodes_[high] = Node{};
  free_.push_back(low);
  free_.push_back(high);
  place(at, slot);
  if (hole != last) place(slots_[last], hole);
  sums_.set(last, Wide{});
  slots_.pop_back();
  if (kernel_ == Kernel::cherry) {
    for (std::int32_t up = at; up >= 0; up = nodes_[up].parent) --nodes_[up].inner;
  } else {
    history_.pop_back();
    undo_.pop_back();
  }
  refresh();
}

// Acceptance ratio of a guided split from l leaves whose candidates sum to Z; its inverse is that of undoing it.
double Chain::ratio(const Wide& total, std::size_t leaves) const {
  const Wide& price = price_[leaves];
  return plain(total.value * price.value, total.block + price.block);
}

double Chain::uniform_ratio(std::size_t slot, int column) {
  const double candidates = static_cast<double>(slots_.size()) * regions_.points().d;
  return ratio(Wide::from_log(log_rho(nodes_[slots_[slot]], column) + std::log(candidates)), slots_.size());
}

void Chain::refresh() {
  if (kernel_ == Kernel::uniform) return;
  const bool full = slots_.size() >= price_.size();
  split_ratio_ = full ? 0.0 : ratio(sums_.total(), slots_.size());
}

// The split that is last in a uniformly drawn order of the tree's splits: from the root down, a subtree of s splits ends in its lower half
// with probability (splits there)/(s−1).
std::int32_t Chain::last_split() {
  std::int32_t at = 0;
  while (nodes_[at].inner > 1) {
    const std::int32_t lower = nodes_[at].lower;
    at = random_.below(nodes_[at].inner - 1) < static_cast<std::uint32_t>(nodes_[lower].inner) ? lower : nodes_[at].upper;
  }
  return at;
}

void Chain::step() {
  const std::uint64_t bits = random_.bits();
  if (kernel_ == Kernel::cherry && (bits & (kSwapEvery - 1)) == 0) {
    std::int32_t at;  // any of the 2l−1 nodes, whose number an exchange does not change
    do {
      at = static_cast<std::int32_t>(random_.below(static_cast<std::uint32_t>(nodes_.size())));
    } while (nodes_[at].column < 0 && nodes_[at].slot < 0);
    if (!can_swap(at) || random_.uniform() >= swap_ratio(at)) return;
    swap(at);
    ++accepted_;
    return;
  }
  const std::size_t leaves = slots_.size();
  if (regions_.points().d == 0) return;  // nothing to split along
  const bool up = leaves == 1 || (bits >> 63);
  if (up && kernel_ == Kernel::uniform) {
    if (leaves >= price_.size()) return;
    const std::size_t slot = random_.below(static_cast<std::uint32_t>(leaves));
    const int column = static_cast<int>(random_.below(regions_.points().d));
    if (random_.uniform() >= uniform_ratio(slot, column)) return;
    split(slot, column);
  } else if (up) {
    if (random_.uniform() >= split_ratio_) return;
    const std::size_t slot = sums_.draw(random_.uniform());
    split(slot, draw_column(nodes_[slots_[slot]]));
  } else if (kernel_ == Kernel::cherry) {
    const std::int32_t at = last_split();
    if (random_.uniform() >= join_ratio(at)) return;
    join(at);
  } else {
    if (random_.uniform() >= undo_.back()) return;
    join(history_.back());
  }
  ++accepted_;
}

// A node whose halves are both split along one other column. Splitting along that column first, then along its own, gives the same leaves.
bool Chain::can_swap(std::int32_t at) const {
  const Node& node = nodes_[at];
  if (node.column < 0) return false;
  const std::int32_t column = nodes_[node.lower].column;
  return column >= 0 && column != node.column && column == nodes_[node.upper].column;
}

// The leaves stay, so all that changes is the number of orders, which goes with the inverse of the halves' numbers of splits.
double Chain::swap_ratio(std::int32_t at) const {
  const Node &low = nodes_[nodes_[at].lower], &high = nodes_[nodes_[at].upper];
  const double first = 1.0 + nodes_[low.lower].inner + nodes_[high.lower].inner;
  const double second = 1.0 + nodes_[low.upper].inner + nodes_[high.upper].inner;
  return (static_cast<double>(low.inner) * high.inner) / (first * second);
}

void Chain::swap(std::int32_t at) {
  const std::int32_t low = nodes_[at].lower, high = nodes_[at].upper, column = nodes_[low].column;
  if (nodes_[at].ref.id >= 0) candidates(nodes_[at].ref.id);  // an earlier exchange may have put a region here that never was a leaf
  Ref lower, upper;
  halves(nodes_[at], column, lower, upper);
  std::swap(nodes_[low].upper, nodes_[high].lower);
  nodes_[nodes_[low].upper].parent = low;
  nodes_[nodes_[high].lower].parent = high;
  nodes_[low].ref = lower;
  nodes_[high].ref = upper;
  nodes_[low].column = nodes_[high].column = nodes_[at].column;
  nodes_[at].column = column;
  for (const std::int32_t half : {low, high}) {
    nodes_[half].inner = 1 + nodes_[nodes_[half].lower].inner + nodes_[nodes_[half].upper].inner;
  }
}

// Acceptance ratio of undoing a split whose halves are leaves: puts the sums as they would be without it, reads Z, and puts them back.
double Chain::join_ratio(std::int32_t at) {
  const std::size_t low = nodes_[nodes_[at].lower].slot, high = nodes_[nodes_[at].upper].slot;
  const Wide weight_low = sums_.weight(low), weight_high = sums_.weight(high);
  sums_.set(high, Wide{});
  sums_.set(low, weight_of(nodes_[at]));
  const double result = 1.0 / ratio(sums_.total(), slots_.size() - 1);
  sums_.set(low, weight_low);
  sums_.set(high, weight_high);
  return result;
}

void Chain::reset(Random random) {
  random_ = random;
  nodes_.clear();
  free_.clear();
  slots_.clear();
  history_.clear();
  undo_.clear();
  sums_ = SumTree{};
  place(make_node(regions_.root(), -1, 0), 0);
  refresh();
}

void Chain::start_from(const std::int16_t* splits, Monitor& monitor) {
  // Preorder: the next node in the list belongs to the leaf on top of the stack.
  std::vector<std::int32_t> stack{0};
  for (std::size_t i = 0; !stack.empty(); ++i) {
    if (i % 256 == 0) monitor.check();
    const std::int32_t at = stack.back();
    stack.pop_back();
    if (splits[i] < 0) continue;
    split(nodes_[at].slot, splits[i]);
    stack.push_back(nodes_[at].upper);
    stack.push_back(nodes_[at].lower);
  }
}

void Chain::write(Partitions& out) const {
  const int s = regions_.points().sets_count;
  std::vector<std::int32_t> stack{0};
  std::int64_t nodes = 0;
  while (!stack.empty()) {
    const Node& node = nodes_[stack.back()];
    stack.pop_back();
    ++nodes;
    out.splits.push_back(static_cast<std::int16_t>(node.column));
    if (node.column >= 0) {
      stack.push_back(node.upper);
      stack.push_back(node.lower);
      continue;
    }
    const std::size_t at = out.counts.size();
    out.counts.resize(at + s, 0);
    if (node.ref.id >= 0) {
      std::copy_n(regions_.counts(node.ref.id), s, out.counts.begin() + at);
    } else if (node.ref.id == Ref::kSingle) {
      out.counts[at + node.ref.set] = 1;
    }
  }
  out.nodes.push_back(nodes);
  out.leaves.push_back(leaves());
}

std::vector<Chain::Move> Chain::moves() {
  std::vector<Move> result;
  auto add = [&](double probability, auto change) {
    Chain after(*this);
    change(after);
    Partitions out;
    after.write(out);
    result.push_back({std::move(out.splits), probability});
  };
  const int d = regions_.points().d;
  const std::size_t leaves = slots_.size();
  const double resize = kernel_ == Kernel::cherry ? 1.0 - 1.0 / kSwapEvery : 1.0;
  const double propose = resize * (leaves == 1 ? 1.0 : 0.5);
  for (std::size_t slot = 0; slot < leaves && leaves < price_.size(); ++slot) {
    for (int column = 0; column < d; ++column) {
      double probability;
      if (kernel_ == Kernel::uniform) {
        probability = propose / (static_cast<double>(leaves) * d) * std::min(1.0, uniform_ratio(slot, column));
      } else {
        const double log_share = log_rho(nodes_[slots_[slot]], column) - sums_.total().log();
        probability = propose * std::exp(log_share) * std::min(1.0, split_ratio_);
      }
      add(probability, [&](Chain& chain) { chain.split(slot, column); });
    }
  }
  if (leaves == 1) return result;
  if (kernel_ != Kernel::cherry) {
    add(propose * std::min(1.0, undo_.back()), [](Chain& chain) { chain.join(chain.history_.back()); });
    return result;
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::int32_t at = static_cast<std::int32_t>(i);
    if (std::find(free_.begin(), free_.end(), at) != free_.end()) continue;
    if (can_swap(at)) {
      const double chosen = 1.0 / (kSwapEvery * (2.0 * leaves - 1.0));
      add(chosen * std::min(1.0, swap_ratio(at)), [at](Chain& chain) { chain.swap(at); });
    }
    if (nodes_[at].inner != 1) continue;
    double last = 1.0;
    for (std::int32_t up = at; nodes_[up].parent >= 0; up = nodes_[up].parent) {
      last *= static_cast<double>(nodes_[up].inner) / (nodes_[nodes_[up].parent].inner - 1);
    }
    add(propose * last * std::min(1.0, join_ratio(at)), [at](Chain& chain) { chain.join(at); });
  }
  return result;
}

Partitions run_chain(Chain& chain, const ChainPlan& plan, Monitor& monitor) {
  Partitions out;
  const std::int64_t total = plan.burn_in + plan.draws * plan.thin;
  for (std::int64_t i = 1; i <= total; ++i) {
    chain.step();
    if (i % 4096 == 0) monitor.check(4096.0);
    if (i > plan.burn_in && (i - plan.burn_in) % plan.thin == 0) chain.write(out);
  }
  return out;
}

}  // namespace cobpm
