// Packed regions: the nearest vertices around each of some, and the parts of the tree that just fit.
#include "mapping/regions.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "graph/index.hpp"

namespace topoplace::mapping {
namespace {

// Up to this number of free vertices, each is the middle of a region.
constexpr std::size_t kFew = 64;

using Vertices = std::span<const std::int32_t>;

struct Rated {
    double score = 0;  // an estimate of what a mapping costs there
    Region vertices;

    friend bool operator<(const Rated& a, const Rated& b) {
        return std::tie(a.score, a.vertices) < std::tie(b.score, b.vertices);
    }
};

class Packing {
  public:
    Packing(const Source::Impl& source, const Target::Impl& target, Vertices free,
            std::span<const double> target_cost)
        : target_(target),
          free_(free),
          price_(target_cost),
          wanted_(index(source.size())),
          weight_(source.total_weight() / source.size()),
          keys_(index(target.size())) {}

    Rated around(std::int32_t middle) {
        TOPOPLACE_ASSERT(wanted_ > 0 && wanted_ <= free_.size());
        nearest_.assign(free_.begin(), free_.end());
        for (const std::int32_t v : free_) keys_[index(v)] = key(middle, v);
        const auto end = nearest_.begin() + static_cast<std::ptrdiff_t>(wanted_);
        const auto before = [this](std::int32_t u, std::int32_t v) {
            return keys_[index(u)] != keys_[index(v)] ? keys_[index(u)] < keys_[index(v)] : u < v;
        };
        if (end != nearest_.end()) std::nth_element(nearest_.begin(), end, nearest_.end(), before);
        Rated region{0, Region(nearest_.begin(), end)};
        std::sort(region.vertices.begin(), region.vertices.end());
        for (const std::int32_t v : region.vertices) region.score += keys_[index(v)];
        return region;
    }

    // The free vertices of each smallest part that has enough of them.
    std::vector<Rated> parts() const {
        const Halves& halves = target_.halves();
        const auto before = free_before(halves);
        const auto holds = [&](const Part& part) {
            return index(before[index(part.end)] - before[index(part.begin)]) >= wanted_;
        };
        const auto half_holds = [&](const Part& part) {
            return part.size() > 1 &&
                   (holds(halves.parts[index(part.half[0])]) || holds(halves.parts[index(part.half[1])]));
        };
        std::vector<Rated> found;
        for (const Part& part : halves.parts) {
            if (holds(part) && !half_holds(part)) found.push_back(rated(part, halves, before));
        }
        return found;
    }

  private:
    double key(std::int32_t middle, std::int32_t v) const {
        return weight_ * target_.distance(middle, v) + (price_.empty() ? 0 : price_[index(v)]);
    }

    // By leaf of the tree, how many before it are free.
    std::vector<std::int32_t> free_before(const Halves& halves) const {
        std::vector<std::int32_t> is_free(index(target_.size()), 0);
        for (const std::int32_t v : free_) is_free[index(v)] = 1;
        std::vector<std::int32_t> before(halves.order.size() + 1, 0);
        for (std::size_t i = 0; i < halves.order.size(); ++i)
            before[i + 1] = before[i] + is_free[index(halves.order[i])];
        return before;
    }

    // Scored from its first free vertex to as many as are wanted.
    Rated rated(const Part& part, const Halves& halves, const std::vector<std::int32_t>& before) const {
        Rated region;
        for (std::int32_t leaf = part.begin; leaf < part.end; ++leaf) {
            if (before[index(leaf)] == before[index(leaf) + 1]) continue;
            const std::int32_t v = halves.order[index(leaf)];
            region.vertices.push_back(v);
            if (region.vertices.size() <= wanted_) region.score += key(region.vertices.front(), v);
        }
        return region;
    }

    const Target::Impl& target_;
    Vertices free_;
    std::span<const double> price_;
    std::size_t wanted_;
    double weight_;  // of a task to the rest of its job
    std::vector<double> keys_;
    std::vector<std::int32_t> nearest_;
};

void keep_best(std::vector<Rated>& regions, std::size_t most) {
    const auto named = [](const Rated& a, const Rated& b) {
        return std::tie(a.vertices, a.score) < std::tie(b.vertices, b.score);
    };
    const auto same = [](const Rated& a, const Rated& b) { return a.vertices == b.vertices; };
    std::sort(regions.begin(), regions.end(), named);
    regions.erase(std::unique(regions.begin(), regions.end(), same), regions.end());
    std::sort(regions.begin(), regions.end());
    if (regions.size() > most) regions.resize(most);
}

}  // namespace

std::optional<std::vector<Region>> packed_regions(const Source::Impl& source, const Target::Impl& target,
                                                  std::span<const std::int32_t> free,
                                                  std::span<const double> target_cost, std::size_t most,
                                                  WorkMeter& meter) {
    TOPOPLACE_ASSERT(std::ranges::is_sorted(free) && source.size() > 0);
    Packing packing(source, target, free, target_cost);
    const std::size_t count = std::min(kFew, free.size());
    std::vector<std::int32_t> middles;
    for (std::size_t i = 0; i < count; ++i) middles.push_back(free[i * free.size() / count]);
    std::vector<Rated> parts;
    if (free.size() > kFew) parts = packing.parts();
    keep_best(parts, kFew);
    for (Rated& part : parts) {
        middles.push_back(part.vertices.front());
        std::sort(part.vertices.begin(), part.vertices.end());
    }
    std::vector<Rated> regions;
    for (const std::int32_t middle : middles) {
        if (meter.pass_time(64 * free.size())) return std::nullopt;
        regions.push_back(packing.around(middle));
    }
    keep_best(regions, most);
    keep_best(parts, most);
    regions.insert(regions.end(), parts.begin(), parts.end());
    std::vector<Region> result;
    for (Rated& region : regions) {
        TOPOPLACE_ASSERT(std::ssize(region.vertices) >= source.size());
        TOPOPLACE_ASSERT(std::ranges::includes(free, region.vertices));
        result.push_back(std::move(region.vertices));
    }
    return result;
}

}  // namespace topoplace::mapping
