// Rankings of machines by the keys of their conditions, kept as machines come to other conditions.
#include "topoplace/machine_ranking.hpp"

#include <algorithm>
#include <utility>

#include "graph/index.hpp"

namespace topoplace {

std::vector<std::int32_t> MachineRanking::unknown() {
    conditions_->refresh();
    const auto changes = conditions_->occupied().since(seen_);
    if (!has_started_ || !changes || generation_ != conditions_->generation()) {
        start();
    } else {
        entries_.resize(index(conditions_->num_conditions()));
        for (const std::int32_t condition : *changes) follow(condition);
    }
    seen_ = conditions_->occupied().end();
    return unknown_;
}

void MachineRanking::start() {
    if (generation_ != conditions_->generation()) entries_.clear();
    for (Entry& entry : entries_) entry.is_listed = false;
    entries_.resize(index(conditions_->num_conditions()));
    groups_.clear();
    unknown_.clear();
    generation_ = conditions_->generation();
    has_started_ = true;
    for (std::int32_t condition = 0; condition < conditions_->num_conditions(); ++condition)
        follow(condition);
}

// Lists a condition if and only if it has machines.
void MachineRanking::follow(std::int32_t condition) {
    Entry& entry = entries_[index(condition)];
    const bool has_machines = !conditions_->machines(condition).empty();
    if (entry.is_listed == has_machines || (entry.is_known && !entry.key)) return;
    entry.is_listed = has_machines;
    if (!has_machines) return remove(condition);
    (entry.is_known ? groups_[*entry.key] : unknown_).push_back(condition);
}

void MachineRanking::remove(std::int32_t condition) {
    const Entry& entry = entries_[index(condition)];
    std::vector<std::int32_t>& list = entry.is_known ? groups_[*entry.key] : unknown_;
    *std::find(list.begin(), list.end(), condition) = list.back();
    list.pop_back();
    if (entry.is_known && list.empty()) groups_.erase(*entry.key);
}

void MachineRanking::set(std::int32_t condition, std::optional<Key> key) {
    Entry& entry = entries_[index(condition)];
    if (entry.is_listed) remove(condition);
    entry = {true, false, std::move(key)};
    follow(condition);
}

MachineRanking::Ranked MachineRanking::best(const HostAmounts& needs) const {
    for (const auto& [_, group] : groups_) {
        Ranked first{kAbsent, kAbsent};
        for (const std::int32_t condition : group) {
            const std::int32_t machine = conditions_->first_machine(condition, needs);
            if (machine != kAbsent && (first.machine == kAbsent || machine < first.machine))
                first = {machine, condition};
        }
        if (first.machine != kAbsent) return first;
    }
    return {kAbsent, kAbsent};
}

MachineRanking::Ranked MachineRanking::best_by_domain(DomainFill& domains, std::size_t prefix,
                                                      const HostAmounts& needs) const {
    domains.refresh();
    const auto begins_alike = [prefix](const Key& one, const Key& other) {
        const std::size_t length = std::min({prefix, one.size(), other.size()});
        return std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(length), other.begin());
    };
    for (auto group = groups_.begin(); group != groups_.end();) {
        std::vector<std::int32_t> candidates, ranks;
        const Key& first = group->first;
        for (std::int32_t rank = 0; group != groups_.end() && begins_alike(first, group->first); ++group) {
            candidates.insert(candidates.end(), group->second.begin(), group->second.end());
            ranks.resize(candidates.size(), rank++);
        }
        const std::int32_t machine = domains.fullest(candidates, ranks, needs);
        if (machine != kAbsent) return {machine, conditions_->condition_of(machine)};
    }
    return {kAbsent, kAbsent};
}

std::vector<MachineRanking::Ranked> MachineRanking::in_order(std::int32_t count, const HostAmounts& needs,
                                                             const Key& last) const {
    std::vector<Ranked> found;
    for (const auto& [key, group] : groups_) {
        if (found.size() >= index(count) || key > last) break;
        const std::vector<Ranked> lowest = lowest_of(group, index(count) - found.size(), needs);
        found.insert(found.end(), lowest.begin(), lowest.end());
    }
    return found;
}

// The lowest `count` machines of these conditions with at least these amounts free, ascending.
std::vector<MachineRanking::Ranked> MachineRanking::lowest_of(const std::vector<std::int32_t>& group,
                                                              std::size_t count,
                                                              const HostAmounts& needs) const {
    const auto is_lower = [](const Ranked& a, const Ranked& b) { return a.machine < b.machine; };
    std::vector<Ranked> found;  // a heap, the highest machine first
    const auto is_beyond = [&](std::int32_t machine) {
        return found.size() >= count && machine > found.front().machine;
    };
    for (const std::int32_t condition : group) {
        if (is_beyond(conditions_->lowest(condition))) continue;
        for (const std::int32_t machine : conditions_->machines(condition)) {
            if (is_beyond(machine)) break;
            if (!conditions_->has(machine, needs)) continue;
            found.push_back({machine, condition});
            std::push_heap(found.begin(), found.end(), is_lower);
            if (found.size() <= count) continue;
            std::pop_heap(found.begin(), found.end(), is_lower);
            found.pop_back();
        }
    }
    std::sort_heap(found.begin(), found.end(), is_lower);
    return found;
}

std::vector<std::int32_t> MachineRanking::up_to(const Key& last, const HostAmounts& needs) const {
    std::vector<std::uint8_t> is_wanted(index(conditions_->num_conditions()));
    for (const auto& [key, group] : groups_) {
        if (key > last) break;
        for (const std::int32_t condition : group) is_wanted[index(condition)] = 1;
    }
    std::vector<std::int32_t> found(index(conditions_->num_machines()));
    std::size_t num_found = 0;
    for (std::int32_t machine = 0; machine < conditions_->num_machines(); ++machine) {
        found[num_found] = machine;  // wanted or not: a branch would often be guessed wrong
        num_found += is_wanted[index(conditions_->condition_of(machine))];
    }
    found.resize(num_found);
    std::erase_if(found, [&](std::int32_t machine) { return !conditions_->has(machine, needs); });
    return found;
}

std::vector<std::pair<MachineRanking::Key, std::int64_t>> MachineRanking::counts() const {
    std::vector<std::pair<Key, std::int64_t>> found;
    for (const auto& [key, group] : groups_) {
        std::int64_t num_machines = 0;
        for (const std::int32_t condition : group)
            num_machines += static_cast<std::int64_t>(conditions_->machines(condition).size());
        found.emplace_back(key, num_machines);
    }
    return found;
}

std::vector<MachineRanking::Ranked> MachineRanking::first(std::int32_t count,
                                                          const HostAmounts& needs) const {
    std::vector<Ranked> found;
    for (const auto& [_, group] : groups_) {
        for (const std::int32_t condition : group) {
            if (found.size() >= index(count)) return found;
            const std::int32_t machine = conditions_->first_machine(condition, needs);
            if (machine != kAbsent) found.push_back({machine, condition});
        }
    }
    return found;
}

}  // namespace topoplace
