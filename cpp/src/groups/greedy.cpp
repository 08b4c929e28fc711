// Puts one group after the other, and takes it back where the groups inside it do not fit.
#include "groups/greedy.hpp"

#include <algorithm>

namespace topoplace::groups {
namespace {

constexpr std::uint64_t kStepsPerDomain = 16;  // of `WorkMeter`, each a fifth of a nanosecond

}  // namespace

Greedy::Greedy(const Domains& domains, const GroupKinds& kinds, std::span<const std::size_t> order,
               WorkMeter& meter)
    : domains_(domains), kinds_(kinds), order_(order), meter_(meter) {
    for (std::int32_t i = 0; i < domains.size(); ++i) room_.push_back(domains.capacity(i));
}

std::optional<std::vector<std::pair<std::int32_t, Counts>>> Greedy::divide(
    std::span<const std::int32_t> children, const Counts& groups) {
    if (meter_.is_late_after(children.size() * groups.size())) return std::nullopt;
    std::vector<std::pair<std::int32_t, Counts>> division;
    for (const std::int32_t child : children) division.emplace_back(child, Counts(groups.size(), 0));
    bool fits = true;
    std::vector<std::int32_t> before(children.size());
    for (const std::size_t kind : order_) {
        for (std::int32_t i = 0; i < groups[kind] && fits; ++i) {
            for (std::size_t child = 0; child < children.size(); ++child) {
                before[child] = room_[index(children[child])];
            }
            fits = !meter_.spend(index(domains_.size())) && put(children, static_cast<std::int32_t>(kind));
            for (std::size_t child = 0; child < children.size() && fits; ++child) {
                if (room_[index(children[child])] != before[child]) ++division[child].second[kind];
            }
        }
    }
    undo(0);
    if (!fits) return std::nullopt;
    std::erase_if(division, [&](const auto& portion) {
        return std::all_of(portion.second.begin(), portion.second.end(),
                           [](std::int32_t n) { return n == 0; });
    });
    return division;
}

// Puts a group into the best domain of its depth in these trees.
bool Greedy::put(std::span<const std::int32_t> among, std::int32_t kind) {
    if (meter_.is_late_after(among.size() * kStepsPerDomain)) return false;
    const GroupKind& group = kinds_[kind];
    Place best;
    for (const std::int32_t top : among) look_for(best, top, group);
    if (best.domain == kAbsent) return false;
    std::int32_t top = best.domain;
    while (domains_.depth(top) > domains_.depth(among.front())) top = domains_.parent(top);
    const std::size_t changes = taken_.size();
    take(top, best.domain, static_cast<std::int32_t>(group.size));
    if (open(best.domain, group)) return true;
    undo(changes);
    return false;
}

void Greedy::look_for(Place& best, std::int32_t domain, const GroupKind& group) {
    const std::int32_t room = room_[index(domain)];
    if (room < group.size) return;
    if (domains_.depth(domain) < group.depth) {
        const auto children = domains_.children(domain);
        meter_.pass_time(children.size() * kStepsPerDomain);
        for (const std::int32_t child : children) look_for(best, child, group);
    } else if (best.domain == kAbsent || room < best.room) {
        best = {domain, room};
    }
}

// Puts the groups inside a group that is in this domain.
bool Greedy::open(std::int32_t domain, const GroupKind& group) {
    for (const std::size_t kind : order_) {
        for (const auto& [inside, number] : group.inside) {
            if (index(inside) != kind) continue;
            for (std::int32_t i = 0; i < number; ++i) {
                if (!put(domains_.children(domain), inside)) return false;
            }
        }
    }
    return true;
}

void Greedy::take(std::int32_t top, std::int32_t domain, std::int32_t tasks) {
    for (;; domain = domains_.parent(domain)) {
        room_[index(domain)] -= tasks;
        taken_.emplace_back(domain, tasks);
        if (domain == top) return;
    }
}

void Greedy::undo(std::size_t changes) {
    for (; taken_.size() > changes; taken_.pop_back())
        room_[index(taken_.back().first)] += taken_.back().second;
}

}  // namespace topoplace::groups
