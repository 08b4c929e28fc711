// Random numbers that are the same on every machine and with every standard library: SplitMix64.
//
// Reference: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#pragma once

#include <cstdint>

#include "topoplace/assert.hpp"

namespace topoplace {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }
    // In 0 .. bound-1; the bias is below bound / 2^32.
    std::int32_t below(std::int32_t bound) {
        TOPOPLACE_ASSERT(bound > 0);
        return static_cast<std::int32_t>(((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
    }

  private:
    std::uint64_t state_;
};

}  // namespace topoplace
