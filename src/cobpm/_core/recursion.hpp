// The exact recursion over regions.
//
// f_r[k] = (1/k!) Σ over sequences of k splits inside region r of the product of their leaf weights:
//     f_r[0] = w(r),     (k+1)·f_r[k+1] = Σ_columns Σ_i f_lower[i]·f_upper[k−i].
// Coefficients are held as f_r[k]·τ^k = exp(scale)·value[k] with one tilt τ for all regions, close to the price of one more leaf, and
// those below kTrim of the largest are dropped at both ends: two or three stay on average, and plain doubles suffice.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "log_gamma.hpp"
#include "monitor.hpp"
#include "partitions.hpp"
#include "regions.hpp"

namespace cobpm {

constexpr double kTrim = 1e-20;

struct Series {
  double scale = 0.0;
  const double* value = nullptr;
  std::int32_t first = 0;  // k of value[0]
  std::int32_t size = 0;
};

class Recursion {
 public:
  Recursion(Regions& regions, LogGamma log_gamma);

  void up(double log_tilt, int threads, Monitor& monitor);
  Series root() const { return series(regions_.root(), 0); }

  struct Draws {
    Partitions partitions;
    std::vector<std::int64_t> splits_at_depth;  // of regions with two points or more, in all draws together
    std::vector<std::int64_t> open_leaves;      // ids of leaves with two points or more whose children are unknown, as often as drawn
  };
  // Independent draws; cumulative[i] is P(at most first+i splits).
  Draws draw(const std::vector<double>& cumulative, std::int32_t first, std::int64_t draws, std::uint64_t seed, int threads,
             Monitor& monitor) const;

  // E[Σ_leaves g | k splits] for each k of the root's series and each of M functions g, given as tables: a row per region, one row for an
  // empty region and a row per set for a region with a single point. Runs the recursion on dual numbers w·(1 + ε g).
  std::vector<double> expect(const double* region_values, const double* empty_values, const double* single_values, int functions,
                             int threads, Monitor& monitor) const;

  // One number per id: the log-odds that the region is split at all rather than left whole, at the current tilt.
  std::vector<double> split_log_odds(const std::vector<std::int64_t>& ids) const;

  double log_weight(std::int64_t id, int depth) const;

 private:
  class Drawing;
  class Pool;

  void check_current() const;
  Series series(const Ref& ref, int depth) const;
  template <class Visit>
  void for_regions_upward(Pool& pool, int threads, Monitor& monitor, Visit visit) const;

  Regions& regions_;
  LogGamma log_gamma_;
  double log_empty_ = 0.0;  // log weight of a region without points
  double log_tilt_ = 0.0;
  std::vector<double> empty_values_, single_values_;
  std::vector<Series> series_;  // per region, the sparse ones of the dense part too
  std::shared_ptr<Pool> pool_;
};

}  // namespace cobpm
