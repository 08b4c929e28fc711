// Counts what fits, and searches for the fewest children.
#include "groups/fit.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace topoplace::groups {
namespace {

constexpr std::uint64_t kNodesForFewest = 256;
constexpr std::uint64_t kNodesForLast = 4096;

// The only kind with groups; none for several such kinds, kAbsent for no groups.
std::optional<std::int32_t> only_kind(const Counts& groups) {
    std::int32_t found = kAbsent;
    for (std::size_t kind = 0; kind < groups.size(); ++kind) {
        if (groups[kind] == 0) continue;
        if (found != kAbsent) return std::nullopt;
        found = static_cast<std::int32_t>(kind);
    }
    return found;
}

bool is_empty(const Counts& groups) {
    return std::all_of(groups.begin(), groups.end(), [](std::int32_t number) { return number == 0; });
}

}  // namespace

// A search for children that take `wanted`.
struct Fit::Search {
    std::vector<std::int32_t> children{};  // in the order in which they are tried
    std::vector<std::int64_t> rooms{};     // by number of first children, the sum of their capacities
    std::vector<std::vector<std::int64_t>> mosts{};  // by kind, the same for the most groups that they take
    Counts wanted{};
    std::size_t left = 0;  // how many more children may be used
    bool largest_last = true;
    bool is_fewest = true;  // false: every child may be used
    std::uint64_t nodes_left = std::numeric_limits<std::uint64_t>::max();
    Division found{};
    std::set<std::tuple<std::size_t, std::size_t, std::int64_t, Counts>> failed{};

    // The most that `left` children from `child` on take, where `sums` are those of the first children.
    std::int64_t at_best(const std::vector<std::int64_t>& sums, std::size_t child) const {
        const std::size_t end = children.size();
        const std::size_t used = std::min(left, end - child);
        return largest_last ? sums[end] - sums[end - used] : sums[child + used] - sums[child];
    }
};

Fit::Search Fit::new_search(std::int32_t domain, const Counts& groups, bool largest_last) {
    const auto children = domains_.children(domain);
    spend(children.size() / 16);
    Search state{.wanted = groups, .left = children.size(), .largest_last = largest_last};
    state.children.assign(children.begin(), children.end());
    if (!largest_last) std::reverse(state.children.begin(), state.children.end());
    state.rooms.push_back(0);
    state.mosts.resize(groups.size());
    for (const std::int32_t child : state.children) {
        state.rooms.push_back(state.rooms.back() + domains_.capacity(child));
    }
    for (std::size_t kind = 0; kind < groups.size(); ++kind) {
        if (groups[kind] == 0) continue;
        if (is_late_after(state.children.size())) break;  // `search` reads none of it
        state.mosts[kind].push_back(0);
        for (const std::int32_t child : state.children) {
            state.mosts[kind].push_back(state.mosts[kind].back() +
                                        most(child, static_cast<std::int32_t>(kind)));
        }
    }
    return state;
}

Fit::Fit(const Domains& domains, const GroupKinds& kinds, WorkMeter& meter)
    : domains_(domains),
      kinds_(kinds),
      meter_(meter),
      order_(kinds.size()),
      greedy_(domains, kinds, order_, meter) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
        return kinds[static_cast<std::int32_t>(a)].size > kinds[static_cast<std::int32_t>(b)].size;
    });
}

Counts Fit::opened(std::int32_t domain, const Counts& groups) const {
    Counts result(groups);
    for (std::size_t kind = 0; kind < groups.size(); ++kind) {
        const GroupKind& group = kinds_[static_cast<std::int32_t>(kind)];
        if (groups[kind] == 0 || group.depth != domains_.depth(domain)) continue;
        result[kind] -= groups[kind];
        for (const auto& [inside, number] : group.inside) result[index(inside)] += groups[kind] * number;
    }
    return result;
}

// ---- what fits
// ------------------------------------------------------------------------------------------------

bool Fit::takes(std::int32_t domain, const Counts& groups) {
    return kinds_.tasks(groups) <= domains_.capacity(domain) && divides(domain, opened(domain, groups));
}

