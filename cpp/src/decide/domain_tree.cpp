// One depth after the other, over machines in the order of their domains.
#include "topoplace/domain_tree.hpp"

#include <algorithm>
#include <numeric>

#include "graph/index.hpp"
#include "job_traffic/checks.hpp"

namespace topoplace::decide {
namespace {

constexpr std::int32_t kAnyRoom = INT32_MAX;

// Equal values have equal numbers, ascending from 0.
std::vector<std::int32_t> numbered(const std::vector<std::int64_t>& values) {
    std::vector<std::int64_t> different = values;
    std::ranges::sort(different);
    different.erase(std::unique(different.begin(), different.end()), different.end());
    std::vector<std::int32_t> found;
    for (const std::int64_t value : values)
        found.push_back(
            static_cast<std::int32_t>(std::ranges::lower_bound(different, value) - different.begin()));
    return found;
}

}  // namespace

Fault DomainTree::check(const DomainTreeParams& params) {
    if (params.levels.empty()) return "levels are none: machines are the last one";
    const std::size_t machines = params.levels.back().codes.size(), offers = params.machines.size();
    for (const TreeLevel& level : params.levels) {
        if (auto fault = traffic::check_size("codes", level.codes.size(), machines)) return fault;
        if (auto fault = traffic::check_size("domains", level.domains.size(), machines)) return fault;
    }
    if (auto fault = traffic::check_once("machines", params.machines, machines)) return fault;
    if (auto fault = traffic::check_size("sizes", params.sizes.size(), offers)) return fault;
    if (auto fault = traffic::check_range("sizes", params.sizes, 0, kAnyRoom)) return fault;
    if (params.socket_ends.empty()) return traffic::check_size("socket_sizes", params.socket_sizes.size(), 0);
    if (auto fault = traffic::check_size("socket_ends", params.socket_ends.size(), offers)) return fault;
    for (std::size_t i = 0; i < offers; ++i) {
        const std::int32_t before = i == 0 ? 0 : params.socket_ends[i - 1];
        if (params.socket_ends[i] <= before)
            return traffic::wrong("socket_ends", i, params.socket_ends[i], "no more than the one before");
    }
    if (auto fault = traffic::check_range("socket_sizes", params.socket_sizes, 0, kAnyRoom)) return fault;
    return traffic::check_size("socket_sizes", params.socket_sizes.size(), index(params.socket_ends.back()));
}

DomainTree::DomainTree(const DomainTreeParams& params)
    : order_(params.machines.size()), room_{kAnyRoom}, above_(params.machines.size(), 0) {
    std::iota(order_.begin(), order_.end(), 0);
    const auto is_before = [&](std::int32_t a, std::int32_t b) {
        const std::size_t here = index(params.machines[index(a)]), there = index(params.machines[index(b)]);
        for (const TreeLevel& level : params.levels) {
            if (level.codes[here] != level.codes[there]) return level.codes[here] < level.codes[there];
        }
        return false;
    };
    if (!std::ranges::is_sorted(order_, is_before)) std::ranges::stable_sort(order_, is_before);
    std::vector<std::int32_t> machines;
    for (const std::int32_t offer : order_) machines.push_back(params.machines[index(offer)]);
    for (const TreeLevel& level : params.levels) add(level, machines);
    for (std::size_t i = 0; i < order_.size(); ++i) room_[index(above_[i])] = params.sizes[index(order_[i])];
    machine_of_.resize(order_.size());
    std::iota(machine_of_.begin(), machine_of_.end(), 0);
    if (!params.socket_ends.empty()) add_sockets(params);
}

void DomainTree::add(const TreeLevel& level, std::span<const std::int32_t> machines) {
    std::vector<std::int64_t>& domains = domains_.emplace_back();
    std::int32_t last_above = kAbsent;
    for (std::size_t i = 0; i < machines.size(); ++i) {
        const std::size_t machine = index(machines[i]);
        const bool is_same =
            above_[i] == last_above && level.codes[machine] == level.codes[index(machines[i - 1])];
        last_above = above_[i];
        if (!is_same) {
            parent_.push_back(above_[i]);
            room_.push_back(kAnyRoom);
        }
        above_[i] = static_cast<std::int32_t>(parent_.size()) - 1;
        domains.push_back(level.domains[machine]);
    }
    firsts_.push_back(parent_.size());
}

void DomainTree::add_sockets(const DomainTreeParams& params) {
    machine_of_.clear();
    for (std::size_t i = 0; i < order_.size(); ++i) {
        const std::size_t offer = index(order_[i]);
        const std::int32_t begin = offer == 0 ? 0 : params.socket_ends[offer - 1];
        for (std::int32_t socket = begin; socket < params.socket_ends[offer]; ++socket) {
            parent_.push_back(above_[i]);
            room_.push_back(params.socket_sizes[index(socket)]);
            machine_of_.push_back(static_cast<std::int32_t>(i));
        }
    }
    firsts_.push_back(parent_.size());
}

std::vector<std::int32_t> DomainTree::domains_of(std::size_t level) const {
    std::vector<std::int32_t> found(num_leaves());
    std::iota(found.begin(), found.end(), 0);
    if (level >= domains_.size()) return found;
    const std::vector<std::int32_t> domain_of = numbered(domains_[level]);
    for (std::int32_t& leaf : found) leaf = domain_of[index(machine_of_[index(leaf)])];
    return found;
}

std::vector<std::int32_t> DomainTree::part_of(std::size_t level) const {
    std::vector<std::int32_t> found(num_leaves());
    std::iota(found.begin(), found.end(), static_cast<std::int32_t>(first_leaf()));
    for (std::size_t depth = num_depths() - 1; depth > level + 1; --depth) {
        for (std::int32_t& domain : found) domain = parent_[index(domain)];
    }
    return found;
}

}  // namespace topoplace::decide
