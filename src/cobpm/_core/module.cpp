// Python's view of the core: arrays in, arrays out, the GIL released while it works.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "chains.hpp"
#include "monitor.hpp"
#include "ratio.hpp"
#include "recursion.hpp"
#include "regions.hpp"
#include "sketch.hpp"
#include "trees.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace cobpm;

namespace {

template <class T, class... Shape>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu, Shape...>;
using Vector = nb::ndim<1>;
using Matrix = nb::ndim<2>;
using Cube = nb::ndim<3>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;
using Progress = std::optional<nb::callable>;

template <class T>
Out<T> give(std::vector<T>&& data, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(data));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Out<T>(kept->data(), shape, owner);
}

template <class T>
Out<T> give(std::vector<T>&& data) {
  const std::size_t size = data.size();
  return give(std::move(data), {size});
}

// Called from the core with the GIL released: lets Python's signal handlers run and reports progress.
Monitor::Poll poll_with(const Progress& progress) {
  // Borrowed: the caller holds the function for as long as the call lasts.
  const nb::handle report = progress ? nb::handle(*progress) : nb::handle();
  return [report](double fraction) {
    nb::gil_scoped_acquire hold;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (report.is_valid()) report(fraction);
  };
}

using Weights = std::optional<In<std::uint32_t, Vector>>;
using Resolution = std::optional<In<std::uint8_t, Vector>>;

struct Cells {
  In<std::uint64_t, Matrix> codes;
  In<std::uint16_t, Vector> sets;
  int sets_count;
  Weights weights = {};
  Resolution resolution = {};
  Points points() const {
    if (codes.shape(1) != sets.shape(0)) throw std::invalid_argument("codes and sets differ in length");
    for (std::size_t i = 0; i < sets.shape(0); ++i) {
      if (sets.data()[i] >= sets_count) throw std::invalid_argument("a point belongs to a set that does not exist");
    }
    if (weights && weights->shape(0) != sets.shape(0)) throw std::invalid_argument("weights and sets differ in length");
    for (std::size_t i = 0; weights && i < weights->shape(0); ++i) {
      if (weights->data()[i] == 0) throw std::invalid_argument("a weight is zero");
    }
    if (resolution && resolution->shape(0) != codes.shape(0)) throw std::invalid_argument("a resolution is needed for each column");
    for (std::size_t i = 0; resolution && i < resolution->shape(0); ++i) {
      if (resolution->data()[i] > kBits) throw std::invalid_argument("a resolution is finer than the grid");
    }
    return {codes.data(), sets.data(), codes.shape(1), static_cast<int>(codes.shape(0)), sets_count,
            weights ? weights->data() : nullptr, resolution ? resolution->data() : nullptr};
  }
};

nb::tuple pack(Partitions&& partitions, int sets) {
  const std::size_t leaves = partitions.counts.size() / sets;
  return nb::make_tuple(give(std::move(partitions.splits)), give(std::move(partitions.nodes)),
                        give(std::move(partitions.counts), {leaves, static_cast<std::size_t>(sets)}), give(std::move(partitions.leaves)));
}

std::vector<double> doubles(const In<double, Vector>& array) { return {array.data(), array.data() + array.shape(0)}; }

Kernel kernel_named(const std::string& name) {
  if (name == "guided") return Kernel::guided;
  if (name == "uniform") return Kernel::uniform;
  if (name == "cherry") return Kernel::cherry;
  throw std::invalid_argument("no kernel is called " + name);
}

Forest forest_of(const In<std::int16_t, Vector>& splits, const In<std::int64_t, Vector>& node_start,
                 const In<std::int64_t, Vector>& leaf_start, int d) {
  return {splits.data(), node_start.data(), leaf_start.data(), static_cast<std::int64_t>(node_start.shape(0)) - 1, d};
}

// Regions, kept together with the arrays they read.
class OnRegions {
 public:
  void expand(In<std::int64_t, Vector> ids, int threads, Progress progress) {
    Monitor monitor(poll_with(progress), 0.0);
    const std::vector<std::int64_t> wanted = known(ids);
    nb::gil_scoped_release release;
    regions_->expand(wanted, threads, monitor);
  }

