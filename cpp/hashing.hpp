// Hashes of values and rows. What is drawn by them depends on contents only, never on the order of the rows.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace untwist {

// The increment of splitmix64: 2^64 divided by the golden ratio, which spreads consecutive numbers evenly.
inline constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15ULL;

// The first multiplier of splitmix64, chosen by its author so that every bit of a number reaches the others.
inline constexpr std::uint64_t kFirstMultiplier = 0xBF58476D1CE4E5B9ULL;

// The second multiplier of splitmix64, chosen in the same way.
inline constexpr std::uint64_t kSecondMultiplier = 0x94D049BB133111EBULL;

// One step of splitmix64: every bit of the result depends on every bit of x.
inline std::uint64_t mix(std::uint64_t x) {
  x += kGoldenRatio;
  x = (x ^ (x >> 30)) * kFirstMultiplier;
  x = (x ^ (x >> 27)) * kSecondMultiplier;
  return x ^ (x >> 31);
}

// Returns a whole number below `end`, by the upper half of a hash.
inline std::size_t scale_down(std::uint64_t hash, std::size_t end) {
  return static_cast<std::size_t>(((hash >> 32) * static_cast<std::uint64_t>(end)) >> 32);
}

// Returns what a child of a node draws by. So the draws of a node depend on the way to it from the root alone.
inline std::uint64_t key_of_child(std::uint64_t key, bool is_left) {
  constexpr std::uint64_t kLeftSalt = 0x6C65667420636869ULL;
  constexpr std::uint64_t kRightSalt = 0x7269676874206368ULL;
  return mix(key ^ (is_left ? kLeftSalt : kRightSalt));
}

// The same hash for a number in single and in double precision, and for -0.0 and 0.0.
template <typename Real>
std::uint64_t hash_value(Real x) {
  const double value = static_cast<double>(x) + 0.0;
  std::uint64_t bits = 0;
  if (!std::isnan(value)) std::memcpy(&bits, &value, sizeof bits);
  bits = (bits ^ (bits >> 32)) * kFirstMultiplier;
  return (bits ^ (bits >> 29)) * kSecondMultiplier;
}

}  // namespace untwist
