// Small sets of free vertices to look at first: as few components over heavy edges as hold the pattern.
//
// On a cluster these are the free GPUs of a few machines, mostly of one rack. Where the sets are exhaustive
// and no embedding over more components can be as good, they hold all best embeddings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/target.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::match {

// The connected components of `usable` in the graph whose row of vertex v is rows[base + v]; only up to the
// first of at least `enough` vertices.
template <int W>
std::vector<Bits<W>> components(const BitRows& rows, std::size_t base, const Bits<W>& usable,
                                std::int32_t enough = kMaxDenseVertices + 1) {
    std::vector<Bits<W>> found;
    Bits<W> unseen = usable;
    while (unseen.any() && (found.empty() || found.back().count() < enough)) {
        Bits<W> component = Bits<W>::single(unseen.lowest());
        Bits<W> fresh = component;
        while (fresh.any()) {
            Bits<W> next;
            fresh.for_each([&](std::int32_t v) { next |= rows.get<W>(base + index(v)); });
            fresh = (next & usable) - component;
            component |= fresh;
        }
        TOPOPLACE_ASSERT(!(component - unseen).any());
        unseen -= component;
        found.push_back(component);
    }
    return found;
}

// Without those that have fewer neighbours left than `least`, again and again.
template <int W>
Bits<W> core(const BitRows& rows, Bits<W> usable, std::int32_t least) {
    for (bool shrinks = true; shrinks;) {
        const Bits<W> before = usable;
        before.for_each([&](std::int32_t v) {
            if ((rows.get<W>(index(v)) & usable).count() < least) usable.reset(v);
        });
        shrinks = usable != before;
    }
    return usable;
}

template <int W>
class PackedSets {
  public:
    // size: number of vertices of the pattern. most: number of sets.
    PackedSets(const Levels& levels, std::int32_t num_vertices, const Bits<W>& usable, std::int32_t size,
               std::size_t most)
        : size_(size), most_(most) {
        std::vector<Bits<W>> wholes;
        for (; level_ < levels.count(); ++level_) {
            wholes = components(levels.at_least, level_ * index(num_vertices), usable);
            if (std::any_of(wholes.begin(), wholes.end(), [this](const auto& one) { return holds(one); }))
                break;
            parts_ = std::move(wholes);
        }
        if (parts_.empty()) return;
        std::stable_sort(parts_.begin(), parts_.end(),
                         [](const Bits<W>& a, const Bits<W>& b) { return a.count() > b.count(); });
        for (std::int32_t room = 0; room < size_; ++fewest_) room += parts_[fewest_].count();
        if (combine(parts_, 0, fewest_, Bits<W>{})) {
            is_exhaustive_ = true;
            return;
        }
        sets_.clear();
        for (const Bits<W>& whole : wholes) add_within(whole);
    }

    const std::vector<Bits<W>>& sets() const { return sets_; }
    // The components that sets are unions of, the largest first: over edges heavier than those of level().
    const std::vector<Bits<W>>& parts() const { return parts_; }
    std::size_t level() const { return level_; }
    // How many of them hold the pattern at least, and make up each set.
    std::int32_t fewest() const { return static_cast<std::int32_t>(fewest_); }
    // Each union of so few components that holds the pattern is among the sets.
    bool is_exhaustive() const { return is_exhaustive_; }

  private:
    bool holds(const Bits<W>& set) const { return set.count() >= size_; }

    void add_within(const Bits<W>& whole) {
        if (!holds(whole)) return;
        std::vector<Bits<W>> parts;
        for (const Bits<W>& part : parts_) {
            if ((part & whole).any()) parts.push_back(part);
        }
        std::size_t fewest = 0;
        for (std::int32_t room = 0; room < size_; ++fewest) room += parts[fewest].count();
        combine(parts, 0, fewest, Bits<W>{});
    }

    // Adds the unions of `chosen` and `more` of the parts from `first` on that are large enough; false where
    // there are too many.
    bool combine(const std::vector<Bits<W>>& parts, std::size_t first, std::size_t more,
                 const Bits<W>& chosen) {
        if (more == 0) {
            sets_.push_back(chosen);
            return true;
        }
        for (std::size_t i = first; i + more <= parts.size(); ++i) {
            const std::int32_t room = chosen.count() + static_cast<std::int32_t>(more) * parts[i].count();
            if (room < size_) return true;  // parts come by descending size
            Bits<W> with = chosen;
            with |= parts[i];
            if (sets_.size() >= most_ || !combine(parts, i + 1, more - 1, with)) return false;
        }
        return true;
    }

    const std::int32_t size_;
    const std::size_t most_;
    std::size_t level_ = 0;
    std::size_t fewest_ = 0;
    bool is_exhaustive_ = false;
    std::vector<Bits<W>> parts_;
    std::vector<Bits<W>> sets_;
};

}  // namespace topoplace::match
