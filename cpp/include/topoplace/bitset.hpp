// Fixed-width bitsets of W 64-bit words: the sets of vertices that the searches intersect, count and walk.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "topoplace/assert.hpp"

namespace topoplace {

template <int W>
struct Bits {
    std::array<std::uint64_t, W> word{};

    static constexpr int kBits = 64 * W;

    static Bits first(int count) {
        TOPOPLACE_ASSERT(count >= 0 && count <= kBits);
        Bits bits;
        for (int i = 0; i < W; ++i) {
            const int inside = count - 64 * i;
            bits.at(i) = inside >= 64  ? ~std::uint64_t{0}
                         : inside <= 0 ? 0
                                       : (std::uint64_t{1} << inside) - 1;
        }
        return bits;
    }
    static Bits single(int v) {
        Bits bits;
        bits.set(v);
        return bits;
    }

    std::uint64_t& at(int i) {
        TOPOPLACE_ASSERT(i >= 0 && i < W);
        return word[static_cast<std::size_t>(i)];
    }
    std::uint64_t at(int i) const {
        TOPOPLACE_ASSERT(i >= 0 && i < W);
        return word[static_cast<std::size_t>(i)];
    }

    bool test(int v) const { return (at(v >> 6) >> (v & 63)) & 1; }
    void set(int v) { at(v >> 6) |= std::uint64_t{1} << (v & 63); }
    void reset(int v) { at(v >> 6) &= ~(std::uint64_t{1} << (v & 63)); }

    bool any() const {
        std::uint64_t seen = 0;
        for (int i = 0; i < W; ++i) seen |= at(i);
        return seen != 0;
    }
    int count() const {
        int total = 0;
        for (int i = 0; i < W; ++i) total += std::popcount(at(i));
        return total;
    }
    // The smallest member of a set that is not empty.
    int lowest() const {
        TOPOPLACE_ASSERT(any());
        int i = 0;
        while (i < W - 1 && at(i) == 0) ++i;
        return 64 * i + std::countr_zero(at(i));
    }
    // The members greater than v.
    Bits above(int v) const {
        TOPOPLACE_ASSERT(v >= 0 && v < kBits);
        Bits bits = *this;
        const int edge = v >> 6;
        for (int i = 0; i < edge; ++i) bits.at(i) = 0;
        bits.at(edge) &= ~std::uint64_t{1} << (v & 63);
        return bits;
    }
    // The members smaller than v.
    Bits below(int v) const {
        TOPOPLACE_ASSERT(v >= 0 && v < kBits);
        Bits bits = *this;
        const int edge = v >> 6;
        for (int i = edge + 1; i < W; ++i) bits.at(i) = 0;
        bits.at(edge) &= (std::uint64_t{1} << (v & 63)) - 1;
        return bits;
    }
    template <std::invocable<int> Visit>
    void for_each(Visit&& visit) const {
        for (int i = 0; i < W; ++i) {
            for (std::uint64_t rest = at(i); rest != 0; rest &= rest - 1) {
                visit(64 * i + std::countr_zero(rest));
            }
        }
    }

    Bits& operator&=(const Bits& other) {
        for (int i = 0; i < W; ++i) at(i) &= other.at(i);
        return *this;
    }
    Bits& operator|=(const Bits& other) {
        for (int i = 0; i < W; ++i) at(i) |= other.at(i);
        return *this;
    }
    // Takes the other set's members out.
    Bits& operator-=(const Bits& other) {
        for (int i = 0; i < W; ++i) at(i) &= ~other.at(i);
        return *this;
    }
    friend Bits operator&(Bits a, const Bits& b) { return a &= b; }
    friend Bits operator|(Bits a, const Bits& b) { return a |= b; }
    friend Bits operator-(Bits a, const Bits& b) { return a -= b; }
    friend bool operator==(const Bits&, const Bits&) = default;
};

}  // namespace topoplace