  void plant(In<std::int16_t, Vector> splits, In<std::int64_t, Vector> starts, int threads, Progress progress) {
    Monitor monitor(poll_with(progress), 0.0);
    const std::vector<std::int64_t> at(starts.data(), starts.data() + starts.shape(0));
    nb::gil_scoped_release release;
    regions_->plant(splits.data(), at, threads, monitor);
  }

  // How many points the regions of the frontier hold together: what expanding them costs for each column.
  std::int64_t frontier_points() const {
    std::int64_t sum = 0;
    for (const std::int64_t id : regions_->frontier()) sum += regions_->total(id);
    return sum;
  }

  void forget_points() { regions_->forget_points(); }

  Out<std::int64_t> frontier() { return give(regions_->frontier()); }

  Out<std::uint32_t> counts() {
    const std::size_t size = regions_->size(), sets = cells_.sets_count;
    return give(std::vector<std::uint32_t>(regions_->counts(0), regions_->counts(0) + size * sets), {size, sets});
  }

  std::int64_t size() const { return regions_->size(); }
  std::size_t bytes() const { return regions_->bytes(); }

 protected:
  OnRegions(Cells cells, int base_depth, int threads, const Progress& progress) : cells_(std::move(cells)) {
    const Points points = cells_.points();
    Monitor monitor(poll_with(progress), 0.0);
    nb::gil_scoped_release release;
    regions_ = std::make_unique<Regions>(points, base_depth, threads, monitor);
  }

  std::vector<std::int64_t> known(const In<std::int64_t, Vector>& ids) const {
    for (std::size_t i = 0; i < ids.shape(0); ++i) {
      if (ids.data()[i] < 0 || ids.data()[i] >= regions_->size()) throw std::out_of_range("no such region");
    }
    return {ids.data(), ids.data() + ids.shape(0)};
  }

  Cells cells_;
  std::unique_ptr<Regions> regions_;
};

template <class T>
void bind_regions(nb::class_<T>& bound) {
  bound.def("expand", &T::expand, "ids"_a, "threads"_a, "progress"_a = nb::none())
      .def("plant", &T::plant, "splits"_a, "starts"_a, "threads"_a, "progress"_a = nb::none())
      .def("split_log_odds", &T::split_log_odds, "ids"_a)
      .def("frontier", &T::frontier)
      .def("frontier_points", &T::frontier_points)
      .def("forget_points", &T::forget_points)
      .def("counts", &T::counts)
      .def_prop_ro("size", &T::size)
      .def_prop_ro("bytes", &T::bytes);
}

// The recursion of the paper's posterior over the regions.
class Exact : public OnRegions {
 public:
  Exact(In<std::uint64_t, Matrix> codes, In<std::uint16_t, Vector> sets, int sets_count, int base_depth, In<double, Vector> log_gamma,
        int threads, Progress progress, Weights weights, Resolution resolution)
      : OnRegions({codes, sets, sets_count, weights, resolution}, base_depth, threads, progress),
        recursion_(*regions_, LogGamma(doubles(log_gamma))) {}

  nb::tuple up(double log_tilt, int threads, Progress progress) {
    Monitor monitor(poll_with(progress), static_cast<double>(regions_->size()));
    std::vector<double> log_values;
    Series root;
    {
      nb::gil_scoped_release release;
      recursion_.up(log_tilt, threads, monitor);
      root = recursion_.root();
      for (std::int32_t k = 0; k < root.size; ++k) log_values.push_back(root.scale + std::log(root.value[k]));
    }
    return nb::make_tuple(root.first, give(std::move(log_values)));
  }

