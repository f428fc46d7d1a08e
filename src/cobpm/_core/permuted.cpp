// The recursion of the ratio model for many permutations of the labels, several at a time.
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

constexpr int kLanes = 8;                         // permutations in a block
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
void RatioRecursion::permuted_block(std::uint64_t seed, std::uint64_t first, const std::vector<std::uint32_t>& places, double* out,
                                    Monitor& monitor) const {
  const Points& points = regions_.points();
  const int d = points.d, base = regions_.base_depth();
  const int kept = points.sets_count - 1;  // counts of the last set are what is left of the total
  const std::int64_t size = regions_.size();
  const std::vector<std::uint16_t> labels = shuffled(points, seed, first);
  std::vector<std::uint32_t> counts(size * kept * kLanes, 0);
  std::vector<double> phi(size * kLanes, 1.0);
  std::vector<Regions::Halving> halvings(d);
  std::vector<std::uint32_t> row(points.sets_count);
  for (int depth = base; depth >= 0; --depth) {
    const std::int64_t start = regions_.depth_start(depth), cells = std::int64_t{1} << depth;
    const std::int64_t vectors = (regions_.depth_start(depth + 1) - start) >> depth;
    const bool inner = depth < base && d > 0;
    const double split = inner ? (1.0 - stop_) / d : 0.0, whole = inner ? stop_ : 1.0;
    for (std::int64_t vector = 0; vector < vectors; ++vector) {
      monitor.check();
      if (!inner) {
        for (std::size_t point = 0; point < points.n; ++point) {
          const std::int64_t id = places.empty() ? regions_.cell_of(point, depth, vector) : places[vector * points.n + point];
          std::uint32_t* count = &counts[id * kept * kLanes];
          const std::uint16_t* label = &labels[point * kLanes];
          for (int set = 0; set < kept; ++set) {
            for (int lane = 0; lane < kLanes; ++lane) count[set * kLanes + lane] += label[lane] == set;
          }
        }
      } else {
        for (int column = 0; column < d; ++column) halvings[column] = regions_.halving(depth, vector, column);
      }
      for (std::int64_t cell = 0; cell < cells; ++cell) {
        const std::int64_t id = start + (vector << depth) + cell;
        const std::uint32_t total = regions_.total(id);
        if (total == 0) continue;
        std::uint32_t* count = &counts[id * kept * kLanes];
        double sum[kLanes] = {};
        if (inner) {
          const std::int64_t half = halvings[d - 1].lower(cell);
          const std::uint32_t* lower = &counts[half * kept * kLanes];
          const std::uint32_t* upper = lower + halvings[d - 1].upper_offset() * kept * kLanes;
          for (int i = 0; i < kept * kLanes; ++i) count[i] = lower[i] + upper[i];
        }
        if (total == 1) continue;
        if (inner) {
          for (const Regions::Halving& halving : halvings) {
            const double* lower = &phi[halving.lower(cell) * kLanes];
            const double* upper = lower + halving.upper_offset() * kLanes;
            for (int lane = 0; lane < kLanes; ++lane) sum[lane] += lower[lane] * upper[lane];
          }
        }
        double* here = &phi[id * kLanes];
        for (int lane = 0; lane < kLanes; ++lane) {
          row[kept] = total;
          for (int set = 0; set < kept; ++set) row[kept] -= row[set] = count[set * kLanes + lane];
          const Scaled own = leaf(row.data(), total);
          const double value = own.exponent == 0 ? own.value : std::ldexp(own.value, own.exponent);
          here[lane] = split * sum[lane] + whole * value;
        }
      }
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) out[lane] = std::log(phi[lane]) + log_null_;
}

std::vector<double> RatioRecursion::permuted(std::uint64_t seed, std::int64_t permutations, int threads, Monitor& monitor) const {
  if (permutations < 0) throw std::invalid_argument("the number of permutations must not be negative");
  if (regions_.points().weights || regions_.points().resolution) throw std::logic_error("only points that count once can be permuted");
  const int base = regions_.base_depth();
  const std::int64_t dense = regions_.depth_start(base + 1), vectors = (dense - regions_.depth_start(base)) >> base;
  if (regions_.size() != dense) throw std::logic_error("regions that were grown cannot be permuted");
  const std::size_t n = regions_.points().n;
  std::vector<std::uint32_t> places;  // [vector·n + point]: the deepest regions that points lie in
  if (vectors * n <= kMostPlaces && dense <= UINT32_MAX) {
    places.resize(vectors * n);
    monitor.parallel(vectors, threads, [&](std::size_t vector) {
      for (std::size_t point = 0; point < n; ++point) {
        places[vector * n + point] = static_cast<std::uint32_t>(regions_.cell_of(point, base, vector));
      }
    });
  }
  const std::int64_t blocks = (permutations + kLanes - 1) / kLanes;
  std::vector<double> result(blocks * kLanes);
  monitor.parallel(blocks, threads, [&](std::size_t block) {
    permuted_block(seed, block * kLanes, places, &result[block * kLanes], monitor);
    monitor.check(kLanes);
  });
  result.resize(permutations);
  return result;
}

}  // namespace cobpm
