#include "recursion.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <stdexcept>

namespace cobpm {
namespace {

constexpr double kLog2 = 0.69314718055994530942;
constexpr double kNegligible = -60.0;  // log of what is not worth adding: below kTrim even after a division by k

}  // namespace

// Memory for the coefficients of all regions, handed out in slabs so that threads seldom meet.
class Recursion::Pool {
 public:
  class Slab {
   public:
    explicit Slab(Pool& pool) : pool_(pool) {}
    double* take(std::size_t size) {
      if (size > left_) {
        left_ = std::max<std::size_t>(size, 1 << 14);
        at_ = pool_.allocate(left_);
      }
      double* taken = at_;
      at_ += size;
      left_ -= size;
      return taken;
    }

   private:
    Pool& pool_;
    double* at_ = nullptr;
    std::size_t left_ = 0;
  };

 private:
  double* allocate(std::size_t size) {
    const std::lock_guard<std::mutex> guard(lock_);
    slabs_.emplace_back(new double[size]);
    return slabs_.back().get();
  }
  std::mutex lock_;
  std::vector<std::unique_ptr<double[]>> slabs_;
};

Recursion::Recursion(Regions& regions, LogGamma log_gamma)
    : regions_(regions), log_gamma_(std::move(log_gamma)), log_empty_(regions.points().sets_count * log_gamma_[0]) {}

// log w(r) = Σ_s lnΓ(δ+n_s) + depth·ln2·Σ_s n_s
double Recursion::log_weight(std::int64_t id, int depth) const {
  const std::uint32_t* counts = regions_.counts(id);
  double result = depth * kLog2 * regions_.total(id);
  for (int set = 0; set < regions_.points().sets_count; ++set) result += log_gamma_[counts[set]];
  return result;
}

// Regions without points: f[k] ∝ ρ^k; with one point: (k+1)·ρ^k, where ρ = d·τ·(weight of an empty region).
Series Recursion::series(const Ref& ref, int depth) const {
  if (ref.id >= 0) return series_[ref.id];
  if (ref.id == Ref::kEmpty) return {log_empty_, empty_values_.data(), 0, static_cast<std::int32_t>(empty_values_.size())};
  const double scale = log_empty_ - log_gamma_[0] + log_gamma_[1] + depth * kLog2;
  return {scale, single_values_.data(), 0, static_cast<std::int32_t>(single_values_.size())};
}

// Visits every region after its children: visit(id, depth, slab).
template <class Visit>
void Recursion::for_regions_upward(Pool& pool, int threads, Monitor& monitor, Visit visit) const {
  regions_.upward(threads, monitor, [&](int depth, std::size_t size, auto id_at) {
    Pool::Slab slab(pool);
    for (std::size_t i = 0; i < size; ++i) visit(id_at(i), depth, slab);
  });
}

void Recursion::up(double log_tilt, int threads, Monitor& monitor) {
  const int d = regions_.points().d;
  log_tilt_ = log_tilt;
  const double rho = d == 0 ? 0.0 : std::exp(std::log(d) + log_empty_ + log_tilt);
  if (!(rho < 1.0)) throw std::invalid_argument("the tilt makes the series of an empty region diverge");
  empty_values_.assign(1, 1.0);
  single_values_.assign(1, 1.0);
  for (double power = rho; power > kTrim / (single_values_.size() + 1.0); power *= rho) {
    empty_values_.push_back(power);
    single_values_.push_back((single_values_.size() + 1) * power);
  }
  pool_ = std::make_shared<Pool>();
  series_.assign(regions_.size(), Series{});
  double* const unit = Pool::Slab(*pool_).take(1);
  *unit = 1.0;
  for_regions_upward(*pool_, threads, monitor, [&](std::int64_t id, int depth, Pool::Slab& slab) {
    if (regions_.total(id) < 2) {
      series_[id] = series(regions_.settle({id}), depth);
      return;
    }
    thread_local std::vector<double> sum;
    const double whole = log_weight(id, depth);
    if (!regions_.expanded(id)) {
      series_[id] = {whole, unit, 0, 1};
      return;
    }
    struct Product {
      Series lower, upper;
      double scale;
    };
    thread_local std::vector<Product> products;
    products.clear();
    double top = whole;
    std::int32_t last = 0;
    for (int column = 0; column < d; ++column) {
      Ref lower, upper;
      regions_.children(id, depth, column, lower, upper);
      if (lower.id == Ref::kNone) continue;
      Product product{series(lower, depth + 1), series(upper, depth + 1), 0.0};
      product.scale = log_tilt_ + product.lower.scale + product.upper.scale;
      if (product.scale < top + kNegligible) continue;
      top = std::max(top, product.scale);
      last = std::max(last, product.lower.first + product.lower.size + product.upper.first + product.upper.size - 1);
      products.push_back(product);
    }
    sum.assign(last + 1, 0.0);
    sum[0] = std::exp(whole - top);
    for (const Product& product : products) {
      if (product.scale < top + kNegligible) continue;
      const double factor = std::exp(product.scale - top);
      const Series &a = product.lower, &b = product.upper;
      double* out = sum.data() + a.first + b.first + 1;
      for (std::int32_t i = 0; i < a.size; ++i) {
        const double left = factor * a.value[i];
        for (std::int32_t j = 0; j < b.size; ++j) out[i + j] += left * b.value[j];
      }
    }
    double largest = sum[0];
    for (std::int32_t k = 1; k <= last; ++k) largest = std::max(largest, sum[k] /= k);
    const double floor = kTrim * largest;
    std::int32_t from = 0, to = last;
    while (sum[from] < floor) ++from;
    while (sum[to] < floor) --to;
    double* value = slab.take(to - from + 1);
    for (std::int32_t k = from; k <= to; ++k) value[k - from] = sum[k] / largest;
    series_[id] = {top + std::log(largest), value, from, to - from + 1};
  });
}

// Partitions, drawn from the root down: with k splits left in a region, column and share of the lower half (j, i) come with probability
// ∝ f_lower[i]·f_upper[k−1−i]. Many draws go down together and part where they choose differently, so that what is read of a region serves
// all draws that reach it. Each draw has a random stream of its own and uses it in the order of its own nodes: it would come out the same
// by itself.
class Recursion::Drawing : public DrawnTogether {
 public:
  Drawing(const Recursion& recursion, std::uint64_t seed, std::int64_t first_stream, std::int64_t draws)
      : DrawnTogether(recursion.regions_, seed, first_stream, draws), recursion_(recursion) {}

