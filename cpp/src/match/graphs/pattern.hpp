// A pattern's search plans: the order its vertices are placed in, and all that depends on the depth alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/ragged.hpp"
#include "match/graphs/spread.hpp"
#include "match/graphs/symmetry.hpp"
#include "topoplace/mapping.hpp"
#include "topoplace/match.hpp"

namespace topoplace::match {

struct Reach {
    std::int32_t depth;   // of the vertex placed earlier
    std::int32_t radius;  // the largest distance, in edges, of the image from that vertex's image
};

// Rows are indexed by depth d: d vertices are placed and order[d] comes next.
struct Plan {
    std::vector<std::int32_t> order;
    // One entry more than depths: the edges not covered yet, and those of them that no placed vertex touches.
    std::vector<std::int32_t> rest;
    std::vector<std::int32_t> inner_rest;
    Ragged<std::int32_t> back;   // earlier depths adjacent to order[d]
    Ragged<std::int32_t> apart;  // earlier depths not adjacent to it
    Ragged<Reach> reach;         // distance limits that no other row implies
    Ragged<std::int32_t>
        greater;  // the image exceeds those of these depths: one mapping an image, the smallest
    Ragged<std::int32_t> less;
    std::vector<std::int32_t> followers;  // vertices placed later whose images exceed this one's
    Ragged<std::int32_t>
        siblings;  // earlier depths i with order[d] in the orbit of order[i] (chain along order)
    Ragged<std::int32_t> settled;  // earlier depths whose orbit holds all of order[d ..]
    Ragged<std::int32_t> open;     // for each earlier depth, its uncovered edges
    // Entry i: how many of order[d ..] have more than i edges; edges to placed vertices; to vertices not
    // placed.
    Ragged<std::int32_t> at_least;
    Ragged<std::int32_t> outer_at_least;
    Ragged<std::int32_t> inner_at_least;
};

// What is made on first use is null, none or empty where `meter` stops; the next call starts over.
class Pattern::Impl {
  public:
    // distance: from every vertex to every other, in edges; the number of vertices where there is no path.
    Impl(const Graph& graph, std::vector<std::int32_t> distance);

    const Graph& graph() const { return graph_; }
    std::int32_t size() const { return size_; }
    std::int64_t num_edges() const { return num_edges_; }
    std::int32_t max_degree() const { return max_degree_; }
    std::int32_t min_degree() const { return min_degree_; }
    std::int32_t degree(std::int32_t u) const { return static_cast<std::int32_t>(neighbors_[u].size()); }
    std::span<const std::int32_t> neighbors(std::int32_t u) const { return neighbors_[u]; }

    // Most constrained vertex first.
    const Plan* plan(WorkMeter& meter) const { return rooted(root_, meter); }
    const Plan* rooted(std::int32_t root, WorkMeter& meter) const;
    // Vertices in the order of their ids.
    const Plan* natural(WorkMeter& meter) const;
    // One vertex, the smallest, of each orbit of the automorphism group.
    std::span<const std::int32_t> representatives(WorkMeter& meter) const;
    std::optional<double> num_automorphisms(WorkMeter& meter) const;
    const Spread& spread() const;
    // For the mapping kernel; all edges weigh the same.
    const mapping::Source& source() const;

  private:
    struct Lazy;
    std::vector<std::int32_t> order_from(std::int32_t root) const;
    std::unique_ptr<Plan> make_plan(const std::vector<std::int32_t>& order, WorkMeter& meter) const;
    // ids: along the vertices' numbers; along: the order of the plan; settled_from: by depth.
    void add_relations(Plan& plan, std::int32_t depth, const StabilizerChain& ids,
                       const StabilizerChain& along, std::span<const std::int32_t> settled_from) const;
    bool is_order(std::vector<std::int32_t> order) const;
    void add_followers(Plan& plan) const;
    void add_reach(Plan& plan, std::int32_t depth) const;
    void add_counts(Plan& plan, std::int32_t depth) const;
    const StabilizerChain* natural_chain(WorkMeter& meter) const;
    bool adjacent(std::int32_t u, std::int32_t v) const { return distance(u, v) == 1; }
    std::int32_t distance(std::int32_t u, std::int32_t v) const {
        return distance_[index(u) * index(size_) + index(v)];
    }

    Graph graph_;
    std::int32_t size_;
    std::int64_t num_edges_;
    std::int32_t max_degree_ = 0;
    std::int32_t min_degree_ = 0;
    std::int32_t root_ = 0;
    Ragged<std::int32_t> neighbors_;
    std::vector<std::int32_t> distance_;
    ColoredGraph colored_;
    std::shared_ptr<Lazy> lazy_;
};

}  // namespace topoplace::match