  nb::tuple draw(In<double, Vector> cumulative, int first, std::int64_t draws, std::uint64_t seed, int threads, Progress progress) {
    Monitor monitor(poll_with(progress), static_cast<double>(draws));
    const std::vector<double> weights = doubles(cumulative);
    Recursion::Draws found;
    {
      nb::gil_scoped_release release;
      found = recursion_.draw(weights, first, draws, seed, threads, monitor);
    }
    return nb::make_tuple(pack(std::move(found.partitions), cells_.sets_count), give(std::move(found.splits_at_depth)),
                          give(std::move(found.open_leaves)));
  }

  Out<double> expect(In<double, Matrix> region_values, In<double, Vector> empty_values, In<double, Matrix> single_values, int threads,
                     Progress progress) {
    const int functions = static_cast<int>(empty_values.shape(0));
    if (static_cast<std::int64_t>(region_values.shape(0)) != regions_->size() || region_values.shape(1) != empty_values.shape(0) ||
        single_values.shape(0) != static_cast<std::size_t>(cells_.sets_count) || single_values.shape(1) != empty_values.shape(0)) {
      throw std::invalid_argument("a row per region and per set is needed, with a value per function");
    }
    Monitor monitor(poll_with(progress), static_cast<double>(regions_->size()));
    std::vector<double> result;
    {
      nb::gil_scoped_release release;
      result = recursion_.expect(region_values.data(), empty_values.data(), single_values.data(), functions, threads, monitor);
    }
    const std::size_t rows = result.size() / functions;
    return give(std::move(result), {rows, static_cast<std::size_t>(functions)});
  }

  Out<double> split_log_odds(In<std::int64_t, Vector> ids) { return give(recursion_.split_log_odds(known(ids))); }

 private:
  Recursion recursion_;
};

// The recursion of the ratio model over the regions.
class Ratio : public OnRegions {
 public:
  Ratio(In<std::uint64_t, Matrix> codes, In<std::uint16_t, Vector> sets, int sets_count, int base_depth, In<double, Vector> concentrations,
        double stop, int threads, Progress progress, Weights weights, Resolution resolution)
      : OnRegions({codes, sets, sets_count, weights, resolution}, base_depth, threads, progress),
        recursion_(*regions_, doubles(concentrations), stop) {}

  void relabel(In<std::uint16_t, Vector> sets, int threads, Progress progress) {
    const Cells cells{cells_.codes, sets, cells_.sets_count, cells_.weights, cells_.resolution};
    const Points points = cells.points();
    Monitor monitor(poll_with(progress), 0.0);
    leaves_ = {};
    cells_ = cells;  // at once: the regions read from the new array even if they are interrupted
    nb::gil_scoped_release release;
    recursion_.relabel(points.sets, threads, monitor);
  }

  double up(int threads, Progress progress) {
    Monitor monitor(poll_with(progress), static_cast<double>(regions_->size()));
    leaves_ = {};
    nb::gil_scoped_release release;
    return recursion_.up(threads, monitor);
  }

  Out<double> permuted(std::uint64_t seed, std::int64_t permutations, int threads, Progress progress) {
    Monitor monitor(poll_with(progress), static_cast<double>(permutations));
    std::vector<double> found;
    {
      nb::gil_scoped_release release;
      found = recursion_.permuted(seed, permutations, threads, monitor);
    }
    return give(std::move(found));
  }

  Out<double> given(In<std::uint32_t, Cube> drawn, int threads, Progress progress) {
    const Points& points = regions_->points();
    const std::size_t lanes = RatioRecursion::kLanes, kept = points.sets_count - 1;
    if (drawn.shape(1) != points.n || drawn.shape(2) != kept * lanes) {
      throw std::invalid_argument("counts are needed for each point, each set but the last and each of 8 permutations");
    }
    Monitor monitor(poll_with(progress), static_cast<double>(drawn.shape(0) * lanes));
    std::vector<double> found;
    {
      nb::gil_scoped_release release;
      found = recursion_.given(drawn.data(), static_cast<std::int64_t>(drawn.shape(0)), threads, monitor);
    }
    return give(std::move(found));
  }