  Random& random(std::int64_t draw) { return random_[draw]; }

  void run(const std::vector<std::int32_t>& splits, Monitor& monitor) {
    monitor_ = &monitor;
    Group all;
    for (std::size_t i = 0; i < splits.size(); ++i) all.push_back({static_cast<std::int32_t>(i), splits[i]});
    descend(regions_.root(), 0, all);
  }

  Draws result() { return {joined(*monitor_), std::move(splits_at_depth_), std::move(open_leaves_)}; }

 private:
  struct Member {
    std::int32_t draw, splits;  // splits left in the region
  };
  using Group = std::vector<Member>;

  // Depth of recursion is the depth of the partition, which is bounded by kBits·d, plus the splits of sparse regions, which are few.
  void descend(Ref ref, int depth, Group& group) {
    ref = regions_.settle(ref);
    const auto leaves = std::stable_partition(group.begin(), group.end(), [](const Member& member) { return member.splits > 0; });
    for (auto member = leaves; member != group.end(); ++member) leaf(ref, member->draw);
    group.erase(leaves, group.end());
    if (group.empty()) return;
    if (ref.id >= 0) {
      split_region(ref, depth, group);
    } else {
      for (const Member& member : group) split_sparse(ref, member);
    }
  }

  void split_region(const Ref& ref, int depth, const Group& group) {
    monitor_->check();
    const int d = regions_.points().d;
    struct Option {
      Ref lower_ref, upper_ref;
      Series lower, upper;
      double factor = 0.0;
      Group below, above;
    };
    std::vector<Option> options(d);
    // Masses relative to the region's own scale, which bounds them from above up to a factor k/τ.
    const double base = recursion_.series_[ref.id].scale - recursion_.log_tilt_;
    for (int column = 0; column < d; ++column) {
      Option& option = options[column];
      regions_.children(ref.id, depth, column, option.lower_ref, option.upper_ref);
      if (option.lower_ref.id == Ref::kNone) continue;
      option.lower = recursion_.series(option.lower_ref, depth + 1);
      option.upper = recursion_.series(option.upper_ref, depth + 1);
      option.factor = std::exp(option.lower.scale + option.upper.scale - base);
    }
    std::vector<double> sum(d);
    for (const Member& member : group) {
      Random& random = random_[member.draw];
      const std::int32_t splits = member.splits - 1;
      double total = 0.0;
      for (int column = 0; column < d; ++column) {
        const Option& option = options[column];
        sum[column] = option.factor > 0.0 ? shares(option.lower, option.upper, splits) : 0.0;
        total += option.factor * sum[column];
      }
      double mark = random.uniform() * total;
      int column = 0, possible = -1;
      for (; column < d; ++column) {
        if (options[column].factor * sum[column] > 0.0) possible = column;
        if ((mark -= options[column].factor * sum[column]) < 0.0) break;
      }
      if (column == d) column = possible;  // rounding at the very end of the range
      if (column < 0) throw std::logic_error("a region was asked for more splits than it can hold");
      Option& chosen = options[column];
      const std::int32_t below = draw_share(chosen.lower, chosen.upper, splits, random.uniform() * sum[column]);
      drawn_[member.draw].splits.push_back(static_cast<std::int16_t>(column));
      chosen.below.push_back({member.draw, below});
      chosen.above.push_back({member.draw, splits - below});
    }
    if (splits_at_depth_.size() <= static_cast<std::size_t>(depth)) splits_at_depth_.resize(depth + 1);
    splits_at_depth_[depth] += static_cast<std::int64_t>(group.size());
    for (Option& option : options) {
      if (option.below.empty()) continue;
      descend(option.lower_ref, depth + 1, option.below);
      descend(option.upper_ref, depth + 1, option.above);
    }
  }

