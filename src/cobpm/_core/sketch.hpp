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
  // Gives up bits until this many are left.
  void coarsen(int bits);

  int bits() const { return bits_; }
  std::size_t size() const { return used_; }
  // Keys in ascending order, and their counts.
  void cells(std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& counts) const;
  static std::uint64_t coarser(std::uint64_t key, int columns, int bits);  // the key with one bit less

 private:
  struct Slot {
    std::uint64_t key;
    std::uint64_t count;  // 0: free
  };
  void put(std::uint64_t key, std::uint64_t count);
  void resize(std::size_t slots);
  void lay_out();

  std::vector<GridColumn> columns_;
  int finest_, bits_;
  std::size_t max_cells_, used_ = 0;
  std::vector<int> column_bits_;
  std::vector<Slot> slots_;
};

}  // namespace cobpm
