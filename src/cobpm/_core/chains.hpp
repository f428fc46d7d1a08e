// Markov chains over partitions: the paper's, which can only undo its last split, and one that can undo any cherry.
//
// All of them propose to split (or to undo) with probability ½ each, from a partition of l leaves. With ρ(a) = w(lower)·w(upper)/w(r) for
// halving leaf r along a column, Z = Σ ρ over all l·d candidates and price(l) = e^−σ Π_s Γ(N_s+δl)/Γ(N_s+δ(l+1)):
//   guided   proposes a with probability ρ(a)/Z, so that the acceptance ratio is Z·price(l) whatever a is;
//   uniform  proposes each candidate with probability 1/(l·d): the ratio is l·d·ρ(a)·price(l);
//   cherry   proposes as guided and undoes the split that comes last in a fresh, uniformly drawn order of the tree's splits.
//            The state is then the tree, its orders summed over, and the ratio that of guided. One step in kSwapEvery it tries instead to
//            exchange a split with the splits of its two halves, where both are along one column: the leaves stay, early splits change.
// From l = 1 there is nothing to undo, so that a split is proposed surely: a factor ½ on the way up and 2 on the way back.
#pragma once

#include <cstdint>
#include <vector>

#include "log_gamma.hpp"
#include "monitor.hpp"
#include "random.hpp"
#include "recursion.hpp"
#include "regions.hpp"

namespace cobpm {

constexpr int kSwapEvery = 8;  // a power of two

enum class Kernel { guided, uniform, cherry };

// A non-negative number whose exponent may be far outside a double's: value·2^(512·block).
struct Wide {
  double value = 0.0;
  std::int32_t block = INT32_MIN / 2;
  static Wide from_log(double log);
  double log() const;
};

// Sums of leaf weights along a binary tree, so that changing one weight or drawing by weight takes log l steps.
class SumTree {
 public:
  void set(std::size_t slot, Wide weight);
  void grow(std::size_t slots);
  const Wide& total() const { return node_[1]; }
  const Wide& weight(std::size_t slot) const { return node_[capacity_ + slot]; }
  std::size_t draw(double uniform) const;

 private:
  std::size_t capacity_ = 1;
  std::vector<Wide> node_ = std::vector<Wide>(2);
};

class Chain {
 public:
  // log_price[l] for l = 0 (unused), 1, 2, …; the chain refuses to grow past its end.
  Chain(Regions& regions, LogGamma log_gamma, const std::vector<double>& log_price, Kernel kernel, Random random);

  void reset(Random random);                                      // back to a single leaf
  void start_from(const std::int16_t* splits, Monitor& monitor);  // from a single leaf to a partition in preorder
  void step();
  void write(Partitions& out) const;
  std::int64_t leaves() const { return static_cast<std::int64_t>(slots_.size()); }
  std::int64_t accepted() const { return accepted_; }

  // For inspection: every partition that the next step may lead to, in preorder, with its probability.
  struct Move {
    std::vector<std::int16_t> splits;
    double probability;
  };
  std::vector<Move> moves();
  void split(std::size_t slot, int column);

 private:
  struct Node {
    Ref ref;
    std::int32_t parent = -1, lower = -1, upper = -1;
    std::int32_t column = -1;  // −1: a leaf
    std::int32_t inner = 0;    // splits in its subtree
    std::int32_t slot = -1;
    std::int32_t depth = 0;
  };
  struct Candidates {
    Wide weight;            // Σ over columns of ρ
    std::int64_t at = -1;   // where the running sums of ρ/Σρ over columns begin
  };

  Candidates& candidates(std::int64_t id);
  Wide weight_of(const Node& node);
  double log_rho(const Node& node, int column);
  int draw_column(const Node& node);
  void halves(const Node& node, int column, Ref& lower, Ref& upper) const;
  double ratio(const Wide& total, std::size_t leaves) const;
  std::int32_t make_node(const Ref& ref, std::int32_t parent, std::int32_t depth);
  void place(std::int32_t node, std::size_t slot);
  void join(std::int32_t node);
  std::int32_t last_split();
  bool can_swap(std::int32_t node) const;
  double swap_ratio(std::int32_t node) const;
  void swap(std::int32_t node);
  double uniform_ratio(std::size_t slot, int column);
  double join_ratio(std::int32_t node);
  double log_weight(const Ref& ref, int depth) const;
  void refresh();

  Regions& regions_;
  LogGamma log_gamma_;
  std::vector<Wide> price_;              // by the number of leaves before the split
  Kernel kernel_;
  Random random_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> slots_;      // leaves, by slot
  std::vector<std::int32_t> history_;    // the splits in order, for the kernels that undo the last
  std::vector<double> undo_;             // acceptance ratio of undoing each of them
  double split_ratio_ = 0.0;             // acceptance ratio of the guided proposal from here
  SumTree sums_;
  std::vector<Candidates> candidates_;   // per region
  std::vector<double> shares_, log_rho_;
  Wide weight_empty_, weight_single_;
  std::int64_t accepted_ = 0;
};

struct ChainPlan {
  std::int64_t burn_in, draws, thin;
};

Partitions run_chain(Chain& chain, const ChainPlan& plan, Monitor& monitor);

}  // namespace cobpm