  // Ways to share splits between two halves: i below from `from` to `to`.
  static std::pair<std::int32_t, std::int32_t> range(const Series& lower, const Series& upper, std::int32_t splits) {
    return {std::max(lower.first, splits - (upper.first + upper.size - 1)),
            std::min(lower.first + lower.size - 1, splits - upper.first)};
  }

  static double shares(const Series& lower, const Series& upper, std::int32_t splits) {
    const auto [from, to] = range(lower, upper, splits);
    double sum = 0.0;
    for (std::int32_t i = from; i <= to; ++i) sum += lower.value[i - lower.first] * upper.value[splits - i - upper.first];
    return sum;
  }

  static std::int32_t draw_share(const Series& lower, const Series& upper, std::int32_t splits, double mark) {
    const auto [from, to] = range(lower, upper, splits);
    std::int32_t possible = from;
    for (std::int32_t i = from; i <= to; ++i) {
      const double mass = lower.value[i - lower.first] * upper.value[splits - i - upper.first];
      if (mass > 0.0) possible = i;
      if ((mark -= mass) < 0.0) break;
    }
    return possible;
  }

  // An empty region shares its splits out evenly: f[i]·f[k−1−i] is the same for all i. Beside a single point, the half that holds it gets i
  // with probability ∝ i+1. Seldom visited, so draws go alone here, with a stack of their own: there is no bound on the depth.
  void split_sparse(const Ref& start, const Member& member) {
    Partitions& out = drawn_[member.draw];
    Random& random = random_[member.draw];
    std::vector<std::pair<Ref, std::int32_t>> stack{{start, member.splits}};
    while (!stack.empty()) {
      auto [ref, splits] = stack.back();
      stack.pop_back();
      if (splits-- == 0) {
        leaf(ref, member.draw);
        continue;
      }
      const int column = static_cast<int>(random.below(regions_.points().d));
      const Ref empty{Ref::kEmpty};
      if (ref.id == Ref::kEmpty) {
        const std::int32_t below = static_cast<std::int32_t>(random.below(splits + 1));
        out.splits.push_back(static_cast<std::int16_t>(column));
        stack.push_back({empty, splits - below});
        stack.push_back({empty, below});
        continue;
      }
      // Among the pairs 0 ≤ j ≤ i ≤ splits, i stands i+1 times.
      const double pair = 0.5 * (splits + 1.0) * (splits + 2.0) * random.uniform();
      const std::int32_t own = std::clamp(static_cast<std::int32_t>((std::sqrt(8.0 * pair + 1.0) - 1.0) / 2.0), 0, splits);
      const auto [levels, indices] = box(out.splits);
      if (ref.point < 0) ref.point = find(levels, indices);
      const bool upper = regions_.points().above_middle(column, ref.point, levels[column]);
      out.splits.push_back(static_cast<std::int16_t>(column));
      stack.push_back(upper ? std::pair{ref, own} : std::pair{empty, splits - own});
      stack.push_back(upper ? std::pair{empty, splits - own} : std::pair{ref, own});
    }
  }

