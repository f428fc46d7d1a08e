#include "ratio.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace cobpm {
namespace {

constexpr double kLog2 = 0.69314718055994530942;
constexpr int kStep = 256;               // powers of two are set apart in steps of this size: products of two stay far from overflow
constexpr double kLarge = 0x1.0p256;     // 2^kStep
constexpr std::uint32_t kTable = 4096;   // counts up to here are tabled
constexpr double kLargeGamma = 1e5;      // argument from which on differences of lnΓ lose digits
constexpr std::size_t kFewLeaves = 4096; // entries of the table of small leaves

}  // namespace

RatioRecursion::RatioRecursion(Regions& regions, std::vector<double> concentrations, double stop)
    : regions_(regions), concentrations_(std::move(concentrations)), stop_(stop) {
  if (concentrations_.empty()) throw std::invalid_argument("at least one concentration is needed");
  for (const double a : concentrations_) {
    if (!(a > 0.0) || !std::isfinite(a)) throw std::invalid_argument("concentrations must be positive");
  }
  if (!(stop > 0.0 && stop <= 1.0)) throw std::invalid_argument("the probability to stop must lie in (0, 1]");
  prepare();
}

void RatioRecursion::relabel(const std::uint16_t* sets, int threads, Monitor& monitor) {
  phi_.clear();
  regions_.relabel(sets, threads, monitor);
  prepare();
}

// Shares, and tables of what they and the concentrations determine.
void RatioRecursion::prepare() {
  const int s = regions_.points().sets_count;
  const std::uint32_t* sizes = regions_.counts(0);
  const double n = regions_.total(0);
  std::vector<double> shares(s, 0.0);
  double log_null = 0.0;
  for (int set = 0; set < s; ++set) {
    if (sizes[set] == 0) continue;
    shares[set] = sizes[set] / n;
    log_null += sizes[set] * std::log(shares[set]);
  }
  if (shares == shares_) return;
  shares_ = std::move(shares);
  log_null_ = log_null;
  set_tables_.clear();
  all_tables_.clear();
  const auto table = [&](double from, std::uint32_t most, double log_share) {
    std::vector<double> entries(std::min(kTable, most + 1), 0.0);
    for (std::uint32_t i = 1; i < entries.size(); ++i) entries[i] = log_rising(from, i) - i * log_share;
    return entries;
  };
  for (const double a : concentrations_) {
    all_tables_.push_back(table(a, regions_.total(0), 0.0));
    for (int set = 0; set < s; ++set) {
      set_tables_.push_back(sizes[set] ? table(a * shares_[set], sizes[set], std::log(shares_[set])) : std::vector<double>{0.0});
    }
  }
  few_ = std::min<std::uint32_t>(static_cast<std::uint32_t>(std::pow(kFewLeaves, 1.0 / s) + 1e-9), regions_.total(0) + 1);
  few_leaves_.assign(static_cast<std::size_t>(std::pow(few_, s) + 0.5), Scaled{});
  std::vector<std::uint32_t> counts(s, 0);
  for (Scaled& entry : few_leaves_) {
    bool possible = true;
    for (int set = 0; set < s; ++set) possible = possible && counts[set] <= sizes[set];
    if (possible) entry = weigh(counts.data(), std::accumulate(counts.begin(), counts.end(), 0u));
    for (int set = 0; set < s && ++counts[set] == few_; ++set) counts[set] = 0;
  }
}

// lnΓ(from+steps) − lnΓ(from); by Stirling's series where the two are large and nearly the same
double RatioRecursion::log_rising(double from, std::uint32_t steps) const {
  if (from < kLargeGamma) return std::lgamma(from + steps) - std::lgamma(from);
  return (from - 0.5) * std::log1p(steps / from) + steps * (std::log(from + steps) - 1.0) + (1.0 / (from + steps) - 1.0 / from) / 12.0;
}