  nb::tuple leaves(double least, Progress progress) {
    {
      Monitor monitor(poll_with(progress), 0.0);
      nb::gil_scoped_release release;
      leaves_ = recursion_.leaves(least, monitor);
    }
    const int s = cells_.sets_count;
    const std::size_t size = leaves_.ids.size();
    std::vector<double> singles(s, 0.0);
    for (std::size_t i = 0; i < leaves_.points.size(); ++i) singles[cells_.sets.data()[i]] += leaves_.points[i];
    std::vector<std::uint32_t> counts(size * s);
    for (std::size_t i = 0; i < size; ++i) std::copy_n(regions_->counts(leaves_.ids[i]), s, counts.begin() + i * s);
    return nb::make_tuple(give(std::vector<std::int64_t>(leaves_.ids)), give(std::move(counts), {size, static_cast<std::size_t>(s)}),
                          give(std::vector<double>(leaves_.probabilities)), give(std::move(singles)), leaves_.empty);
  }

  Out<double> at_points(In<double, Matrix> leaf_values, In<double, Matrix> single_values, int threads, Progress progress) {
    const int functions = static_cast<int>(leaf_values.shape(1));
    if (leaf_values.shape(0) != leaves_.ids.size() || single_values.shape(0) != static_cast<std::size_t>(cells_.sets_count) ||
        single_values.shape(1) != leaf_values.shape(1)) {
      throw std::invalid_argument("a row for each of leaves() and per set is needed, with a value per function");
    }
    Monitor monitor(poll_with(progress), 0.0);
    std::vector<double> result;
    {
      nb::gil_scoped_release release;
      result = recursion_.at_points(leaves_, leaf_values.data(), single_values.data(), functions, threads, monitor);
    }
    return give(std::move(result), {cells_.sets.shape(0), static_cast<std::size_t>(functions)});
  }

  nb::tuple draw(std::int64_t draws, std::uint64_t seed, int threads, Progress progress, std::int64_t whole) {
    Monitor monitor(poll_with(progress), static_cast<double>(draws));
    RatioRecursion::Draws found;
    {
      nb::gil_scoped_release release;
      found = recursion_.draw(draws, seed, threads, whole, monitor);
    }
    return nb::make_tuple(pack(std::move(found.partitions), cells_.sets_count), give(std::move(found.open_leaves)));
  }

  Out<double> split_log_odds(In<std::int64_t, Vector> ids) { return give(recursion_.split_log_odds(known(ids))); }

 private:
  RatioRecursion recursion_;
  RatioRecursion::Leaves leaves_;
};

// Rows counted in cells, piece by piece.
class Counter {
 public:
  Counter(const std::vector<In<double, Vector>>& cuts, const std::vector<bool>& even, int finest, int bits, std::size_t max_cells)
      : counter_(grid(cuts, even), finest, bits, max_cells) {}

  void add_rows(In<double, Matrix> rows) {
    std::vector<const double*> values;
    for (std::size_t j = 0; j < rows.shape(1); ++j) values.push_back(rows.data() + j);
    nb::gil_scoped_release release;
    counter_.add_rows(values, static_cast<std::ptrdiff_t>(values.size()), rows.shape(0));
  }

  void add_columns(const std::vector<In<double, Vector>>& columns) {
    std::vector<const double*> values;
    for (const auto& column : columns) {
      if (column.shape(0) != columns[0].shape(0)) throw std::invalid_argument("columns differ in length");
      values.push_back(column.data());
    }
    nb::gil_scoped_release release;
    counter_.add_rows(values, 1, columns.empty() ? 0 : columns[0].shape(0));
  }

  void add_cells(In<std::uint64_t, Vector> keys, In<std::uint64_t, Vector> counts, int bits) {
    if (keys.shape(0) != counts.shape(0)) throw std::invalid_argument("keys and counts differ in length");
    nb::gil_scoped_release release;
    counter_.add_cells(keys.data(), counts.data(), keys.shape(0), bits);
  }

  void absorb(Counter& other) {
    if (&other == this) throw std::invalid_argument("a counter cannot absorb itself");
    nb::gil_scoped_release release;
    counter_.absorb(other.counter_);
  }

  void coarsen(int bits) {
    nb::gil_scoped_release release;
    counter_.coarsen(bits);
  }

