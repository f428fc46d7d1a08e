// The recursion of the ratio model for many permutations of the labels, several at a time: drawn here, or counts of points that were drawn by the
// caller, where a point stands for many.
//
// Regions and their totals do not depend on the labels, so all permutations of a block walk over the regions together: what is read per region
// serves all, and the arithmetic runs over neighbouring doubles.
#include <cmath>
#include <stdexcept>
#include <utility>

#include "random.hpp"
#include "ratio.hpp"

namespace cobpm {
namespace {

constexpr int kLanes = RatioRecursion::kLanes;
constexpr std::size_t kMostPlaces = 1ULL << 25;  // of points in level vectors, that are remembered from block to block

// Labels of a block of permutations, [point·kLanes + lane]. A permutation depends on the seed and its number, not on the regions.
std::vector<std::uint16_t> shuffled(const Points& points, std::uint64_t seed, std::uint64_t first) {
  std::vector<std::uint16_t> labels(points.n * kLanes), one;
  for (int lane = 0; lane < kLanes; ++lane) {
    Random random(seed, first + lane);
    one.assign(points.sets, points.sets + points.n);
    for (std::size_t i = points.n; i > 1; --i) std::swap(one[i - 1], one[random.below(static_cast<std::uint32_t>(i))]);
    for (std::size_t i = 0; i < points.n; ++i) labels[i * kLanes + lane] = one[i];
  }
  return labels;
}

}  // namespace

// Held are plain doubles, without powers of two beside them: the mean of φ over labels drawn at random is one, so one that overflows has a
// probability below 1e-290. Were it to happen, the result would be infinite.
void RatioRecursion::permuted_block(const std::uint16_t* labels, const std::uint32_t* drawn, const std::vector<std::uint32_t>& places, double* out,
                                    Monitor& monitor) const {
  const Points& points = regions_.points();
  const int d = points.d, base = regions_.base_depth();
  const int kept = points.sets_count - 1;  // counts of the last set are what is left of the total
  const std::int64_t size = regions_.size();
  std::vector<std::uint32_t> counts(size * kept * kLanes, 0);
  std::vector<double> phi(size * kLanes, 1.0);
  std::vector<Regions::Halving> halvings;  // those that the grid is fine enough for
  std::vector<std::uint32_t> row(points.sets_count);
  for (int depth = base; depth >= 0; --depth) {
    const std::int64_t start = regions_.depth_start(depth), cells = std::int64_t{1} << depth;
    const std::int64_t vectors = (regions_.depth_start(depth + 1) - start) >> depth;
    const bool inner = depth < base && d > 0;
    for (std::int64_t vector = 0; vector < vectors; ++vector) {
      monitor.check();
      halvings.clear();
      if (!inner) {
        for (std::size_t point = 0; point < points.n; ++point) {
          const std::int64_t id = places.empty() ? regions_.cell_of(point, depth, vector) : places[vector * points.n + point];
          std::uint32_t* count = &counts[id * kept * kLanes];
          if (drawn) {
            const std::uint32_t* more = drawn + point * kept * kLanes;
            for (int i = 0; i < kept * kLanes; ++i) count[i] += more[i];
            continue;
          }
          const std::uint16_t* label = &labels[point * kLanes];
          for (int set = 0; set < kept; ++set) {
            for (int lane = 0; lane < kLanes; ++lane) count[set * kLanes + lane] += label[lane] == set;
          }
        }
      } else {
        for (int column = 0; column < d; ++column) {
          if (regions_.level(depth, vector, column) < points.finest(column)) halvings.push_back(regions_.halving(depth, vector, column));
        }
      }
      const Regions::Halving any = inner ? regions_.halving(depth, vector, d - 1) : Regions::Halving{};
      const double whole = halvings.empty() ? 1.0 : stop_, split = halvings.empty() ? 0.0 : (1.0 - stop_) / static_cast<double>(halvings.size());
      for (std::int64_t cell = 0; cell < cells; ++cell) {
        const std::int64_t id = start + (vector << depth) + cell;
        const std::uint32_t total = regions_.total(id);
        if (total == 0) continue;
        std::uint32_t* count = &counts[id * kept * kLanes];
        double sum[kLanes] = {};
        if (inner) {
          const std::uint32_t* lower = &counts[any.lower(cell) * kept * kLanes];
          const std::uint32_t* upper = lower + any.upper_offset() * kept * kLanes;
          for (int i = 0; i < kept * kLanes; ++i) count[i] = lower[i] + upper[i];
        }
        if (total == 1) continue;
        for (const Regions::Halving& halving : halvings) {
          const double* lower = &phi[halving.lower(cell) * kLanes];
          const double* upper = lower + halving.upper_offset() * kLanes;
          for (int lane = 0; lane < kLanes; ++lane) sum[lane] += lower[lane] * upper[lane];
        }
        double* here = &phi[id * kLanes];
        for (int lane = 0; lane < kLanes; ++lane) {
          row[kept] = total;
          for (int set = 0; set < kept; ++set) row[kept] -= row[set] = count[set * kLanes + lane];
          const Scaled own = leaf(row.data(), total);
          here[lane] = split * sum[lane] + whole * shifted(own.value, own.exponent);
        }
      }
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) out[lane] = std::log(phi[lane]) + log_null_;
}

// The deepest regions that points lie in, [vector·n + point]; none if they are too many to remember.
std::vector<std::uint32_t> RatioRecursion::places(int threads, Monitor& monitor) const {
  const int base = regions_.base_depth();
  const std::int64_t dense = regions_.depth_start(base + 1), vectors = (dense - regions_.depth_start(base)) >> base;
  if (regions_.size() != dense) throw std::logic_error("regions that were grown cannot be permuted");
  const std::size_t n = regions_.points().n;
  std::vector<std::uint32_t> found;
  if (vectors * n <= kMostPlaces && dense <= UINT32_MAX) {
    found.resize(vectors * n);
    monitor.parallel(vectors, threads, [&](std::size_t vector) {
      for (std::size_t point = 0; point < n; ++point) {
        found[vector * n + point] = static_cast<std::uint32_t>(regions_.cell_of(point, base, vector));
      }
    });
  }
  return found;
}

std::vector<double> RatioRecursion::permuted(std::uint64_t seed, std::int64_t permutations, int threads, Monitor& monitor) const {
  if (permutations < 0) throw std::invalid_argument("the number of permutations must not be negative");
  if (regions_.points().weights) throw std::logic_error("points that stand for many need counts that were drawn for them");
  const std::vector<std::uint32_t> at = places(threads, monitor);
  const std::int64_t blocks = (permutations + kLanes - 1) / kLanes;
  std::vector<double> result(blocks * kLanes);
  monitor.parallel(blocks, threads, [&](std::size_t block) {
    const std::vector<std::uint16_t> labels = shuffled(regions_.points(), seed, block * kLanes);
    permuted_block(labels.data(), nullptr, at, &result[block * kLanes], monitor);
    monitor.check(kLanes);
  });
  result.resize(permutations);
  return result;
}

std::vector<double> RatioRecursion::given(const std::uint32_t* drawn, std::int64_t blocks, int threads, Monitor& monitor) const {
  const std::vector<std::uint32_t> at = places(threads, monitor);
  const std::size_t stride = regions_.points().n * (regions_.points().sets_count - 1) * kLanes;
  std::vector<double> result(blocks * kLanes);
  monitor.parallel(blocks, threads, [&](std::size_t block) {
    permuted_block(nullptr, drawn + block * stride, at, &result[block * kLanes], monitor);
    monitor.check(kLanes);
  });
  return result;
}

}  // namespace cobpm