// L over the probability Π_s π_s^{n_s} that labels drawn at random have.
RatioRecursion::Scaled RatioRecursion::weigh(const std::uint32_t* counts, std::uint32_t total) const {
  const int s = static_cast<int>(shares_.size());
  const std::size_t components = concentrations_.size();
  thread_local std::vector<double> logs;
  logs.resize(components);
  double top = -INFINITY;
  for (std::size_t k = 0; k < components; ++k) {
    double log = total < all_tables_[k].size() ? -all_tables_[k][total] : -log_rising(concentrations_[k], total);
    for (int set = 0; set < s; ++set) {
      const std::vector<double>& table = set_tables_[k * s + set];
      const std::uint32_t n = counts[set];
      log += n < table.size() ? table[n] : log_rising(concentrations_[k] * shares_[set], n) - n * std::log(shares_[set]);
    }
    logs[k] = log;
    top = std::max(top, log);
  }
  const std::int64_t exponent = kStep * static_cast<std::int64_t>(top / (kStep * kLog2));
  double sum = 0.0;
  for (const double log : logs) sum += std::exp(log - static_cast<double>(exponent) * kLog2);
  return {sum / static_cast<double>(components), exponent};
}

RatioRecursion::Scaled RatioRecursion::leaf(const std::uint32_t* counts, std::uint32_t total) const {
  const int s = static_cast<int>(shares_.size());
  std::size_t at = 0;
  for (int set = s - 1; set >= 0; --set) {
    if (counts[set] >= few_) return weigh(counts, total);
    at = at * few_ + counts[set];
  }
  return few_leaves_[at];
}

// value · 2^exponent
double RatioRecursion::shifted(double value, std::int64_t exponent) {
  return exponent == 0 ? value : std::ldexp(value, static_cast<int>(std::clamp<std::int64_t>(exponent, -4096, 4096)));
}

void RatioRecursion::add(Scaled& sum, Scaled more) {
  if (sum.exponent < more.exponent) std::swap(sum, more);
  sum.value += shifted(more.value, more.exponent - sum.exponent);
}

// Brings a number back to where the product of two neither overflows nor vanishes.
void RatioRecursion::settle(Scaled& sum) {
  while (sum.value > kLarge) {
    sum.value /= kLarge;
    sum.exponent += kStep;
  }
  while (sum.value < 1.0 / kLarge && sum.value > 0.0) {
    sum.value *= kLarge;
    sum.exponent -= kStep;
  }
}

double RatioRecursion::ratio(Scaled above, Scaled below) { return shifted(above.value / below.value, above.exponent - below.exponent); }

// All ways to halve a region; none if it is too small or its halves are unknown.
void RatioRecursion::halves(std::int64_t id, int depth, std::vector<Half>& found) const {
  found.clear();
  if (regions_.total(id) < 2 || !regions_.expanded(id)) return;
  for (int column = 0; column < regions_.points().d; ++column) {
    Half half{column, {}, {}, {}};
    regions_.children(id, depth, column, half.lower, half.upper);
    if (half.lower.id == Ref::kNone) continue;
    half.product = product(phi(half.lower), phi(half.upper));
    found.push_back(half);
  }
}

double RatioRecursion::up(int threads, Monitor& monitor) {
  phi_.assign(regions_.size(), Scaled{});
  regions_.upward(threads, monitor, [&](int depth, std::size_t size, auto id_at) {
    std::vector<Half> found;
    for (std::size_t i = 0; i < size; ++i) {
      const std::int64_t id = id_at(i);
      if (regions_.total(id) < 2) continue;
      const Scaled whole = leaf(regions_.counts(id), regions_.total(id));
      halves(id, depth, found);
      if (found.empty()) {
        phi_[id] = whole;
        continue;
      }
      Scaled sum = found[0].product;
      for (std::size_t j = 1; j < found.size(); ++j) add(sum, found[j].product);
      sum.value *= (1.0 - stop_) / static_cast<double>(found.size());
      add(sum, {stop_ * whole.value, whole.exponent});
      settle(sum);
      phi_[id] = sum;
    }
  });
  return std::log(phi_[0].value) + static_cast<double>(phi_[0].exponent) * kLog2 + log_null_;
}

