// Doubly linked lists of arcs by tail and by head, in tables whose free rows are used again.
#include "flow/general/arc_lists.hpp"

#include "topoplace/assert.hpp"

namespace topoplace::flow {

void ArcLists::link(Links& links, std::int32_t& first, std::int32_t arc) {
    TOPOPLACE_ASSERT(!links[index(arc)].used);
    links[index(arc)] = {.next = first, .previous = kAbsent, .used = true};
    if (first >= 0) links[index(first)].previous = arc;
    first = arc;
}

void ArcLists::unlink(Links& links, std::int32_t& first, std::int32_t arc) {
    const Link link = links[index(arc)];
    TOPOPLACE_ASSERT(link.used);
    TOPOPLACE_ASSERT(link.previous >= 0 ? links[index(link.previous)].next == arc : first == arc);
    if (link.previous >= 0) {
        links[index(link.previous)].next = link.next;
    } else {
        first = link.next;
    }
    if (link.next >= 0) links[index(link.next)].previous = link.previous;
    links[index(arc)] = {};
}

std::vector<std::int32_t> ArcLists::listed(const std::vector<std::int32_t>& first, const Links& links,
                                           std::int32_t node) {
    std::vector<std::int32_t> arcs;
    for (std::int32_t arc = first[index(node)]; arc >= 0; arc = links[index(arc)].next) arcs.push_back(arc);
    return arcs;
}

std::int32_t ArcLists::add_node(std::int64_t supply) {
    if (free_nodes_.empty()) {
        supply_.push_back(supply);
        alive_.push_back(1);
        first_out_.push_back(kAbsent);
        first_in_.push_back(kAbsent);
        return static_cast<std::int32_t>(supply_.size()) - 1;
    }
    const std::int32_t node = free_nodes_.back();
    TOPOPLACE_ASSERT(!has_node(node));
    free_nodes_.pop_back();
    supply_[index(node)] = supply;
    alive_[index(node)] = 1;
    return node;
}

std::int32_t ArcLists::add_arc(std::int32_t tail, std::int32_t head, std::int64_t capacity,
                               std::int64_t cost) {
    TOPOPLACE_ASSERT(has_node(tail) && has_node(head));
    auto arc = static_cast<std::int32_t>(tail_.size());
    if (free_arcs_.empty()) {
        tail_.emplace_back();
        head_.emplace_back();
        capacity_.emplace_back();
        cost_.emplace_back();
        tail_list_.emplace_back();
        head_list_.emplace_back();
    } else {
        arc = free_arcs_.back();
        free_arcs_.pop_back();
    }
    tail_[index(arc)] = tail;
    head_[index(arc)] = head;
    capacity_[index(arc)] = capacity;
    cost_[index(arc)] = cost;
    link(tail_list_, first_out_[index(tail)], arc);
    link(head_list_, first_in_[index(head)], arc);
    return arc;
}

void ArcLists::remove_node(std::int32_t node) {
    TOPOPLACE_ASSERT(has_node(node));
    TOPOPLACE_ASSERT(first_out_[index(node)] < 0 && first_in_[index(node)] < 0);
    supply_[index(node)] = 0;
    alive_[index(node)] = 0;
    free_nodes_.push_back(node);
}

void ArcLists::remove_arc(std::int32_t arc) {
    TOPOPLACE_ASSERT(has_arc(arc));
    unlink(tail_list_, first_out_[index(tail(arc))], arc);
    unlink(head_list_, first_in_[index(head(arc))], arc);
    capacity_[index(arc)] = 0;
    cost_[index(arc)] = 0;
    free_arcs_.push_back(arc);
}

}  // namespace topoplace::flow