bool Fit::divides(std::int32_t domain, const Counts& groups) {
    if (is_late_after(groups.size())) return false;
    if (const auto kind = only_kind(groups)) {
        return *kind == kAbsent || most_below(domain, *kind) >= groups[index(*kind)];
    }
    const auto [known, is_new] = divides_.try_emplace({domains_.kind(domain), groups}, false);
    if (!is_new) return known->second;
    return divides_[{domains_.kind(domain), groups}] = divides_many(domain, groups);
}

bool Fit::divides_many(std::int32_t domain, const Counts& groups) {
    for (std::size_t kind = 0; kind < groups.size(); ++kind) {
        if (groups[kind] > 0 && most_below(domain, static_cast<std::int32_t>(kind)) < groups[kind])
            return false;
    }
    if (nodes_left_ == 0 && !is_root(domain)) {
        is_unsure_ = true;
        return false;
    }
    spend(kinds_.number(groups) * domains_.children(domain).size() / 64);
    if (greedy_.divide(domains_.children(domain), groups)) return true;
    Search state = new_search(domain, groups, false);
    state.is_fewest = false;
    if (search(state, 0, 0)) return true;
    is_unsure_ = is_unsure_ || nodes_left_ == 0;
    return false;
}

// The most groups of one kind that a domain takes.
std::int64_t Fit::most(std::int32_t domain, std::int32_t kind) {
    const auto [known, is_new] = most_.try_emplace({domains_.kind(domain), kind}, 0);
    if (!is_new) return known->second;
    const GroupKind& group = kinds_[kind];
    const std::int64_t limit =
        group.size == 0 ? std::numeric_limits<std::int32_t>::max() : domains_.capacity(domain) / group.size;
    const std::int64_t answer = group.depth == domains_.depth(domain)
                                    ? most_opened(domain, group, limit)
                                    : std::min(limit, most_below(domain, kind));
    return most_[{domains_.kind(domain), kind}] = answer;
}

