// The nodes and arcs of a network that changes: columns by number, and lists of each node's arcs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "topoplace/flow.hpp"

namespace topoplace::flow {

class ArcLists {
  public:
    std::int32_t add_node(std::int64_t supply);
    std::int32_t add_arc(std::int32_t tail, std::int32_t head, std::int64_t capacity, std::int64_t cost);
    void remove_node(std::int32_t node);  // which has no arcs
    void remove_arc(std::int32_t arc);

    bool has_node(std::int32_t node) const { return in_range(node, alive_) && alive_[index(node)] != 0; }
    bool has_arc(std::int32_t arc) const { return in_range(arc, tail_) && tail_list_[index(arc)].used; }
    Network network() const {
        return {.num_nodes = static_cast<std::int32_t>(supply_.size()),
                .tail = tail_,
                .head = head_,
                .lower = {},
                .capacity = capacity_,
                .cost = cost_,
                .supply = supply_};
    }
    std::vector<std::int32_t> arcs_from(std::int32_t node) const {
        return listed(first_out_, tail_list_, node);
    }
    std::vector<std::int32_t> arcs_to(std::int32_t node) const { return listed(first_in_, head_list_, node); }
    // The arcs that leave a node, one after the other; kAbsent: no more.
    std::int32_t first_from(std::int32_t node) const { return first_out_[index(node)]; }
    std::int32_t next_from(std::int32_t arc) const { return tail_list_[index(arc)].next; }
    std::int32_t num_nodes() const { return static_cast<std::int32_t>(supply_.size() - free_nodes_.size()); }
    std::int32_t num_arcs() const { return static_cast<std::int32_t>(tail_.size() - free_arcs_.size()); }

    std::int32_t tail(std::int32_t arc) const { return tail_[index(arc)]; }
    std::int32_t head(std::int32_t arc) const { return head_[index(arc)]; }
    std::int64_t& capacity(std::int32_t arc) { return capacity_[index(arc)]; }
    std::int64_t& cost(std::int32_t arc) { return cost_[index(arc)]; }
    std::int64_t& supply(std::int32_t node) { return supply_[index(node)]; }

  private:
    struct Link {
        std::int32_t next = kAbsent;
        std::int32_t previous = kAbsent;
        bool used = false;
    };
    using Links = std::vector<Link>;

    template <class T>
    static bool in_range(std::int32_t i, const std::vector<T>& rows) {
        return i >= 0 && index(i) < rows.size();
    }
    static void link(Links& links, std::int32_t& first, std::int32_t arc);
    static void unlink(Links& links, std::int32_t& first, std::int32_t arc);
    static std::vector<std::int32_t> listed(const std::vector<std::int32_t>& first, const Links& links,
                                            std::int32_t node);

    std::vector<std::int64_t> supply_;
    std::vector<std::uint8_t> alive_;
    std::vector<std::int32_t> first_out_;
    std::vector<std::int32_t> first_in_;
    std::vector<std::int32_t> free_nodes_;
    std::vector<std::int32_t> tail_;
    std::vector<std::int32_t> head_;
    std::vector<std::int64_t> capacity_;
    std::vector<std::int64_t> cost_;
    Links tail_list_;  // by arc: its neighbors in the list of its tail
    Links head_list_;
    std::vector<std::int32_t> free_arcs_;
};

}  // namespace topoplace::flow
