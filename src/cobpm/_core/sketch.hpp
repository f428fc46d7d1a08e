// Rows counted in the cells of a grid, in memory that does not grow with the rows.
//
// A column's grid is given by 2^finest − 1 cuts in ascending order: a value lies in cell k if k cuts are at most the value. Cells are halved from
// coarse to fine, one column after another: with B bits in all, column j has B/d of them, rounded up for the first columns and down for the rest. A cell
// is named by the leading bits of its columns' indices, put side by side. When there are more cells than allowed, one bit is given up. Cells are
// only ever joined, and only when there are too many, so the result depends neither on the order of the rows nor on how they are cut into pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cobpm {

// Even cuts need no search.
struct GridColumn {
  std::vector<double> cuts;
  bool even = false;
};

class CellCounter {
 public:
  CellCounter(std::vector<GridColumn> columns, int finest, int bits, std::size_t max_cells);

  // Rows of one piece; column j begins at values[j] and goes on in steps of `stride` doubles.
  void add_rows(const std::vector<const double*>& values, std::ptrdiff_t stride, std::size_t rows);
  // Cells of another counter over the same grid, with at least as many bits.
  void add_cells(const std::uint64_t* keys, const std::uint64_t* counts, std::size_t size, int bits);
  // All that another counter over the same grid has seen; nothing is left there.
  void absorb(CellCounter& other);
  // Gives up bits until this many are left.
  void coarsen(int bits);

  int bits();
  // At least as many, without looking through the rows that wait.
  int bits_so_far() const { return bits_; }
  std::size_t size();
  // Keys in ascending order, and their counts.
  void cells(std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& counts);

 private:
  struct Slot {
    std::uint64_t key;
    std::uint64_t count;
  };
  // A column as far as its bits go.
  struct Used {
    int bits;
    std::vector<double> cuts;            // those that the bits tell apart
    std::vector<std::uint64_t> nested;  // what an index adds to the nested key
    double scale;                        // cells per unit where cuts are even; 0: search
  };

  void set_columns();
  void nested_keys(const std::vector<const double*>& values, std::ptrdiff_t stride, std::size_t start, std::size_t rows, std::uint64_t* keys) const;
  void settle();
  void take(const std::vector<Slot>& slots);
  void fit();
  void make_dense();
  bool fits_densely() const;

  std::vector<GridColumn> columns_;
  int finest_, bits_;
  std::size_t max_cells_;
  std::vector<Used> used_;
  // Inside, keys are nested: the bits of different columns are put in the order in which they are halved, so that to give up a bit is to shift. New rows
  // wait as keys until there are many, which are sorted and merged with those that came before. When a place for each possible cell takes
  // little room, counts move there.
  std::vector<std::uint64_t> waiting_;
  std::vector<Slot> run_;  // in ascending order
  std::vector<std::uint64_t> dense_;
  std::size_t occupied_ = 0;  // of `dense_`
};

// How many values of a column share their leading bits, in ascending order of the values. Numbers give up as many of their last bits as leave at most `most` bins.
class BinCounter {
 public:
  struct Bin {
    std::uint64_t key;  // the leading bits, those given up being zero
    std::uint64_t count;
    std::uint64_t low, high;  // the smallest and the largest value
  };
  BinCounter(std::size_t most, int dropped);

  void add(const double* values, std::size_t size);
  // All that another counter of the same column has seen.
  void add_all(const BinCounter& other);
  int dropped() const { return dropped_; }
  std::vector<Bin> bins() const;
  static std::uint64_t ordered(double value);  // whole numbers in the order of the floating-point ones
  static double value(std::uint64_t ordered);

 private:
  void put(const Bin& bin);
  void rebuild(std::size_t size, int dropped);
  int bits_to_drop() const;
  int bits_to_drop(std::vector<std::uint64_t>& keys) const;

  std::size_t most_, used_ = 0;
  int dropped_;
  std::vector<Bin> bins_;  // hashed; a count of 0 is a free place
};

}  // namespace cobpm
