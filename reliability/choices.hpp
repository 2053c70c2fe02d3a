// Decisions read off the bytes of a fuzzer, and the program that replays kept inputs without one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// After the last byte all bytes are zero.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  // A number from 0 to limit - 1.
  std::size_t below(std::size_t limit) {
    std::size_t value = read_byte();
    if (limit > 256) value |= read_byte() << 8;
    return value % limit;
  }

  template <typename T>
  T one_of(std::initializer_list<T> options) {
    return *(options.begin() + static_cast<std::ptrdiff_t>(below(options.size())));
  }

  // A number, most often a plain one, at times an odd one, and seldom any bits.
  double number() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    if (below(4) > 0) return static_cast<double>(read_byte()) / 8.0 - 16.0;
    if (below(4) > 0) {
      return one_of(
          {0.0, -0.0, 1.0, -1.0, 3.0, 254.0, 255.0, 256.0, kInfinity, -kInfinity, kNaN, 1e300, -1e300, 5e-324});
    }
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | read_byte();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  // A whole number that may be far out of range.
  std::int32_t wild() {
    return one_of({-1, 0, 1, 2, 3, 5, 7, 60, 1000, -2, std::numeric_limits<std::int32_t>::max(),
                   std::numeric_limits<std::int32_t>::min()});
  }

 private:
  std::size_t read_byte() { return at_ < size_ ? data_[at_++] : 0; }

  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

inline void check(bool condition, const char* what) {
  if (condition) return;
  std::printf("FAILED: %s\n", what);
  std::abort();
}

#ifdef UNTWIST_REPLAY
#include <fstream>
#include <vector>

int main(int count, char** paths) {
  for (int i = 1; i < count; ++i) {
    std::ifstream file(paths[i], std::ios::binary);
    check(file.good(), paths[i]);
    const std::vector<char> content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  }
  std::printf("%d inputs replayed\n", count - 1);
}
#endif
