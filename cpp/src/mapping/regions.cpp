#include "mapping/regions.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace topoplace::mapping {
namespace {

// Up to so many free vertices, each is the middle of a region.
constexpr std::size_t kFew = 64;

using Vertices = std::span<const std::int32_t>;

class Packing {
  public:
    Packing(const Source::Impl& source, const Target::Impl& target, Vertices free,
            std::span<const double> target_cost)
        : target_(target),
          free_(free),
          price_(target_cost),
          wanted_(at(source.size())),
          weight_(source.total_weight() / source.size()),
          keys_(at(target.size())) {}

    PackedRegion around(std::int32_t middle) {
        nearest_.assign(free_.begin(), free_.end());
        for (const std::int32_t v : free_) keys_[at(v)] = weight_ * target_.distance(middle, v) + price(v);
        const auto end = nearest_.begin() + static_cast<std::ptrdiff_t>(wanted_);
        const auto before = [this](std::int32_t u, std::int32_t v) {
            return keys_[at(u)] != keys_[at(v)] ? keys_[at(u)] < keys_[at(v)] : u < v;
        };
        if (end != nearest_.end()) std::nth_element(nearest_.begin(), end, nearest_.end(), before);
        PackedRegion region{0, Region(nearest_.begin(), end)};
        std::sort(region.vertices.begin(), region.vertices.end());
        for (const std::int32_t v : region.vertices) region.score += keys_[at(v)];
        return region;
    }

    // The first free vertex of each smallest part that holds enough, tightest part first.
    std::vector<std::int32_t> middles_of_parts(std::size_t most) {
        std::vector<std::uint8_t> is_free(at(target_.size()), 0);
        for (const std::int32_t v : free_) is_free[at(v)] = 1;
        const Halves& halves = target_.halves();
        std::vector<std::int32_t> before(halves.order.size() + 1, 0);  // free ones left of a leaf
        for (std::size_t i = 0; i < halves.order.size(); ++i)
            before[i + 1] = before[i] + is_free[at(halves.order[i])];
        const auto holds = [&](std::int32_t part) {
            const Part& bounds = halves.parts[at(part)];
            return static_cast<std::size_t>(before[at(bounds.end)] - before[at(bounds.begin)]) >= wanted_;
        };
        std::vector<std::pair<double, std::int32_t>> found;
        for (const Part& part : halves.parts) {
            const auto index = static_cast<std::int32_t>(&part - halves.parts.data());
            if (!holds(index) || (part.size() > 1 && (holds(part.half[0]) || holds(part.half[1])))) continue;
            found.push_back(tightness(part, halves, is_free));
        }
        std::sort(found.begin(), found.end());
        std::vector<std::int32_t> middles;
        for (std::size_t i = 0; i < std::min(most, found.size()); ++i) middles.push_back(found[i].second);
        return middles;
    }

  private:
    double price(std::int32_t v) const { return price_.empty() ? 0 : price_[at(v)]; }

    // From the first free vertex of a part to as many others as are wanted.
    std::pair<double, std::int32_t> tightness(const Part& part, const Halves& halves,
                                              const std::vector<std::uint8_t>& is_free) const {
        double sum = 0;
        std::size_t seen = 0;
        std::int32_t middle = -1;
        for (std::int32_t leaf = part.begin; leaf < part.end && seen < wanted_; ++leaf) {
            const std::int32_t v = halves.order[at(leaf)];
            if (is_free[at(v)] == 0) continue;
            if (middle < 0) middle = v;
            sum += weight_ * target_.distance(middle, v) + price(v);
            ++seen;
        }
        return {sum, middle};
    }

    const Target::Impl& target_;
    Vertices free_;
    std::span<const double> price_;
    std::size_t wanted_;
    double weight_;  // of a task to the rest of its job
    std::vector<double> keys_;
    std::vector<std::int32_t> nearest_;
};

std::vector<std::int32_t> spread_over(Vertices free, std::size_t count) {
    std::vector<std::int32_t> chosen;
    count = std::min(count, free.size());
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(free[i * free.size() / count]);
    return chosen;
}

}  // namespace

std::vector<PackedRegion> packed_regions(const Source::Impl& source, const Target::Impl& target,
                                         std::span<const std::int32_t> free,
                                         std::span<const double> target_cost, std::size_t most) {
    Packing packing(source, target, free, target_cost);
    std::vector<std::int32_t> middles = spread_over(free, kFew);
    if (free.size() > kFew) {
        const auto tight = packing.middles_of_parts(kFew);
        middles.insert(middles.end(), tight.begin(), tight.end());
    }
    std::vector<PackedRegion> regions;
    for (const std::int32_t middle : middles) regions.push_back(packing.around(middle));
    const auto key = [](const PackedRegion& region) { return std::tie(region.score, region.vertices); };
    std::sort(regions.begin(), regions.end(),
              [&](const PackedRegion& a, const PackedRegion& b) { return key(a) < key(b); });
    const auto same = [](const PackedRegion& a, const PackedRegion& b) { return a.vertices == b.vertices; };
    regions.erase(std::unique(regions.begin(), regions.end(), same), regions.end());
    if (regions.size() > most) regions.resize(most);
    return regions;
}

}  // namespace topoplace::mapping