  nb::tuple cells() {
    std::vector<std::uint64_t> keys, counts;
    {
      nb::gil_scoped_release release;
      counter_.cells(keys, counts);
    }
    return nb::make_tuple(give(std::move(keys)), give(std::move(counts)));
  }

  int bits() { return counter_.bits(); }
  int bits_so_far() const { return counter_.bits_so_far(); }
  std::size_t size() { return counter_.size(); }

 private:
  static std::vector<GridColumn> grid(const std::vector<In<double, Vector>>& cuts, const std::vector<bool>& even) {
    if (cuts.size() != even.size()) throw std::invalid_argument("columns differ in number");
    std::vector<GridColumn> columns;
    for (std::size_t j = 0; j < cuts.size(); ++j) columns.push_back({doubles(cuts[j]), even[j]});
    return columns;
  }
  CellCounter counter_;
};

// Values of a column counted by their leading bits, piece by piece.
class BinsOfColumn {
 public:
  BinsOfColumn(std::size_t most, int dropped) : counter_(most, dropped) {}

  void add(In<double, Vector> values) {
    nb::gil_scoped_release release;
    counter_.add(values.data(), values.shape(0));
  }

  void add_all(const BinsOfColumn& other) {
    if (&other == this) throw std::invalid_argument("a counter cannot be added to itself");
    nb::gil_scoped_release release;
    counter_.add_all(other.counter_);
  }

  nb::tuple bins() const {
    std::vector<std::uint64_t> keys;
    std::vector<std::int64_t> counts;
    std::vector<double> low, high;
    for (const BinCounter::Bin& bin : counter_.bins()) {
      keys.push_back(bin.key);
      counts.push_back(static_cast<std::int64_t>(bin.count));
      low.push_back(BinCounter::value(bin.low));
      high.push_back(BinCounter::value(bin.high));
    }
    return nb::make_tuple(counter_.dropped(), give(std::move(keys)), give(std::move(counts)), give(std::move(low)), give(std::move(high)));
  }

 private:
  BinCounter counter_;
};

// A chain to look at move by move.
class Walk {
 public:
  Walk(In<std::uint64_t, Matrix> codes, In<std::uint16_t, Vector> sets, int sets_count, In<double, Vector> log_gamma,
       In<double, Vector> log_price, const std::string& kernel)
      : cells_{codes, sets, sets_count}, quiet_(nullptr, 0.0), regions_(cells_.points(), 0, 1, quiet_),
        chain_(regions_, LogGamma(doubles(log_gamma)), doubles(log_price), kernel_named(kernel), Random(0, 0)) {}
  void split(std::size_t slot, int column) {
    if (slot >= static_cast<std::size_t>(chain_.leaves()) || column < 0 || column >= regions_.points().d) {
      throw std::out_of_range("no such leaf or column");
    }
    chain_.split(slot, column);
  }
  std::vector<std::tuple<std::vector<std::int16_t>, double>> moves() {
    std::vector<std::tuple<std::vector<std::int16_t>, double>> result;
    for (auto& move : chain_.moves()) result.emplace_back(std::move(move.splits), move.probability);
    return result;
  }

 private:
  Cells cells_;
  Monitor quiet_;
  Regions regions_;
  Chain chain_;
};

