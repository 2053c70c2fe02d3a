// Hashes of values and rows: what is drawn by them depends on contents only.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace untwist {

// One step of splitmix64: every bit of the result depends on every bit of x.
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// The same for a number in single and in double precision, and for -0.0 and 0.0.
template <typename Real>
std::uint64_t hash_of(Real x) {
  const double value = static_cast<double>(x) + 0.0;
  std::uint64_t bits = 0;
  if (!std::isnan(value)) std::memcpy(&bits, &value, sizeof bits);
  bits = (bits ^ (bits >> 32)) * 0xBF58476D1CE4E5B9ULL;
  return (bits ^ (bits >> 29)) * 0x94D049BB133111EBULL;
}

}  // namespace untwist