// From the root down, a depth at a time and by one thread: few regions are ever reached.
RatioRecursion::Leaves RatioRecursion::leaves(double least, Monitor& monitor) const {
  check_current();
  Leaves result;
  std::vector<double> visits(regions_.size(), 0.0);
  std::vector<std::int64_t> here{0}, next;
  visits[0] = 1.0;
  const auto reach = [&](const Ref& ref, double probability) {
    if (ref.id >= 0) {
      if (visits[ref.id] == 0.0) next.push_back(ref.id);
      visits[ref.id] += probability;
    } else if (ref.id == Ref::kEmpty) {
      result.empty += probability;
    } else {
      result.points.resize(regions_.points().n, 0.0);
      result.points[ref.point] += probability;
    }
  };
  std::vector<Half> found;
  for (int depth = 0; !here.empty(); ++depth) {
    monitor.check();
    for (const std::int64_t id : here) {
      double left = visits[id];
      found.clear();
      if (left >= least) halves(id, depth, found);
      if (!found.empty()) {
        const double split = left * (1.0 - stop_) / static_cast<double>(found.size());
        for (const Half& half : found) {
          const double probability = split * ratio(half.product, phi_[id]);
          if (probability == 0.0) continue;
          reach(half.lower, probability);
          reach(half.upper, probability);
        }
        left *= stop_ * ratio(leaf(regions_.counts(id), regions_.total(id)), phi_[id]);
      }
      result.ids.push_back(id);
      result.probabilities.push_back(left);
    }
    here.swap(next);
    next.clear();
  }
  return result;
}

std::vector<double> RatioRecursion::at_points(const Leaves& leaves, const double* leaf_values, const double* single_values,
                                              int functions, int threads, Monitor& monitor) const {
  check_current();
  const Points& points = regions_.points();
  std::vector<double> result(points.n * functions, 0.0);
  const auto add_to = [&](std::size_t point, double probability, const double* values) {
    for (int g = 0; g < functions; ++g) result[point * functions + g] += probability * values[g];
  };
  // Which leaf a dense region is, and the level vectors that have any.
  const std::int64_t dense = regions_.depth_start(regions_.base_depth() + 1);
  std::vector<std::int32_t> row(dense, -1);
  std::vector<std::pair<int, std::int64_t>> vectors;
  for (std::size_t i = 0; i < leaves.ids.size(); ++i) {
    if (leaves.ids[i] >= dense) continue;
    row[leaves.ids[i]] = static_cast<std::int32_t>(i);
    const int depth = regions_.depth(leaves.ids[i]);
    vectors.emplace_back(depth, regions_.vector_of(leaves.ids[i], depth));
  }
  std::sort(vectors.begin(), vectors.end());
  vectors.erase(std::unique(vectors.begin(), vectors.end()), vectors.end());
  const std::size_t block = 1024;
  monitor.parallel((points.n + block - 1) / block, threads, [&](std::size_t task) {
    const std::size_t first = task * block, last = std::min(points.n, first + block);
    for (const auto& [depth, vector] : vectors) {
      monitor.check();
      for (std::size_t point = first; point < last; ++point) {
        const std::int32_t leaf = row[regions_.cell_of(point, depth, vector)];
        if (leaf >= 0) add_to(point, leaves.probabilities[leaf], leaf_values + leaf * functions);
      }
    }
  });
  for (std::size_t i = 0; i < leaves.ids.size(); ++i) {
    if (leaves.ids[i] < dense) continue;
    monitor.check();
    for (const std::uint32_t point : regions_.points_in(leaves.ids[i])) add_to(point, leaves.probabilities[i], leaf_values + i * functions);
  }
  for (std::size_t point = 0; point < leaves.points.size(); ++point) {
    add_to(point, leaves.points[point], single_values + points.sets[point] * functions);
  }
  return result;
}

class RatioRecursion::Drawing : public DrawnTogether {
 public:
  Drawing(const RatioRecursion& recursion, std::uint64_t seed, std::int64_t first_stream, std::int64_t draws)
      : DrawnTogether(recursion.regions_, seed, first_stream, draws), recursion_(recursion) {}

  // The first `whole` draws are a single leaf and all others are not; negative: as chance has it.
  Draws run(std::int64_t whole, Monitor& monitor) {
    const Ref root = regions_.settle(regions_.root());
    const std::int64_t draws = static_cast<std::int64_t>(drawn_.size()), first = std::clamp<std::int64_t>(whole, 0, draws);
    for (std::int64_t draw = 0; draw < first; ++draw) leaf(root, static_cast<std::int32_t>(draw));
    std::vector<std::int32_t> others(draws - first);
    std::iota(others.begin(), others.end(), static_cast<std::int32_t>(first));
    if (!others.empty()) descend(root, 0, others, whole < 0, monitor);
    return {joined(monitor), std::move(open_leaves_)};
  }