nb::tuple run_chains(In<std::uint64_t, Matrix> codes, In<std::uint16_t, Vector> sets, int sets_count, In<double, Vector> log_gamma,
                     In<double, Vector> log_price, const std::string& kernel, std::int64_t chains, std::int64_t burn_in,
                     std::int64_t draws, std::int64_t thin, std::uint64_t seed, int threads, Progress progress, Weights weights,
                     Resolution resolution) {
  const Points points = Cells{codes, sets, sets_count, weights, resolution}.points();
  const Kernel which = kernel_named(kernel);
  const LogGamma gamma(doubles(log_gamma));
  const std::vector<double> price = doubles(log_price);
  Monitor monitor(poll_with(progress), static_cast<double>(chains) * (burn_in + draws * thin));
  std::vector<Partitions> parts(chains);
  std::vector<double> accepted(chains);
  Partitions all;
  {
    nb::gil_scoped_release release;
    monitor.parallel(chains, threads, [&](std::size_t i) {
      Regions regions(points, 0, 1, monitor);  // each chain counts for itself: no locks, no order to depend on
      Chain chain(regions, gamma, price, which, Random(seed, i));
      parts[i] = run_chain(chain, {burn_in, draws, thin}, monitor);
      accepted[i] = static_cast<double>(chain.accepted()) / static_cast<double>(burn_in + draws * thin);
    });
    all = Partitions::joined(parts, threads, monitor);
  }
  return nb::make_tuple(pack(std::move(all), sets_count), give(std::move(accepted)));
}

// Takes every partition `steps` steps further along a cherry chain of its own.
nb::tuple move_on(In<std::uint64_t, Matrix> codes, In<std::uint16_t, Vector> sets, int sets_count, In<double, Vector> log_gamma,
                  In<double, Vector> log_price, In<std::int16_t, Vector> splits, In<std::int64_t, Vector> node_start,
                  std::int64_t steps, std::uint64_t seed, int threads, Progress progress, Weights weights, Resolution resolution) {
  const Points points = Cells{codes, sets, sets_count, weights, resolution}.points();
  const LogGamma gamma(doubles(log_gamma));
  const std::vector<double> price = doubles(log_price);
  const std::size_t trees = node_start.shape(0) - 1;
  Monitor monitor(poll_with(progress), static_cast<double>(trees));
  Partitions all;
  {
    nb::gil_scoped_release release;
    // Partitions are dealt to a few workers that each keep what they have counted; what a chain does depends on its own stream alone.
    const std::size_t workers = std::max<std::size_t>(1, std::min<std::size_t>(threads, trees));
    std::vector<Partitions> parts(trees);
    monitor.parallel(workers, threads, [&](std::size_t worker) {
      Regions regions(points, 0, 1, monitor);
      Chain chain(regions, gamma, price, Kernel::cherry, Random(seed, 0));
      for (std::size_t i = worker; i < trees; i += workers) {
        chain.reset(Random(seed, i));
        chain.start_from(splits.data() + node_start.data()[i], monitor);
        for (std::int64_t step = 0; step < steps; ++step) {
          chain.step();
          if (step % 1024 == 0) monitor.check();
        }
        chain.write(parts[i]);
        monitor.check(1.0);
      }
    });
    all = Partitions::joined(parts, threads, monitor);
  }
  return pack(std::move(all), sets_count);
}

nb::tuple describe_trees(In<std::int16_t, Vector> splits, In<std::int64_t, Vector> node_start, In<std::int64_t, Vector> leaf_start, int d,
                         int threads) {
  const Forest forest = forest_of(splits, node_start, leaf_start, d);
  std::vector<std::uint16_t> depth(leaf_start.data()[forest.trees]);
  std::vector<double> log_orders(forest.trees);
  {
    Monitor monitor(poll_with(std::nullopt), 0.0);
    nb::gil_scoped_release release;
    describe(forest, depth.data(), log_orders.data(), threads, monitor);
  }
  return nb::make_tuple(give(std::move(depth)), give(std::move(log_orders)));
}

Out<std::int64_t> locate_points(In<std::int16_t, Vector> splits, In<std::int64_t, Vector> node_start, In<std::int64_t, Vector> leaf_start,
                                In<std::uint64_t, Matrix> codes, int threads) {
  const Forest forest = forest_of(splits, node_start, leaf_start, static_cast<int>(codes.shape(0)));
  const std::size_t n = codes.shape(1);
  std::vector<std::int64_t> leaf(static_cast<std::size_t>(forest.trees) * n);
  {
    Monitor monitor(poll_with(std::nullopt), 0.0);
    nb::gil_scoped_release release;
    locate(forest, codes.data(), static_cast<std::int64_t>(n), leaf.data(), threads, monitor);
  }
  return give(std::move(leaf), {static_cast<std::size_t>(forest.trees), n});
}

