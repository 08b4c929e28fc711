// What searches over one target share: bit rows of its neighbourhoods, by weight level, and its weights in
// fixed point.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/fixed_point.hpp"
#include "topoplace/assert.hpp"
#include "topoplace/bitset.hpp"
#include "topoplace/mapping.hpp"
#include "topoplace/match.hpp"

namespace topoplace::match {

// One bitset of `words` words for each of many rows, readable at any width that has as many words.
class BitRows {
  public:
    BitRows() = default;
    BitRows(std::size_t rows, std::int32_t words) : words_(index(words)), data_(rows * index(words), 0) {}

    void set(std::size_t row, std::int32_t v) {
        TOPOPLACE_ASSERT(index(v >> 6) < words_ && (row + 1) * words_ <= data_.size());
        data_[row * words_ + index(v >> 6)] |= std::uint64_t{1} << (v & 63);
    }
    template <int W>
    Bits<W> get(std::size_t row) const {
        TOPOPLACE_ASSERT(words_ == std::size_t{W} && (row + 1) * words_ <= data_.size());
        Bits<W> bits;
        std::memcpy(bits.word.data(), data_.data() + row * W, sizeof(bits.word));
        return bits;
    }
    bool test(std::size_t row, std::int32_t v) const {
        TOPOPLACE_ASSERT(index(v >> 6) < words_ && (row + 1) * words_ <= data_.size());
        return (data_[row * words_ + index(v >> 6)] >> (v & 63)) & 1;
    }

  private:
    std::size_t words_ = 0;
    std::vector<std::uint64_t> data_;
};

// Calls f with the smallest compiled width that holds n bits.
template <std::invocable<std::integral_constant<int, 1>> F>
auto with_width(std::int32_t n, F&& f) {
    TOPOPLACE_ASSERT(n >= 0 && n <= kMaxDenseVertices);
    if (n <= 64) return f(std::integral_constant<int, 1>{});
#ifndef __SANITIZE_ADDRESS__  // with it, each width of the searches takes ten seconds to compile
    if (n <= 128) return f(std::integral_constant<int, 2>{});
#endif
    if (n <= 512) return f(std::integral_constant<int, 8>{});
    return f(std::integral_constant<int, kMaxDenseVertices / 64>{});
}

std::int32_t width_of(std::int32_t n);

inline constexpr std::size_t kMaxLevels = 8;

// The weights grouped into a few levels, heaviest first; rounded up where there are more distinct weights.
struct Levels {
    std::vector<Fixed> heaviest;         // weight of each level's heaviest edge
    std::vector<std::uint8_t> level_of;  // n x n, read where there is an edge
    // Row (level * n + v): neighbours of v over edges of this level or a heavier one.
    BitRows at_least;
    bool complete = false;  // the last level joins every pair
    bool exact = false;     // all edges of a level weigh the same

    std::size_t count() const { return heaviest.size(); }
};

// Whatever takes a meter has no value where it stops.
class Target::Impl {
  public:
    static std::optional<Impl> make(const Graph& graph, WorkMeter& meter);

    std::int32_t size() const { return graph_.num_vertices(); }
    const Graph& graph() const { return graph_; }

    Fixed weight(std::int32_t u, std::int32_t v) const { return weight_[pair_of(u, v)]; }
    Fixed weight(std::size_t pair) const { return weight_[pair]; }
    const Fixed* weights(std::int32_t u) const { return weight_.data() + pair_of(u, 0); }
    double to_double(Fixed weight) const { return points_.to_double(weight); }
    Fixed to_fixed(double weight) const { return points_.limit(weight); }
    const FixedPoint& points() const { return points_; }

    // The distinct weights, heaviest first.
    std::span<const Fixed> distinct_weights() const { return distinct_; }
    const Levels& levels() const { return levels_; }
    // The largest number up to `most` that `num_weights` weights may add up to, judged by the common
    // divisor of their differences; `most` if even the lightest ones add up to more.
    Fixed sum_below(Fixed most, std::int64_t num_weights) const;

    // Neighbours over edges of at least this weight; and of at least this fixed-point weight too.
    std::optional<BitRows> adjacency(double min_weight, WorkMeter& meter) const;
    std::optional<BitRows> adjacency(Fixed threshold, double min_weight, WorkMeter& meter) const;
    // No edge is lighter than this.
    bool everything(Fixed min_weight) const { return distinct_.empty() || min_weight <= distinct_.back(); }
    // Levels without the edges lighter than min_weight.
    std::optional<Levels> levels_from(Fixed min_weight, WorkMeter& meter) const;
    // Names the orbit of every vertex under the automorphisms that keep the weights and the set `free`; every
    // vertex is alone where there is no time to tell.
    std::vector<std::int32_t> orbits(const std::vector<bool>& free, WorkMeter& meter) const;

    // For the mapping kernel: the lighter an edge, the longer the way, and the longest where there is none.
    // Null for large targets, and where the meter stops.
    const mapping::Target* distances(WorkMeter& meter) const;

    // Position of the pair in any row-major n x n array of this target.
    std::size_t pair_of(std::int32_t u, std::int32_t v) const {
        TOPOPLACE_ASSERT(u <= size() && (v < size() || size() == 0));
        return index(u) * index(size()) + index(v);
    }

  private:
    struct Lazy;
    Impl(const Graph& graph, const FixedPoint& points);
    [[nodiscard]] bool set_weights(WorkMeter& meter);
    std::optional<BitRows> rows_of(Fixed threshold, double min_weight, WorkMeter& meter) const;
    std::optional<Levels> make_levels(std::span<const Fixed> distinct, WorkMeter& meter) const;

    Graph graph_;
    FixedPoint points_;
    std::vector<Fixed> weight_;  // n x n, 0 where there is no edge
    std::vector<Fixed> distinct_;
    Fixed divisor_ = 0;  // of all differences between weights
    Levels levels_;
    BitRows edges_;
    std::shared_ptr<Lazy> lazy_;
};

}  // namespace topoplace::match
