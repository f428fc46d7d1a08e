// lnΓ(δ+n): all that the core needs to know of the paper's leaf weights.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace cobpm {

// A table for n = 0, 1, … as far as it reaches, the function itself beyond. The table tells δ = Γ(δ+1)/Γ(δ).
class LogGamma {
 public:
  explicit LogGamma(std::vector<double> table) : table_(std::move(table)) {
    if (table_.size() < 2) throw std::invalid_argument("two entries of the table at least are needed");
    delta_ = std::exp(table_[1] - table_[0]);
  }
  double operator[](std::uint32_t n) const { return n < table_.size() ? table_[n] : std::lgamma(delta_ + n); }

 private:
  std::vector<double> table_;
  double delta_;
};

}  // namespace cobpm
