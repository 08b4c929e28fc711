// Depth-first search over mappings whose images are found in lists of neighbours: enumeration and counting in
// large targets of low degree.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/pattern.hpp"
#include "match/sparse/ball.hpp"
#include "match/sparse/target.hpp"

namespace topoplace::match::sparse {

// Vertices, ascending.
class Images {
  public:
    explicit Images(std::span<const std::int32_t> members) : members_(members) {}

    std::int32_t count() const { return static_cast<std::int32_t>(members_.size()); }
    std::int32_t lowest() const { return members_.front(); }
    template <std::invocable<std::int32_t> Visit>
    void for_each(Visit&& visit) const {
        for (const std::int32_t v : members_) visit(v);
    }

  private:
    std::span<const std::int32_t> members_;
};

class Backtrack;

// The part of a search that does not depend on its visitor.
class Space {
  public:
    using Search = Backtrack;
    using Set = Images;
    using Layout = Target::Sparse;

    // None where `meter` stops.
    static std::optional<Space> make(const Pattern::Impl& pattern, const Target::Sparse& target,
                                     const EnumerateParams& params, WorkMeter& meter);

    std::int32_t target_size() const { return graph_.num_vertices(); }
    std::int32_t degree(std::int32_t v) const { return degree_[index(v)]; }
    bool may_go(std::int32_t u, std::int32_t v) const {
        if (degree_[index(v)] < pattern_.degree(u)) return false;
        return candidates_.empty() || candidates_[index(u) * index(target_size()) + index(v)] != 0;
    }
    bool adjacent(std::int32_t u, std::int32_t v) const {
        const double weight = graph_.degree(u) < graph_.degree(v) ? graph_.weight(u, v) : graph_.weight(v, u);
        return weight > 0 && weight >= min_weight_;
    }
    // Ascending.
    template <std::invocable<std::int32_t> Visit>
    void each_neighbor(std::int32_t v, Visit&& visit) const {
        const auto weights = graph_.weights(v);
        const auto neighbors = graph_.neighbors(v);
        for (std::size_t i = 0; i < neighbors.size(); ++i) {
            if (weights[i] >= min_weight_) visit(neighbors[i]);
        }
    }

    bool uniform = true;  // every pattern vertex is allowed the same vertices by the caller
    bool induced;

  private:
    Space(const Pattern::Impl& pattern, const Graph& graph, const EnumerateParams& params);

    const Pattern::Impl& pattern_;
    const Graph& graph_;
    double min_weight_;
    std::span<const std::uint8_t> candidates_;
    std::vector<std::int32_t> degree_;  // kAbsent for vertices that no embedding uses
};

class Backtrack {
  public:
    Backtrack(const Space& space, const Plan& plan, bool break_symmetry, WorkMeter& meter);

    // The image of the first vertex in the plan's order; all others exceed it.
    void fix_lowest(std::int32_t v) { root_ = v; }
    // Restricts the search to these vertices, ascending.
    void restrict_to(std::span<const std::int32_t> vertices) { within_ = vertices; }

    // visit(search, images) takes every placement of all but the last vertex, with the images that the last
    // one may take; false ends the search.
    template <class Visit>
    void run(Visit&& visit) {
        stopped_ = false;
        descend(0, visit);
    }

    // By depth; the last one is valid only where the visitor set it.
    std::span<const std::int32_t> images() const { return image_; }
    // Writes the mapping whose last vertex goes to `last`, by pattern vertex; returns that last vertex.
    std::int32_t write(std::int32_t last, std::int32_t* row) const {
        for (std::int32_t d = 0; d < last_; ++d) row[plan_.order[index(d)]] = image_[index(d)];
        row[plan_.order[index(last_)]] = last;
        return plan_.order[index(last_)];
    }

  private:
    // Images between these two, not counting them.
    struct Range {
        std::int32_t above;
        std::int32_t below;
    };
    Range range(std::int32_t depth) const;
    std::int32_t pivot_of(std::int32_t depth) const;
    void collect(std::int32_t depth);
    bool takes(std::int32_t depth, std::int32_t v, std::int32_t pivot) const;

    template <class Visit>
    void descend(std::int32_t depth, Visit& visit) {
        collect(depth);
        const std::vector<std::int32_t>& found = found_[index(depth)];
        if (depth == last_) {
            if (!found.empty() && !visit(*this, Images(found))) stopped_ = true;
            return;
        }
        if (meter_.visit() || meter_.pass_time(32 * found.size())) stopped_ = true;
        for (std::size_t i = 0; i < found.size() && !stopped_; ++i) {
            const std::int32_t v = found[i];
            image_[index(depth)] = v;
            if (depth == 0) center(v);
            used_[index(v)] = true;
            descend(depth + 1, visit);
            used_[index(v)] = false;
        }
    }
    void center(std::int32_t v) {
        ball_.center(v, [this](std::int32_t x, auto&& see) { space_.each_neighbor(x, see); }, meter_);
    }

    const Space& space_;
    const Plan& plan_;
    const bool break_symmetry_;
    WorkMeter& meter_;
    const std::int32_t last_;
    std::vector<std::int32_t> image_;
    std::vector<std::vector<std::int32_t>> found_;  // by depth
    std::vector<bool> used_;
    RootBall ball_;
    std::span<const std::int32_t> within_;
    std::int32_t root_ = kAbsent;
    bool stopped_ = false;
};

}  // namespace topoplace::match::sparse