Out<double> masses_in_boxes(In<std::int16_t, Vector> splits, In<std::int64_t, Vector> node_start, In<std::int64_t, Vector> leaf_start,
                            In<double, Matrix> masses, In<std::uint8_t, Matrix> levels, In<std::uint64_t, Matrix> indices,
                            std::optional<In<std::int64_t, Vector>> leaf_points, std::optional<In<std::int64_t, Vector>> box_points,
                            int threads) {
  const Forest forest = forest_of(splits, node_start, leaf_start, static_cast<int>(levels.shape(1)));
  PointsIn points;
  if (leaf_points && box_points) {
    if (leaf_points->shape(0) != masses.shape(0) || box_points->shape(0) != levels.shape(0)) {
      throw std::invalid_argument("a number of points is needed for each leaf and each box");
    }
    points = {leaf_points->data(), box_points->data()};
  }
  const std::size_t boxes = levels.shape(0), sets = masses.shape(1);
  std::vector<double> result(static_cast<std::size_t>(forest.trees) * boxes * sets);
  {
    Monitor monitor(poll_with(std::nullopt), 0.0);
    nb::gil_scoped_release release;
    box_masses(forest, masses.data(), static_cast<int>(sets), levels.data(), indices.data(), static_cast<std::int64_t>(boxes),
               points, result.data(), threads, monitor);
  }
  return give(std::move(result), {static_cast<std::size_t>(forest.trees), boxes, sets});
}

// How many of some ascending numbers are at most each value. Blocks of values are searched step by step together, so that the processor need
// not wait for one before it begins with the next.
Out<std::int64_t> count_up_to(In<double, Vector> ascending, In<double, Vector> values) {
  const double* sorted = ascending.data();
  const std::size_t size = ascending.shape(0), n = values.shape(0);
  std::vector<std::int64_t> result(n, 0);
  {
    nb::gil_scoped_release release;
    constexpr std::size_t kBlock = 64;
    for (std::size_t start = 0; start < n && size > 0; start += kBlock) {
      const std::size_t block = std::min(kBlock, n - start);
      const double* value = values.data() + start;
      std::int64_t* found = result.data() + start;
      std::size_t left = size;
      while (left > 1) {
        const std::size_t half = left / 2;
        for (std::size_t i = 0; i < block; ++i) found[i] += sorted[found[i] + half - 1] <= value[i] ? static_cast<std::int64_t>(half) : 0;
        left -= half;
      }
      for (std::size_t i = 0; i < block; ++i) found[i] += sorted[found[i]] <= value[i];
    }
  }
  return give(std::move(result));
}

}  // namespace

