// How groups are divided among the children of a domain.
//
// A group is opened where it arrives in a domain of its depth: then only the groups inside it have to stay
// together, and its own tasks go wherever room is left. So groups fit in a domain if they can be divided
// among its children and all their tasks are no more than its capacity. Two facts keep the search small. The
// first child may be given as many groups as it can take: what moves to it makes room elsewhere. Of one kind
// of group, the most that fit in a domain is the sum over its children.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "groups/domains.hpp"
#include "groups/greedy.hpp"
#include "groups/group_kinds.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::groups {

constexpr std::int64_t kAsManyAsFit = -1;

// The groups, and the free tasks, that one child gets.
struct Portion {
    std::int32_t child = 0;
    Counts groups{};
    std::int64_t free_tasks = kAsManyAsFit;
};
using Division = std::vector<Portion>;

class Fit {
  public:
    Fit(const Domains& domains, const GroupKinds& kinds, WorkMeter& meter);

    // True if groups of greater depth than the domain's can be divided among what is below it. False, too,
    // where the search is stopped.
    bool divides(std::int32_t domain, const Counts& groups);

    // The fewest children that take the groups and have room for `tasks` in all, those of the groups
    // included; none if there are no such children, or the search is stopped.
    std::optional<Division> fewest(std::int32_t domain, const Counts& groups, std::int64_t tasks);

    // True if a search for a division ended without an answer, so that a packing may exist all the same.
    bool is_unsure() const { return is_unsure_; }

    // The groups inside those that are opened in the domain, and the others.
    Counts opened(std::int32_t domain, const Counts& groups) const;

  private:
    struct Search;

    static constexpr std::uint64_t kStepsPerNumber = 256;  // of `WorkMeter`: some 50 ns

    Search new_search(std::int32_t domain, const Counts& groups, bool largest_last);
    static bool is_root(std::int32_t domain) { return domain == 0; }
    void spend(std::uint64_t nodes) { nodes_left_ -= std::min(nodes_left_, nodes); }
    // True where the time is up, after steps that no node counts: numbers of kinds, or what is known of them.
    bool is_late_after(std::uint64_t numbers) { return meter_.is_late_after(numbers * kStepsPerNumber); }
    bool divides_many(std::int32_t domain, const Counts& groups);
    bool takes(std::int32_t domain, const Counts& groups);
    std::int64_t most(std::int32_t domain, std::int32_t kind);
    std::int64_t most_opened(std::int32_t domain, const GroupKind& kind, std::int64_t limit);
    std::int64_t most_below(std::int32_t domain, std::int32_t kind);
    std::optional<Division> of_one_kind(std::int32_t domain, std::int32_t kind, std::int32_t number,
                                        std::int64_t tasks);
    std::optional<Division> of_many_kinds(std::int32_t domain, const Counts& groups, std::int64_t tasks);
    std::optional<Division> quick_division(std::span<const std::int32_t> children, const Counts& groups,
                                           std::int64_t tasks);
    void add_for_free_tasks(Division& division, std::span<const std::int32_t> children,
                            std::int64_t tasks) const;
    std::size_t next(const Search& state, std::size_t child) const;
    bool visit(Search& state);
    bool search(Search& state, std::size_t child, std::int64_t tasks);
    bool use(Search& state, std::size_t child, std::int64_t tasks);
    bool fill(Search& state, std::size_t child, std::size_t place, Counts& portion, std::int64_t tasks);
    bool hopeless(const Search& state, std::size_t child, std::int64_t tasks) const;
    bool takes_some(const Search& state, std::size_t child) const;

    const Domains& domains_;
    const GroupKinds& kinds_;
    WorkMeter& meter_;
    std::vector<std::size_t> order_;  // kinds, the largest groups first
    Greedy greedy_;
    std::uint64_t nodes_left_ = 1U << 16;  // of all searches; then only what the quick packing finds fits
    bool is_unsure_ = false;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> most_;  // by kinds of domain and group
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> below_;
    std::map<std::pair<std::int32_t, Counts>, bool> divides_;
};

}  // namespace topoplace::groups