std::int64_t Fit::most_opened(std::int32_t domain, const GroupKind& kind, std::int64_t limit) {
    if (kind.inside.size() == 1) {
        return std::min(limit, most_below(domain, kind.inside[0].first) / kind.inside[0].second);
    }
    if (kind.inside.empty()) return limit;
    std::int64_t low = 0;
    std::int64_t high = limit;
    while (low < high) {
        const std::int64_t middle = (low + high + 1) / 2;
        Counts groups(kinds_.size(), 0);
        for (const auto& [inside, number] : kind.inside) {
            groups[index(inside)] = static_cast<std::int32_t>(middle * number);
        }
        if (divides(domain, groups)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

std::int64_t Fit::most_below(std::int32_t domain, std::int32_t kind) {
    const auto [known, is_new] = below_.try_emplace({domains_.kind(domain), kind}, 0);
    if (!is_new) return known->second;
    std::int64_t sum = 0;
    for (const std::int32_t child : domains_.children(domain)) {
        if (is_late_after(1)) break;  // with too few: no more is found
        sum += most(child, kind);
    }
    return below_[{domains_.kind(domain), kind}] = sum;
}

// ---- the fewest children
// --------------------------------------------------------------------------------------

std::optional<Division> Fit::fewest(std::int32_t domain, const Counts& groups, std::int64_t tasks) {
    if (tasks > domains_.capacity(domain) || (is_root(domain) && !divides(domain, groups)))
        return std::nullopt;
    if (const auto kind = only_kind(groups)) {
        return of_one_kind(domain, *kind, *kind == kAbsent ? 0 : groups[index(*kind)], tasks);
    }
    return of_many_kinds(domain, groups, tasks);
}

// Children are taken from the smallest on, each where the largest ones of the rest could complete the number.
// Without free tasks, children count by the groups that they take; else by their capacity.
std::optional<Division> Fit::of_one_kind(std::int32_t domain, std::int32_t kind, std::int32_t number,
                                         std::int64_t tasks) {
    const auto fitting = [&](std::int32_t child) { return kind == kAbsent ? 0 : most(child, kind); };
    std::vector<std::int32_t> children(domains_.children(domain).begin(), domains_.children(domain).end());
    if (kind != kAbsent && tasks == number * kinds_[kind].size) {
        tasks = 0;
        std::stable_sort(children.begin(), children.end(),
                         [&](std::int32_t a, std::int32_t b) { return fitting(a) < fitting(b); });
    }
    std::vector<std::int64_t> numbers{0};  // of groups, and of tasks, that the largest children take
    std::vector<std::int64_t> rooms{0};
    while (numbers.back() < number || rooms.back() < tasks) {
        if (numbers.size() > children.size()) return std::nullopt;
        const std::int32_t child = children[children.size() - numbers.size()];
        numbers.push_back(numbers.back() + fitting(child));
        rooms.push_back(rooms.back() + domains_.capacity(child));
    }
    Division division;
    std::size_t left = numbers.size() - 1;
    for (std::size_t i = 0; left > 0; ++i) {
        const std::int64_t fits = fitting(children[i]);
        const std::int64_t room = domains_.capacity(children[i]);
        const bool is_spare = numbers[left - 1] < number - fits || rooms[left - 1] < tasks - room;
        if (is_spare && children.size() - i > left) continue;
        const auto portion = static_cast<std::int32_t>(std::min<std::int64_t>(number, fits));
        division.push_back({children[i], Counts(kinds_.size(), 0)});
        if (portion > 0) division.back().groups[index(kind)] = portion;
        number -= portion;
        tasks -= room;
        --left;
    }
    return division;
}

// For each number of children, a search tries the smallest first, then the quick packing tries the largest.
// The numbers grow faster where searches end without an answer, as proofs that there is none can take long.
std::optional<Division> Fit::of_many_kinds(std::int32_t domain, const Counts& groups, std::int64_t tasks) {
    Search state = new_search(domain, groups, true);
    const std::span<const std::int32_t> children(state.children);
    std::size_t step = 1;
    for (std::size_t number = 1; number <= children.size(); number += step) {
        state.left = number;
        state.nodes_left = kNodesForFewest;
        state.failed.clear();
        if (search(state, 0, tasks)) return std::move(state.found);
        if (meter_.stopped()) return std::nullopt;
        if (state.nodes_left > 0) continue;  // all was tried
        const auto largest = children.last(number);
        if (state.rooms.back() - state.rooms[children.size() - number] >= tasks) {
            if (auto found = quick_division(largest, groups, tasks)) return found;
        }
        step = std::min(step + step / 2 + 1, std::max<std::size_t>(children.size() - number, 1));
    }
    if (auto found = quick_division(children, groups, tasks)) return found;
    nodes_left_ = std::max(nodes_left_, kNodesForLast);
    Search all = new_search(domain, groups, false);
    all.is_fewest = false;
    if (!search(all, 0, 0)) {
        is_unsure_ = true;  // they fit, as was found before, but the nodes are spent
        return std::nullopt;
    }
    add_for_free_tasks(all.found, children, tasks);
    return std::move(all.found);
}

std::optional<Division> Fit::quick_division(std::span<const std::int32_t> children, const Counts& groups,
                                            std::int64_t tasks) {
    auto portions = greedy_.divide(children, groups);
    if (!portions) return std::nullopt;
    Division division;
    for (auto& [child, portion] : *portions) division.push_back({child, std::move(portion)});
    add_for_free_tasks(division, children, tasks);
    return division;
}

// Children that take no group are needed where the others lack room for the free tasks.
void Fit::add_for_free_tasks(Division& division, std::span<const std::int32_t> children,
                             std::int64_t tasks) const {
    std::set<std::int32_t> used;
    for (const Portion& portion : division) {
        used.insert(portion.child);
        tasks -= domains_.capacity(portion.child);
    }
    for (std::size_t i = children.size(); i-- > 0 && tasks > 0;) {
        const std::int32_t child = children[i];
        if (used.contains(child)) continue;
        division.push_back({child, Counts(kinds_.size(), 0)});
        tasks -= domains_.capacity(child);
    }
}

bool Fit::hopeless(const Search& state, std::size_t child, std::int64_t tasks) const {
    const std::int64_t room = state.at_best(state.rooms, child);
    if (room < tasks || room < kinds_.tasks(state.wanted)) return true;
    for (std::size_t kind = 0; kind < state.wanted.size(); ++kind) {
        if (state.wanted[kind] == 0) continue;
        const auto& sums = state.mosts[kind];
        if (sums.back() - sums[child] < state.wanted[kind]) return true;
    }
    return false;
}

bool Fit::takes_some(const Search& state, std::size_t child) const {
    for (std::size_t kind = 0; kind < state.wanted.size(); ++kind) {
        if (state.wanted[kind] > 0 && state.mosts[kind][child + 1] > state.mosts[kind][child]) return true;
    }
    return false;
}

// The next child that is worth a try after this one failed.
std::size_t Fit::next(const Search& state, std::size_t child) const {
    const std::int32_t kind = domains_.kind(state.children[child++]);
    while (state.is_fewest && child < state.children.size() && domains_.kind(state.children[child]) == kind) {
        ++child;  // as good as the one that was tried
    }
    return child;
}

// True where a limit on the nodes is reached.
bool Fit::visit(Search& state) {
    if (meter_.visit() || state.nodes_left == 0 || nodes_left_ == 0) return true;
    --state.nodes_left;
    --nodes_left_;
    return false;
}

// True if children from this one on take what is wanted, and have room for `tasks`.
bool Fit::search(Search& state, std::size_t child, std::int64_t tasks) {
    if (is_empty(state.wanted) && tasks <= 0) return true;
    if (is_late_after(state.wanted.size())) return false;
    const auto key = std::tuple(child, state.left, std::max<std::int64_t>(tasks, 0), state.wanted);
    if (state.failed.contains(key)) return false;
    while (child < state.children.size() && state.left > 0 && !hopeless(state, child, tasks)) {
        if (visit(state)) return false;
        const bool is_of_use = takes_some(state, child) || (state.is_fewest && tasks > 0);
        if (is_of_use && use(state, child, tasks)) return true;
        if (is_of_use && !state.is_fewest) break;  // without this child no more would fit
        child = next(state, child);
    }
    state.failed.insert(key);
    return false;
}

bool Fit::use(Search& state, std::size_t child, std::int64_t tasks) {
    Counts portion(kinds_.size(), 0);
    --state.left;
    state.found.push_back({state.children[child], {}});
    const bool found = fill(state, child, 0, portion, tasks - domains_.capacity(state.children[child]));
    if (!found) state.found.pop_back();
    ++state.left;
    return found;
}

// Tries every portion of the child that takes no more groups. The kinds before `place` in the order are
// decided.
bool Fit::fill(Search& state, std::size_t child, std::size_t place, Counts& portion, std::int64_t tasks) {
    if (is_late_after(portion.size())) return false;
    while (place < order_.size() && state.wanted[order_[place]] == 0) ++place;
    if (place == order_.size()) {
        state.found.back().groups = portion;
        return search(state, child + 1, tasks);
    }
    const std::size_t kind = order_[place];
    const std::int32_t domain = state.children[child];
    const std::int32_t wanted = state.wanted[kind];
    std::int32_t number = static_cast<std::int32_t>(
        std::min<std::int64_t>(wanted, most(domain, static_cast<std::int32_t>(kind))));
    const auto fits = [&] {
        portion[kind] = number;
        return takes(domain, portion);
    };
    while (number > 0 && !fits()) number = is_late_after(portion.size()) ? 0 : number - 1;
    for (;; --number) {
        portion[kind] = number;
        state.wanted[kind] = wanted - number;
        if (fill(state, child, place + 1, portion, tasks)) return true;
        const bool others = std::any_of(order_.begin() + static_cast<std::ptrdiff_t>(place) + 1, order_.end(),
                                        [&](std::size_t other) { return state.wanted[other] > 0; });
        if (number == 0 || !others || meter_.stopped()) break;
    }
    portion[kind] = 0;
    state.wanted[kind] = wanted;
    return false;
}

}  // namespace topoplace::groups
