// Sets grow pair by pair, as in Kruskal's algorithm.
#include "decide/joined_units.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

constexpr std::int32_t kMostJoined = 4096;  // units
constexpr std::size_t kMostPairs = 1U << 18;
constexpr std::int64_t kMostChecks = 1 << 22;  // sizes of sets x sizes of leaves that are compared

class JoinedUnits {
  public:
    explicit JoinedUnits(std::int32_t units) : above_(index(units)), size_(index(units), 1) {
        std::iota(above_.begin(), above_.end(), 0);
    }
    std::int32_t set_of(std::int32_t unit) {
        while (above_[index(unit)] != unit) {
            above_[index(unit)] = above_[index(above_[index(unit)])];
            unit = above_[index(unit)];
        }
        return unit;
    }
    std::int32_t size_of(std::int32_t set) const { return size_[index(set)]; }
    void join(std::int32_t set, std::int32_t other) {
        above_[index(other)] = set;
        size_[index(set)] += size_[index(other)];
    }

  private:
    std::vector<std::int32_t> above_, size_;
};

// The sum over all phases of what two units exchange.
std::vector<UnitPair> summed(const Exchanges& exchanges) {
    std::vector<UnitPair> all, found;
    for (std::size_t i = 0; i < exchanges.from.size(); ++i)
        all.push_back({exchanges.from[i], exchanges.to[i], exchanges.gigabytes[i]});
    const auto ends = [](const UnitPair& one) { return std::pair(one.from, one.to); };
    std::ranges::stable_sort(all, {}, ends);
    for (const UnitPair& one : all) {
        if (!found.empty() && ends(found.back()) == ends(one)) {
            found.back().gigabytes += one.gigabytes;
        } else {
            found.push_back(one);
        }
    }
    return found;
}

// Sets of units that grow as far as they fit leaves: each set the smallest one that is large enough, the
// largest set first.
class JoinedSets {
  public:
    JoinedSets(std::int32_t units, std::span<const std::int32_t> rooms) : units_(units), joined_(units) {
        const std::int32_t most = *std::ranges::max_element(rooms);
        counts_.assign(index(most) + 1, 0);
        leaves_ = counts_of(rooms);
        if (most > 0) counts_[1] = units;
    }

    void join(std::span<const UnitPair> pairs) {
        const auto most = static_cast<std::int64_t>(counts_.size()) - 1;
        std::int64_t left = kMostChecks;
        for (const UnitPair& pair : pairs) {
            const std::int32_t set = joined_.set_of(pair.from), other = joined_.set_of(pair.to);
            if (set == other || joined_.size_of(set) + joined_.size_of(other) > most) continue;
            if ((left -= most * most) < 0) return;
            change(set, other, 1);
            if (fit(leaves_)) {
                joined_.join(set, other);
            } else {
                change(set, other, -1);
            }
        }
    }

    bool fit(std::span<const std::int32_t> rooms) const { return fit(counts_of(rooms)); }

    // Among the leaves from `begin` on; none if they do not fit.
    std::vector<std::int32_t> on_leaves(std::span<const std::int32_t> rooms, std::size_t begin,
                                        std::size_t end) {
        std::set<std::pair<std::int32_t, std::int32_t>> by_room;  // the room of each leaf, and the leaf
        for (std::size_t leaf = begin; leaf < end; ++leaf)
            by_room.emplace(rooms[leaf], static_cast<std::int32_t>(leaf));
        std::vector<std::int32_t> sets, leaf_of(index(units_), kAbsent);
        for (std::int32_t unit = 0; unit < units_; ++unit) {
            if (joined_.set_of(unit) == unit) sets.push_back(unit);
        }
        std::ranges::stable_sort(sets, std::ranges::greater{},
                                 [&](std::int32_t set) { return joined_.size_of(set); });
        for (const std::int32_t set : sets) {
            const std::int32_t size = joined_.size_of(set);
            const auto found = by_room.lower_bound({size, 0});
            if (found == by_room.end()) return {};
            const auto [room, leaf] = *found;
            by_room.erase(found);
            by_room.emplace(room - size, leaf);
            leaf_of[index(set)] = leaf;
        }
        for (std::int32_t unit = 0; unit < units_; ++unit)
            leaf_of[index(unit)] = leaf_of[index(joined_.set_of(unit))];
        return leaf_of;
    }

  private:
    using Counts = std::vector<std::int32_t>;  // by size

    Counts counts_of(std::span<const std::int32_t> rooms) const {
        Counts found(counts_.size(), 0);
        for (const std::int32_t room : rooms) ++found[index(room)];
        return found;
    }