 private:
  void descend(Ref ref, int depth, const std::vector<std::int32_t>& group, bool may_stop, Monitor& monitor) {
    ref = regions_.settle(ref);
    std::vector<Half> options;
    if (ref.id >= 0) recursion_.halves(ref.id, depth, options);
    if (options.empty()) {
      for (const std::int32_t draw : group) leaf(ref, draw);
      return;
    }
    monitor.check();
    const Scaled phi = recursion_.phi_[ref.id];
    const double share = (1.0 - recursion_.stop_) / static_cast<double>(options.size());
    std::vector<double> cumulative;
    double sum = 0.0;
    for (const Half& half : options) cumulative.push_back(sum += share * ratio(half.product, phi));
    if (may_stop) sum += recursion_.stop_ * ratio(recursion_.leaf(regions_.counts(ref.id), regions_.total(ref.id)), phi);
    const auto last = static_cast<std::ptrdiff_t>(options.size()) - (may_stop ? 0 : 1);  // rounding must not make a leaf
    std::vector<std::vector<std::int32_t>> chosen(options.size());
    for (const std::int32_t draw : group) {
      const double mark = random_[draw].uniform() * sum;
      const auto at = std::min(last, std::upper_bound(cumulative.begin(), cumulative.end(), mark) - cumulative.begin());
      if (at == static_cast<std::ptrdiff_t>(options.size())) {
        leaf(ref, draw);
      } else {
        drawn_[draw].splits.push_back(static_cast<std::int16_t>(options[at].column));
        chosen[at].push_back(draw);
      }
    }
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (chosen[i].empty()) continue;
      descend(options[i].lower, depth + 1, chosen[i], true, monitor);
      descend(options[i].upper, depth + 1, chosen[i], true, monitor);
    }
  }

  const RatioRecursion& recursion_;
};

RatioRecursion::Draws RatioRecursion::draw(std::int64_t draws, std::uint64_t seed, int threads, std::int64_t whole,
                                           Monitor& monitor) const {
  check_current();
  const std::int64_t block = DrawnTogether::block(draws, threads);
  std::vector<Draws> parts((draws + block - 1) / block);
  monitor.parallel(parts.size(), threads, [&](std::size_t task) {
    const std::int64_t from = task * block, to = std::min(draws, from + block);
    const std::int64_t whole_here = whole < 0 ? whole : std::max<std::int64_t>(whole - from, 0);
    parts[task] = Drawing(*this, seed, from, to - from).run(whole_here, monitor);
    monitor.check(static_cast<double>(to - from));
  });
  Draws all;
  std::vector<Partitions> drawn;
  for (Draws& part : parts) {
    drawn.push_back(std::move(part.partitions));
    all.open_leaves.insert(all.open_leaves.end(), part.open_leaves.begin(), part.open_leaves.end());
  }
  all.partitions = Partitions::joined(drawn, threads, monitor);
  return all;
}

std::vector<double> RatioRecursion::split_log_odds(const std::vector<std::int64_t>& ids) const {
  check_current();
  std::vector<double> result;
  std::vector<Half> found;
  for (const std::int64_t id : ids) {
    halves(id, regions_.depth(id), found);
    double sum = 0.0;
    for (const Half& half : found) sum += ratio(half.product, phi_[id]);
    const double split = sum * (1.0 - stop_) / static_cast<double>(std::max<std::size_t>(found.size(), 1));
    result.push_back(std::log(split) - std::log(stop_ * ratio(leaf(regions_.counts(id), regions_.total(id)), phi_[id])));
  }
  return result;
}

// Regions may have been grown, or points relabelled, since the last pass.
void RatioRecursion::check_current() const {
  if (phi_.size() != static_cast<std::size_t>(regions_.size())) throw std::logic_error("regions have changed: run up() again");
}

}  // namespace cobpm
