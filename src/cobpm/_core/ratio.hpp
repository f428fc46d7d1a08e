// The exact recursion of the ratio model: which set a point belongs to, given where it lies.
//
// With shares π_s = N_s/N, a leaf with counts n_s gives its labels the probability
//     L = mean_k Γ(A_k)/Γ(A_k+n) Π_s Γ(A_k π_s+n_s)/Γ(A_k π_s),
// and a region sums over everything that can be done inside it:
//     Φ = stop·L + (1−stop)/d' · Σ_columns Φ(lower)·Φ(upper),     Φ = L where there is nothing to split.
// Held is φ = Φ / Π_s π_s^{n_s}: one for regions without points or with a single one, so that these need not be visited. Halves multiply
// as before, and φ lies between n^{−(S−1)/2} or so and Π_s π_s^{−n_s}: of many sets or many points, neither fits into a double. So doubles near
// one are held, with a power of two beside them.
#pragma once

#include <cstdint>
#include <vector>

#include "monitor.hpp"
#include "partitions.hpp"
#include "regions.hpp"

namespace cobpm {

class RatioRecursion {
 public:
  RatioRecursion(Regions& regions, std::vector<double> concentrations, double stop);

  // Gives the points other sets; up() must follow.
  void relabel(const std::uint16_t* sets, int threads, Monitor& monitor);

  double up(int threads, Monitor& monitor);  // log Φ of the whole space

  // What up() would say with the labels permuted at random, for that many permutations. Permutation b depends on the seed and b alone, so it
  // is the same one for all recursions over as many points. Labels stay as they are.
  std::vector<double> permuted(std::uint64_t seed, std::int64_t permutations, int threads, Monitor& monitor) const;

  // The same for labels that the caller drew: how many of each point are of each set but the last, [block][point][set·kLanes + lane]. Sets must
  // have as many points in all as they have now.
  static constexpr int kLanes = 8;  // permutations in a block
  std::vector<double> given(const std::uint32_t* drawn, std::int64_t blocks, int threads, Monitor& monitor) const;

  // Probabilities that regions are leaves, in the order in which regions are reached from above. A region that is reached with a probability
  // below `least` counts as a leaf.
  struct Leaves {
    std::vector<std::int64_t> ids;
    std::vector<double> probabilities;
    std::vector<double> points;  // that a point has a leaf for itself which is no stored region; empty if there are none
    double empty = 0.0;          // expected number of leaves without points that are no stored regions
  };
  Leaves leaves(double least, Monitor& monitor) const;

  // E[g(leaf that holds the point)] for every point and each of M functions g, given as tables: a row per leaf found, and a row per set for
  // leaves with a single point that are no stored regions.
  std::vector<double> at_points(const Leaves& leaves, const double* leaf_values, const double* single_values, int functions,
                                int threads, Monitor& monitor) const;

  struct Draws {
    Partitions partitions;
    std::vector<std::int64_t> open_leaves;  // leaves with two points or more whose children are unknown, as often as drawn
  };
  // Partitions, of which the first `whole` are a single leaf and all others cut the root if it can be; negative: as chance has it.
  Draws draw(std::int64_t draws, std::uint64_t seed, int threads, std::int64_t whole, Monitor& monitor) const;

  // The log-odds that each region is split rather than left whole, once it is reached.
  std::vector<double> split_log_odds(const std::vector<std::int64_t>& ids) const;

 private:
  class Drawing;
  struct Scaled {
    double value = 1.0;
    std::int64_t exponent = 0;  // of two, a multiple of kStep
  };
  struct Half {
    int column;
    Ref lower, upper;
    Scaled product;
  };

  void check_current() const;
  void permuted_block(const std::uint16_t* labels, const std::uint32_t* drawn, const std::vector<std::uint32_t>& places, double* out,
                      Monitor& monitor) const;
  std::vector<std::uint32_t> places(int threads, Monitor& monitor) const;
  void prepare();
  Scaled leaf(const std::uint32_t* counts, std::uint32_t total) const;
  Scaled weigh(const std::uint32_t* counts, std::uint32_t total) const;
  Scaled phi(const Ref& ref) const { return ref.id >= 0 ? phi_[ref.id] : Scaled{}; }
  void halves(std::int64_t id, int depth, std::vector<Half>& found) const;
  double log_rising(double from, std::uint32_t steps) const;
  static void add(Scaled& sum, Scaled more);
  static void settle(Scaled& sum);
  static double shifted(double value, std::int64_t exponent);
  static double ratio(Scaled above, Scaled below);
  static Scaled product(Scaled a, Scaled b) { return {a.value * b.value, a.exponent + b.exponent}; }

  Regions& regions_;
  std::vector<double> concentrations_;
  double stop_;
  std::vector<double> shares_;
  double log_null_ = 0.0;                         // log Π_s π_s^{N_s}
  std::vector<std::vector<double>> set_tables_;   // [k·S + set][n]: lnΓ(A π+n) − lnΓ(A π) − n ln π
  std::vector<std::vector<double>> all_tables_;   // [k][n]: lnΓ(A+n) − lnΓ(A)
  std::uint32_t few_ = 0;                         // leaves with fewer points of each set than this are looked up
  std::vector<Scaled> few_leaves_;                // [Σ_s n_s·few^s]
  std::vector<Scaled> phi_;
};

}  // namespace cobpm