    void change(std::int32_t set, std::int32_t other, std::int32_t by) {
        const std::int32_t size = joined_.size_of(set), added = joined_.size_of(other);
        counts_[index(size)] -= by;
        counts_[index(added)] -= by;
        counts_[index(size + added)] += by;
    }

    bool fit(Counts leaves) const {
        for (std::size_t size = counts_.size() - 1; size > 0; --size) {
            std::int32_t left = counts_[size];
            for (std::size_t room = size; left > 0; ++room) {
                if (room == leaves.size()) return false;
                const auto each = static_cast<std::int32_t>(room / size);
                const std::int32_t full = std::min(leaves[room], left / each);
                leaves[room] -= full;
                leaves[room % size] += full;
                left -= full * each;
                if (left < each && leaves[room] > 0) {
                    --leaves[room];
                    ++leaves[room - index(left) * size];
                    left = 0;
                }
            }
        }
        return true;
    }

    std::int32_t units_;
    JoinedUnits joined_;
    Counts counts_, leaves_;  // of sets and of all leaves
};

}  // namespace

void sort_by_most(std::vector<UnitPair>& pairs) {
    if (!std::ranges::is_sorted(pairs, std::ranges::greater{}, &UnitPair::gigabytes))
        std::ranges::stable_sort(pairs, std::ranges::greater{}, &UnitPair::gigabytes);
}

double least_apart(std::span<const UnitPair> pairs, std::int32_t units, std::span<const std::int64_t> rooms) {
    if (units > kMostJoined || pairs.empty()) return 0.0;
    // Of each size: how many sets so large there are, and how many fit.
    std::vector<std::int64_t> are(index(units) + 1, 0), have_room(index(units) + 1, 0);
    std::vector<std::int64_t> domains(index(units) + 1, 0);
    for (const std::int64_t room : rooms)
        ++domains[static_cast<std::size_t>(std::min<std::int64_t>(room, units))];
    for (std::size_t room = 1; room < domains.size(); ++room) {
        for (std::size_t size = 1; domains[room] > 0 && size <= room; ++size)
            have_room[size] += domains[room] * static_cast<std::int64_t>(room / size);
    }
    are[1] = units;
    JoinedUnits joined(units);
    for (const UnitPair& pair : pairs) {
        if (are[index(units)] > 0) break;  // all are together
        const std::int32_t set = joined.set_of(pair.from), other = joined.set_of(pair.to);
        if (set == other) continue;
        const auto [small, large] = std::minmax({joined.size_of(set), joined.size_of(other)});
        joined.join(set, other);
        for (std::int32_t size = 1; size <= small; ++size) --are[index(size)];
        for (std::int32_t size = large + 1; size <= large + small; ++size) {
            if (++are[index(size)] > have_room[index(size)]) return pair.gigabytes;
        }
    }
    return 0.0;
}

std::vector<std::int32_t> joined_on_leaves(const Exchanges& exchanges, std::int32_t units,
                                           std::span<const std::int32_t> room,
                                           const std::vector<std::vector<std::int32_t>>& domains) {
    if (units > kMostJoined || exchanges.from.size() > kMostPairs) return {};
    std::vector<UnitPair> pairs = summed(exchanges);
    const bool are_equal =
        std::ranges::adjacent_find(pairs, std::ranges::not_equal_to{}, &UnitPair::gigabytes) == pairs.end();
    if (are_equal) return {};
    std::vector<std::int32_t> rooms;
    for (const std::int32_t one : room) rooms.push_back(std::min(one, units));
    JoinedSets sets(units, rooms);
    sort_by_most(pairs);
    sets.join(pairs);
    for (std::size_t level = domains.size(); level-- > 0;) {
        const std::vector<std::int32_t>& firsts = domains[level];
        std::int64_t least = INT64_MAX;
        std::size_t begin = 0, end = 0;
        for (std::size_t i = 0; i < firsts.size(); ++i) {
            const std::size_t from = index(firsts[i]);
            const std::size_t to = i + 1 < firsts.size() ? index(firsts[i + 1]) : rooms.size();
            const std::int64_t total = std::accumulate(&rooms[from], &rooms[0] + to, std::int64_t{0});
            if (total < units || total >= least || !sets.fit(std::span(rooms).subspan(from, to - from)))
                continue;
            least = total, begin = from, end = to;
        }
        if (end > 0) return sets.on_leaves(rooms, begin, end);
    }
    return sets.on_leaves(rooms, 0, rooms.size());
}

}  // namespace topoplace::decide
