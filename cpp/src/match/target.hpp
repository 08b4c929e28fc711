// What searches over one target share: bit rows of its neighbourhoods, by weight level, and its weights in
// fixed point.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "topoplace/bitset.hpp"
#include "topoplace/match.hpp"

namespace topoplace::match {

// One bitset of `words` words for each of many rows, readable at any width that has as many words.
class BitRows {
  public:
    BitRows() = default;
    BitRows(std::size_t rows, std::int32_t words)
        : words_(static_cast<std::size_t>(words)), data_(rows * static_cast<std::size_t>(words), 0) {}

    void set(std::size_t row, std::int32_t v) {
        data_[row * words_ + static_cast<std::size_t>(v >> 6)] |= std::uint64_t{1} << (v & 63);
    }
    template <int W>
    Bits<W> get(std::size_t row) const {
        Bits<W> bits;
        std::memcpy(bits.word.data(), data_.data() + row * W, sizeof(bits.word));
        return bits;
    }
    bool test(std::size_t row, std::int32_t v) const {
        return (data_[row * words_ + static_cast<std::size_t>(v >> 6)] >> (v & 63)) & 1;
    }

  private:
    std::size_t words_ = 0;
    std::vector<std::uint64_t> data_;
};

// Calls f with the smallest compiled width that holds n bits.
template <class F>
auto with_width(std::int32_t n, F&& f) {
    if (n <= 64) return f(std::integral_constant<int, 1>{});
    if (n <= 128) return f(std::integral_constant<int, 2>{});
    if (n <= 512) return f(std::integral_constant<int, 8>{});
    return f(std::integral_constant<int, kMaxTargetVertices / 64>{});
}

std::int32_t width_of(std::int32_t n);

using Fixed = std::int64_t;

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

class Target::Impl {
  public:
    explicit Impl(const Graph& graph);

    std::int32_t size() const { return graph_.num_vertices(); }
    const Graph& graph() const { return graph_; }

    Fixed weight(std::int32_t u, std::int32_t v) const { return weight_[index(u, v)]; }
    Fixed weight(std::size_t pair) const { return weight_[pair]; }
    const Fixed* weights(std::int32_t u) const { return weight_.data() + index(u, 0); }
    double to_double(Fixed weight) const { return static_cast<double>(weight) / scale_; }
    Fixed to_fixed(double weight) const;
    // Throws std::invalid_argument where the weights span too wide a range to compare their sums.
    void check_comparable() const;

    // The distinct weights, heaviest first.
    std::span<const Fixed> distinct_weights() const { return distinct_; }
    const Levels& levels() const { return levels_; }

    // Neighbours over edges of at least this weight; and of at least this fixed-point weight too.
    BitRows adjacency(double min_weight) const;
    BitRows adjacency(Fixed threshold, double min_weight) const;
    // No edge is lighter than this.
    bool everything(Fixed min_weight) const { return distinct_.empty() || min_weight <= distinct_.back(); }
    // Levels without the edges lighter than min_weight.
    Levels levels_from(Fixed min_weight) const;
    // Names the orbit of every vertex under the automorphisms that keep the weights and the set `free`.
    std::vector<std::int32_t> orbits(const std::vector<bool>& free) const;

    // Position of the pair in any row-major n x n array of this target.
    std::size_t index(std::int32_t u, std::int32_t v) const {
        return static_cast<std::size_t>(u) * static_cast<std::size_t>(size()) + static_cast<std::size_t>(v);
    }

  private:
    struct Lazy;
    void set_scale();
    BitRows rows_of(Fixed threshold, double min_weight) const;
    Levels make_levels(std::span<const Fixed> distinct) const;

    Graph graph_;
    double heaviest_ = 0;
    double lightest_ = std::numeric_limits<double>::infinity();
    bool comparable_ = true;
    double scale_ = 1;
    std::vector<Fixed> weight_;  // n x n, 0 where there is no edge
    std::vector<Fixed> distinct_;
    Levels levels_;
    BitRows edges_;
    std::shared_ptr<Lazy> lazy_;
};

}  // namespace topoplace::match