  // The box of the node about to be written, read back from the nodes before it.
  std::pair<std::vector<int>, std::vector<std::uint64_t>> box(const std::vector<std::int16_t>& splits) const {
    const int d = regions_.points().d;
    std::vector<int> levels(d, 0);
    std::vector<std::uint64_t> indices(d, 0);
    std::vector<std::pair<int, bool>> path;  // columns on the way down; whether the upper half is being written
    for (const std::int16_t split : splits) {
      if (split >= 0) {
        path.emplace_back(split, false);
      } else {
        while (path.back().second) path.pop_back();
        path.back().second = true;
      }
    }
    for (const auto& [column, upper] : path) {
      ++levels[column];
      indices[column] = (indices[column] << 1) | upper;
    }
    return {levels, indices};
  }

  // The only point in a box: the dense arrays count points without listing them.
  std::int64_t find(const std::vector<int>& levels, const std::vector<std::uint64_t>& indices) const {
    const Points& points = regions_.points();
    for (std::size_t point = 0; point < points.n; ++point) {
      bool inside = true;
      for (int column = 0; column < points.d && inside; ++column) {
        inside = levels[column] == 0 || points.code(column, point) >> (kBits - levels[column]) == indices[column];
      }
      if (inside) return static_cast<std::int64_t>(point);
    }
    throw std::logic_error("a region with one point holds none");
  }

