// xoshiro256++ (Blackman and Vigna), one independent stream per draw or chain.
#pragma once

#include <array>
#include <cstdint>

namespace cobpm {

class Random {
 public:
  // Streams of one seed are set apart by hashing (seed, stream), so a draw's numbers do not depend on which thread made it.
  Random(std::uint64_t seed, std::uint64_t stream) {
    std::uint64_t x = mix(seed) ^ mix(stream + 0x9e3779b97f4a7c15ULL);
    for (auto& word : state_) word = mix(x += 0x9e3779b97f4a7c15ULL);
  }

  std::uint64_t bits() {
    auto& s = state_;
    const std::uint64_t result = rotate(s[0] + s[3], 23) + s[0];
    const std::uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
  }

  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }  // in [0, 1)

  // Uniform on 0 … n−1, up to the 2^−53 grain of uniform().
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(uniform() * n); }

 private:
  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  static std::uint64_t mix(std::uint64_t z) {  // splitmix64's finaliser
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::array<std::uint64_t, 4> state_{};
};

}  // namespace cobpm
