#include "match/target.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>

#include "match/symmetry.hpp"

namespace topoplace::match {
namespace {

constexpr int kFixedPointBits = 40;
// Beyond this the automorphism group costs more than it saves.
constexpr std::int32_t kMaxSymmetryVertices = 512;

}  // namespace

struct Target::Impl::Lazy {
    std::once_flag once;
    std::vector<Permutation> generators;
};

std::int32_t width_of(std::int32_t n) {
    return with_width(n, [](auto width) { return static_cast<std::int32_t>(width()); });
}

Target::Impl::Impl(const Graph& graph) : graph_(graph), lazy_(std::make_shared<Lazy>()) {
    const std::int32_t n = size();
    if (n > kMaxTargetVertices) {
        throw std::invalid_argument("the target has " + std::to_string(n) + " vertices; at most " +
                                    std::to_string(kMaxTargetVertices) + " can be searched");
    }
    double heaviest = 0;
    for (std::int32_t v = 0; v < n; ++v) {
        for (const double weight : graph_.weights(v)) heaviest = std::max(heaviest, weight);
    }
    if (heaviest > 0) scale_ = std::ldexp(1.0, kFixedPointBits - 1 - std::ilogb(heaviest));
    weight_.assign(index(n, 0), 0);
    for (std::int32_t v = 0; v < n; ++v) {
        const auto row = graph_.neighbors(v);
        for (std::size_t i = 0; i < row.size(); ++i) {
            const Fixed weight = std::max<Fixed>(1, std::llround(graph_.weights(v)[i] * scale_));
            weight_[index(v, row[i])] = weight;
            distinct_.push_back(weight);
        }
    }
    std::sort(distinct_.begin(), distinct_.end(), std::greater<>());
    distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
    levels_ = make_levels(distinct_);
    edges_ = rows_of(1);
}

Fixed Target::Impl::to_fixed_up(double weight) const {
    if (!(weight > 0)) return 1;
    if (weight * scale_ >= static_cast<double>(std::numeric_limits<Fixed>::max() / 2)) {
        return std::numeric_limits<Fixed>::max();
    }
    // An edge of exactly this weight was rounded the same way and must stay in.
    return std::max<Fixed>(1, std::llround(weight * scale_));
}

Levels Target::Impl::make_levels(std::span<const Fixed> distinct) const {
    Levels levels;
    std::vector<Fixed> lightest;
    const std::size_t count = std::min(kMaxLevels, distinct.size());
    for (std::size_t i = 0; i < count; ++i) {
        levels.heaviest.push_back(distinct[i * distinct.size() / count]);
        lightest.push_back(distinct[(i + 1) * distinct.size() / count - 1]);
    }
    levels.level_of.assign(weight_.size(), 0);
    levels.at_least = BitRows(count * static_cast<std::size_t>(size()), width_of(size()));
    std::int64_t arcs = 0;
    for (std::int32_t u = 0; u < size(); ++u) {
        for (const std::int32_t v : graph_.neighbors(u)) {
            for (std::size_t i = count; i-- > 0 && weight(u, v) >= lightest[i];) {
                levels.level_of[index(u, v)] = static_cast<std::uint8_t>(i);
                levels.at_least.set(index(static_cast<std::int32_t>(i), u), v);
                arcs += i + 1 == count ? 1 : 0;
            }
        }
    }
    levels.exact = count == distinct.size();
    levels.complete = arcs == std::int64_t{size()} * (size() - 1);
    return levels;
}

Levels Target::Impl::levels_from(Fixed min_weight) const {
    const auto end = std::upper_bound(distinct_.begin(), distinct_.end(), min_weight, std::greater<>());
    return make_levels(std::span(distinct_.begin(), end));
}

BitRows Target::Impl::adjacency(Fixed min_weight) const {
    if (everything(min_weight)) return edges_;
    return rows_of(min_weight);
}

BitRows Target::Impl::rows_of(Fixed min_weight) const {
    BitRows rows(static_cast<std::size_t>(size()), width_of(size()));
    for (std::int32_t u = 0; u < size(); ++u) {
        for (const std::int32_t v : graph_.neighbors(u)) {
            if (weight(u, v) >= min_weight) rows.set(static_cast<std::size_t>(u), v);
        }
    }
    return rows;
}

std::vector<std::int32_t> Target::Impl::orbits(const std::vector<bool>& free) const {
    const std::int32_t n = size();
    std::call_once(lazy_->once, [&] {
        if (n > kMaxSymmetryVertices) return;
        ColoredGraph colored{n, {}};
        for (const Fixed weight : weight_) {
            const auto found = std::lower_bound(distinct_.begin(), distinct_.end(), weight, std::greater<>());
            colored.color.push_back(static_cast<std::uint32_t>(found - distinct_.begin()));
        }
        std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
        std::iota(ids.begin(), ids.end(), 0);
        lazy_->generators = stabilizer_chain(colored, ids).generators;
    });
    std::vector<Permutation> keeping;
    for (const Permutation& image : lazy_->generators) {
        bool keeps = true;
        for (std::size_t v = 0; v < image.size(); ++v)
            keeps &= free[v] == free[static_cast<std::size_t>(image[v])];
        if (keeps) keeping.push_back(image);
    }
    return orbits_of(n, keeping);
}

Target::Target(const Graph& graph) : impl_(std::make_shared<const Impl>(graph)) {}
std::int32_t Target::num_vertices() const { return impl_->size(); }

}  // namespace topoplace::match
