// The fill of domains, kept as the state changes, and the search for the fullest that has room.
#include "topoplace/domain_fill.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include "graph/index.hpp"

namespace topoplace {

namespace {

constexpr std::size_t kFewMachines = 256;  // so few are compared one by one

}  // namespace

Fault DomainFill::check(std::int32_t num_machines, const std::vector<std::vector<std::int32_t>>& domain_of) {
    for (std::size_t level = 0; level < domain_of.size(); ++level) {
        const std::string its = "domain_of[" + std::to_string(level) + "]";
        if (domain_of[level].size() != index(num_machines)) return its + " has not a number for each machine";
        if (level == 0) continue;
        std::map<std::int32_t, std::int32_t> parent_of;
        for (std::size_t machine = 0; machine < domain_of[level].size(); ++machine) {
            const std::int32_t parent = domain_of[level - 1][machine];
            if (parent_of.try_emplace(domain_of[level][machine], parent).first->second != parent)
                return its + "[" + std::to_string(machine) + "] is in two domains of the level before";
        }
    }
    return std::nullopt;
}

DomainFill::DomainFill(MachineConditions& conditions, const std::vector<std::vector<std::int32_t>>& domain_of)
    : conditions_(&conditions),
      levels_(static_cast<std::int32_t>(domain_of.size())),
      nodes_(1),
      free_(index(conditions.num_machines()), 0) {
    TOPOPLACE_ASSERT(!check(conditions.num_machines(), domain_of));
    for (std::size_t level = 0; level < domain_of.size(); ++level) {
        std::map<std::int32_t, std::int32_t> node_of;
        std::vector<std::int32_t> nodes(free_.size());
        for (std::size_t machine = 0; machine < free_.size(); ++machine) {
            const std::int32_t parent = level == 0 ? 0 : node_of_[level - 1][machine];
            const auto [place, is_new] =
                node_of.try_emplace(domain_of[level][machine], static_cast<std::int32_t>(nodes_.size()));
            if (is_new) {
                nodes_.emplace_back();
                nodes_[index(parent)].children.push_back(place->second);
            }
            nodes[machine] = place->second;
        }
        node_of_.push_back(std::move(nodes));
        numbers_.emplace_back();
        for (const auto& [_, node] : node_of) numbers_.back().push_back(node);
    }
    for (std::size_t machine = 0; machine < free_.size(); ++machine) {
        const std::int32_t innermost = levels_ == 0 ? 0 : node_of_.back()[machine];
        nodes_[index(innermost)].children.push_back(static_cast<std::int32_t>(machine));
    }
    conditions_->refresh();
    count_all();
}

std::int64_t DomainFill::free_gpus(std::int32_t machine) const {
    std::int64_t count = 0;
    for (const std::uint64_t word : conditions_->condition(conditions_->condition_of(machine)).free)
        count += std::popcount(word);
    return count;
}

void DomainFill::add(std::int32_t machine, std::int64_t free) {
    free_[index(machine)] += free;
    for (std::int32_t level = 0; level < levels_; ++level)
        nodes_[index(node_of_[index(level)][index(machine)])].free += free;
}

void DomainFill::count_all() {
    for (std::int32_t machine = 0; machine < conditions_->num_machines(); ++machine)
        add(machine, free_gpus(machine) - free_[index(machine)]);
    seen_ = conditions_->state().changes().end();
}

void DomainFill::refresh() {
    const ChangeLog& log = conditions_->state().changes();
    if (seen_ == log.end()) return;
    const auto changes = log.since(seen_);
    if (!changes) return count_all();
    std::int32_t last = kAbsent;
    for (const std::int32_t gpu : *changes) {
        const std::int32_t machine = conditions_->machine_of(gpu);
        if (machine != last) add(machine, free_gpus(machine) - free_[index(machine)]);
        last = machine;
    }
    seen_ = log.end();
}

bool DomainFill::is_candidate(std::int32_t machine, const HostAmounts& needs) const {
    return rank_[index(conditions_->condition_of(machine))] >= 0 && conditions_->has(machine, needs);
}

// Whether a machine is in fuller domains than another one, or has the lower rank or number.
bool DomainFill::comes_before(std::int32_t one, std::int32_t other) const {
    for (std::int32_t level = 0; level < levels_; ++level) {
        const std::int32_t a = node_of_[index(level)][index(one)], b = node_of_[index(level)][index(other)];
        if (nodes_[index(a)].free != nodes_[index(b)].free)
            return nodes_[index(a)].free < nodes_[index(b)].free;
        if (a != b) return a < b;
    }
    const std::int32_t first = rank_[index(conditions_->condition_of(one))];
    const std::int32_t second = rank_[index(conditions_->condition_of(other))];
    return first != second ? first < second : one < other;
}

std::int32_t DomainFill::among(std::span<const std::int32_t> candidates, const HostAmounts& needs) const {
    std::int32_t best = kAbsent;
    for (const std::int32_t condition : candidates) {
        for (const std::int32_t machine : conditions_->machines(condition)) {
            if (!conditions_->has(machine, needs)) continue;
            if (best == kAbsent || comes_before(machine, best)) best = machine;
        }
    }
    return best;
}

std::int32_t DomainFill::best_machine(const Node& node, const HostAmounts& needs) const {
    std::int32_t best = kAbsent;
    for (const std::int32_t machine : node.children) {
        if (is_candidate(machine, needs) && (best == kAbsent || comes_before(machine, best))) best = machine;
    }
    return best;
}

// The best machine inside a domain of a level; level -1 is the root's.
std::int32_t DomainFill::inside(std::int32_t node, std::int32_t level, const HostAmounts& needs) const {
    if (level + 1 == levels_) return best_machine(nodes_[index(node)], needs);
    std::vector<std::int32_t> waiting;
    for (const std::int32_t child : nodes_[index(node)].children) {
        if (nodes_[index(child)].free > 0) waiting.push_back(child);
    }
    const auto is_later = [&](std::int32_t a, std::int32_t b) {
        const std::int64_t one = nodes_[index(a)].free, other = nodes_[index(b)].free;
        return one != other ? one > other : a > b;
    };
    std::make_heap(waiting.begin(), waiting.end(), is_later);
    while (!waiting.empty()) {
        std::pop_heap(waiting.begin(), waiting.end(), is_later);
        const std::int32_t found = inside(waiting.back(), level + 1, needs);
        if (found != kAbsent) return found;
        waiting.pop_back();
    }
    return kAbsent;
}

std::int32_t DomainFill::fullest(std::span<const std::int32_t> candidates,
                                 std::span<const std::int32_t> ranks, const HostAmounts& needs) {
    rank_.resize(index(conditions_->num_conditions()), -1);
    std::size_t count = 0;
    bool have_free = true;  // a machine without free GPUs may have shares left
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        rank_[index(candidates[i])] = ranks[i];
        count += conditions_->machines(candidates[i]).size();
        const auto& words = conditions_->condition(candidates[i]).free;
        have_free = have_free && std::ranges::any_of(words, [](std::uint64_t word) { return word != 0; });
    }
    const bool one_by_one = count <= kFewMachines || !have_free;
    const std::int32_t found = one_by_one ? among(candidates, needs) : inside(0, -1, needs);
    for (const std::int32_t condition : candidates) rank_[index(condition)] = -1;
    return found;
}

std::vector<std::int64_t> DomainFill::free_of_level(std::int32_t level) const {
    std::vector<std::int64_t> free;
    for (const std::int32_t node : numbers_[index(level)]) free.push_back(nodes_[index(node)].free);
    return free;
}

}  // namespace topoplace