NB_MODULE(_core, m) {
  m.attr("BITS") = kBits;
  nb::class_<Exact> exact(m, "Exact");
  exact
      .def(nb::init<In<std::uint64_t, Matrix>, In<std::uint16_t, Vector>, int, int, In<double, Vector>, int, Progress, Weights, Resolution>(),
           "codes"_a, "sets"_a, "sets_count"_a, "base_depth"_a, "log_gamma"_a, "threads"_a, "progress"_a = nb::none(),
           "weights"_a = nb::none(), "resolution"_a = nb::none())
      .def("up", &Exact::up, "log_tilt"_a, "threads"_a, "progress"_a = nb::none())
      .def("draw", &Exact::draw, "cumulative"_a, "first"_a, "draws"_a, "seed"_a, "threads"_a, "progress"_a = nb::none())
      .def("expect", &Exact::expect, "region_values"_a, "empty_values"_a, "single_values"_a, "threads"_a, "progress"_a = nb::none());
  bind_regions(exact);
  nb::class_<Ratio> ratio(m, "Ratio");
  ratio
      .def(nb::init<In<std::uint64_t, Matrix>, In<std::uint16_t, Vector>, int, int, In<double, Vector>, double, int, Progress, Weights,
                    Resolution>(),
           "codes"_a, "sets"_a, "sets_count"_a, "base_depth"_a, "concentrations"_a, "stop"_a, "threads"_a, "progress"_a = nb::none(),
           "weights"_a = nb::none(), "resolution"_a = nb::none())
      .def("relabel", &Ratio::relabel, "sets"_a, "threads"_a, "progress"_a = nb::none())
      .def("up", &Ratio::up, "threads"_a, "progress"_a = nb::none())
      .def("permuted", &Ratio::permuted, "seed"_a, "permutations"_a, "threads"_a, "progress"_a = nb::none())
      .def("given", &Ratio::given, "drawn"_a, "threads"_a, "progress"_a = nb::none())
      .def("leaves", &Ratio::leaves, "least"_a, "progress"_a = nb::none())
      .def("at_points", &Ratio::at_points, "leaf_values"_a, "single_values"_a, "threads"_a, "progress"_a = nb::none())
      .def("draw", &Ratio::draw, "draws"_a, "seed"_a, "threads"_a, "progress"_a = nb::none(), "whole"_a = -1);
  bind_regions(ratio);
  nb::class_<Counter>(m, "Counter")
      .def(nb::init<const std::vector<In<double, Vector>>&, const std::vector<bool>&, int, int, std::size_t>(), "cuts"_a, "even"_a, "finest"_a,
           "bits"_a, "max_cells"_a)
      .def("add_rows", &Counter::add_rows, "rows"_a)
      .def("add_columns", &Counter::add_columns, "columns"_a)
      .def("add_cells", &Counter::add_cells, "keys"_a, "counts"_a, "bits"_a)
      .def("absorb", &Counter::absorb, "other"_a)
      .def("coarsen", &Counter::coarsen, "bits"_a)
      .def("cells", &Counter::cells)
      .def_prop_ro("bits", &Counter::bits)
      .def_prop_ro("bits_so_far", &Counter::bits_so_far)
      .def_prop_ro("size", &Counter::size);
  nb::class_<BinsOfColumn>(m, "BinCounter")
      .def(nb::init<std::size_t, int>(), "most"_a, "dropped"_a = 0)
      .def("add", &BinsOfColumn::add, "values"_a)
      .def("add_all", &BinsOfColumn::add_all, "other"_a)
      .def("bins", &BinsOfColumn::bins);
  nb::class_<Walk>(m, "Walk")
      .def(nb::init<In<std::uint64_t, Matrix>, In<std::uint16_t, Vector>, int, In<double, Vector>, In<double, Vector>,
                    const std::string&>(),
           "codes"_a, "sets"_a, "sets_count"_a, "log_gamma"_a, "log_price"_a, "kernel"_a)
      .def("split", &Walk::split, "slot"_a, "column"_a)
      .def("moves", &Walk::moves);
  m.def("count_up_to", &count_up_to, "ascending"_a, "values"_a);
  m.def("run_chains", &run_chains, "codes"_a, "sets"_a, "sets_count"_a, "log_gamma"_a, "log_price"_a, "kernel"_a, "chains"_a, "burn_in"_a,
        "draws"_a, "thin"_a, "seed"_a, "threads"_a, "progress"_a = nb::none(), "weights"_a = nb::none(), "resolution"_a = nb::none());
  m.def("move_on", &move_on, "codes"_a, "sets"_a, "sets_count"_a, "log_gamma"_a, "log_price"_a, "splits"_a, "node_start"_a, "steps"_a,
        "seed"_a, "threads"_a, "progress"_a = nb::none(), "weights"_a = nb::none(), "resolution"_a = nb::none());
  m.def("describe", &describe_trees, "splits"_a, "node_start"_a, "leaf_start"_a, "d"_a, "threads"_a);
  m.def("locate", &locate_points, "splits"_a, "node_start"_a, "leaf_start"_a, "codes"_a, "threads"_a);
  m.def("box_masses", &masses_in_boxes, "splits"_a, "node_start"_a, "leaf_start"_a, "masses"_a, "levels"_a, "indices"_a,
        "leaf_points"_a.none(), "box_points"_a.none(), "threads"_a);
}