  const Recursion& recursion_;
  Monitor* monitor_ = nullptr;
  std::vector<std::int64_t> splits_at_depth_;
};

Recursion::Draws Recursion::draw(const std::vector<double>& cumulative, std::int32_t first, std::int64_t draws, std::uint64_t seed,
                                 int threads, Monitor& monitor) const {
  check_current();
  const std::int64_t block = DrawnTogether::block(draws, threads);
  std::vector<Draws> parts((draws + block - 1) / block);
  monitor.parallel(parts.size(), threads, [&](std::size_t task) {
    const std::int64_t from = task * block, to = std::min(draws, from + block);
    Drawing drawing(*this, seed, from, to - from);
    std::vector<std::int32_t> splits;
    for (std::int64_t i = 0; i < to - from; ++i) {
      const double mark = drawing.random(i).uniform() * cumulative.back();
      const auto found = std::upper_bound(cumulative.begin(), cumulative.end() - 1, mark);
      splits.push_back(first + static_cast<std::int32_t>(found - cumulative.begin()));
    }
    drawing.run(splits, monitor);
    parts[task] = drawing.result();
    monitor.check(static_cast<double>(to - from));
  });
  Draws all;
  std::vector<Partitions> drawn;
  for (Draws& part : parts) drawn.push_back(std::move(part.partitions));
  all.partitions = Partitions::joined(drawn, threads, monitor);
  for (const Draws& part : parts) {
    all.open_leaves.insert(all.open_leaves.end(), part.open_leaves.begin(), part.open_leaves.end());
    if (all.splits_at_depth.size() < part.splits_at_depth.size()) all.splits_at_depth.resize(part.splits_at_depth.size());
    for (std::size_t m = 0; m < part.splits_at_depth.size(); ++m) all.splits_at_depth[m] += part.splits_at_depth[m];
  }
  return all;
}

std::vector<double> Recursion::expect(const double* region_values, const double* empty_values, const double* single_values,
                                      int functions, int threads, Monitor& monitor) const {
  check_current();
  const int d = regions_.points().d;
  // Dual parts, laid out as the series: [function·size + k − first], on the scale of the series.
  std::vector<const double*> dual(regions_.size(), nullptr);
  std::vector<double> dual_empty(functions * empty_values_.size());
  std::vector<std::vector<double>> dual_single(regions_.points().sets_count);
  for (std::size_t set = 0; set < dual_single.size(); ++set) dual_single[set].resize(functions * single_values_.size());
  for (int g = 0; g < functions; ++g) {
    const std::size_t size = empty_values_.size();
    for (std::size_t k = 0; k < size; ++k) {
      // k splits leave k+1 empty leaves, or k empty ones and the one with the point.
      dual_empty[g * size + k] = empty_values_[k] * (k + 1.0) * empty_values[g];
      for (std::size_t set = 0; set < dual_single.size(); ++set) {
        dual_single[set][g * size + k] = single_values_[k] * (k * empty_values[g] + single_values[set * functions + g]);
      }
    }
  }
  auto dual_of = [&](const Ref& ref) -> const double* {
    if (ref.id >= 0) return dual[ref.id];
    return ref.id == Ref::kEmpty ? dual_empty.data() : dual_single[ref.set].data();
  };
  Pool pool;
  for_regions_upward(pool, threads, monitor, [&](std::int64_t id, int depth, Pool::Slab& slab) {
    if (regions_.total(id) < 2) {
      dual[id] = dual_of(regions_.settle({id}));
      return;
    }
    const Series& mine = series_[id];
    double* kept = slab.take(static_cast<std::size_t>(functions) * mine.size);
    dual[id] = kept;
    if (!regions_.expanded(id)) {  // a leaf and nothing else: the series is its weight
      for (int g = 0; g < functions; ++g) kept[g] = region_values[id * functions + g];
      return;
    }
    thread_local std::vector<double> sum;
    const std::int32_t last = mine.first + mine.size - 1;
    sum.assign(functions * (last + 1), 0.0);
    for (int column = 0; column < d; ++column) {
      Ref lower, upper;
      regions_.children(id, depth, column, lower, upper);
      if (lower.id == Ref::kNone) continue;
      const Series a = series(lower, depth + 1), b = series(upper, depth + 1);
      const double scale = log_tilt_ + a.scale + b.scale - mine.scale;
      if (scale < kNegligible) continue;
      const double factor = std::exp(scale);
      const double *da = dual_of(lower), *db = dual_of(upper);
      for (int g = 0; g < functions; ++g) {
        double* out = sum.data() + g * (last + 1);
        for (std::int32_t i = 0; i < a.size; ++i) {
          const std::int32_t k0 = a.first + b.first + i + 1;
          const std::int32_t end = std::min(b.size, last + 1 - k0);
          const double value = factor * a.value[i], part = factor * da[g * a.size + i];
          for (std::int32_t j = 0; j < end; ++j) out[k0 + j] += part * b.value[j] + value * db[g * b.size + j];
        }
      }
    }
    const double whole = std::exp(log_weight(id, depth) - mine.scale);
    for (int g = 0; g < functions; ++g) {
      const double* row = sum.data() + g * (last + 1);
      for (std::int32_t k = mine.first; k <= last; ++k) {
        kept[g * mine.size + k - mine.first] = k ? row[k] / k : whole * region_values[id * functions + g];
      }
    }
  });
  const Series top = root();
  const double* found = dual_of(regions_.root());
  std::vector<double> result(static_cast<std::size_t>(top.size) * functions);
  for (int g = 0; g < functions; ++g) {
    for (std::int32_t k = 0; k < top.size; ++k) result[k * functions + g] = found[g * top.size + k] / top.value[k];
  }
  return result;
}

// Regions may have been grown since the last pass; their series are not known then.
void Recursion::check_current() const {
  if (series_.size() != static_cast<std::size_t>(regions_.size())) throw std::logic_error("regions were added: run up() again");
}

std::vector<double> Recursion::split_log_odds(const std::vector<std::int64_t>& ids) const {
  check_current();
  std::vector<double> result;
  result.reserve(ids.size());
  for (const std::int64_t id : ids) {
    const Series& mine = series_[id];
    const double whole = std::exp(log_weight(id, regions_.depth(id)) - mine.scale);
    double sum = 0.0;
    for (std::int32_t k = 0; k < mine.size; ++k) sum += mine.value[k];
    const double rest = sum - (mine.first == 0 ? mine.value[0] : 0.0);
    result.push_back(std::log(rest) - std::log(whole));
  }
  return result;
}

}  // namespace cobpm
