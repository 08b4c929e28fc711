// One region after the other, where groups of all tasks say so; there, the groups apart in what the others
// leave, and then each division of these.
#include "decide/apart_groups.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

constexpr int kMostWays = 2000;  // to divide groups

// Tasks of a group apart in a domain of the tree.
struct Piece {
    std::size_t group = 0;
    std::int32_t domain = 0;
    std::int32_t tasks = 0;
};

using Ints = std::vector<std::int32_t>;

class ApartGroups {
  public:
    explicit ApartGroups(const TaskPackingParams& params)
        : params_(params),
          tree_(*params.tree),
          apart_(params.apart),
          forest_(params.together, params.apart, params.tasks, params.num_tasks) {
        std::ranges::stable_sort(apart_, std::ranges::greater{},
                                 [](const Together& one) { return one.tasks.size(); });
        for (const Together& group : apart_) {
            homes_.push_back(tree_.domains_of(group.level));
            parts_.push_back(tree_.part_of(group.level));
        }
    }

    TaskPacking run() {
        TaskPacking found{.forest = forest_};
        for (const Ints& leaves : regions()) {
            found.complete = !meter_.look_at_clock();
            if (!found.complete) return found;
            const Ints room = room_of(leaves);
            const Ints capacity = capacity_of(room);
            const groups::PackResult made = packed(tree_, capacity, forest_, kAbsent, params_.stop);
            if (!made.found) {
                found.complete = made.complete;
                if (!found.complete) return found;
                continue;
            }
            if (!beside(room, made.shares, found)) divide(room, capacity, found);
            if (found.found || !found.complete) return found;
        }
        return found;
    }

  private:
    // The leaves of each domain that may have all tasks; levels with such groups count together.
    std::vector<Ints> regions() const {
        std::vector<Ints> domains;
        for (const Together& group : params_.together) {
            if (group.tasks.size() == params_.tasks.size()) domains.push_back(tree_.domains_of(group.level));
        }
        std::map<Ints, Ints> leaves;
        for (std::size_t leaf = 0; leaf < tree_.num_leaves(); ++leaf) {
            Ints key;
            for (const Ints& of : domains) key.push_back(of[leaf]);
            leaves[key].push_back(static_cast<std::int32_t>(leaf));
        }
        std::vector<Ints> found;
        for (auto& [_, members] : leaves) {
            std::size_t room = 0;
            for (const std::int32_t leaf : members) room += index(room_of(leaf));
            if (room >= params_.tasks.size()) found.push_back(std::move(members));
        }
        return found;
    }

    std::int32_t room_of(std::int32_t leaf) const { return tree_.room()[tree_.first_leaf() + index(leaf)]; }
    // Of each leaf of the tree; 0 for those that are not among these.
    Ints room_of(const Ints& leaves) const {
        Ints room(tree_.num_leaves(), 0);
        for (const std::int32_t leaf : leaves) room[index(leaf)] = room_of(leaf);
        return room;
    }

    Ints capacity_of(const Ints& room) const {
        constexpr std::int64_t kMost = INT32_MAX;
        std::vector<std::int64_t> sums(tree_.parent().size(), 0);
        std::ranges::copy(room, sums.begin() + static_cast<std::ptrdiff_t>(tree_.first_leaf()));
        for (std::size_t i = sums.size(); --i > 0;) sums[index(tree_.parent()[i])] += sums[i];
        Ints found;
        for (const std::int64_t sum : sums) found.push_back(static_cast<std::int32_t>(std::min(sum, kMost)));
        return found;
    }

    // Each group apart in what the others leave, in the fullest domain that suffices.
    bool beside(const Ints& room, const std::vector<groups::Share>& shares, TaskPacking& found) const {
        Ints left = left_of(room, shares);
        std::vector<Piece> rows;
        for (std::size_t number = 0; number < apart_.size(); ++number) {
            const Ints& home_of = homes_[number];
            std::vector<std::int64_t> rooms(1 + index(*std::ranges::max_element(home_of)), 0);
            for (std::size_t leaf = 0; leaf < left.size(); ++leaf) rooms[index(home_of[leaf])] += left[leaf];
            const auto size = static_cast<std::int64_t>(apart_[number].tasks.size());
            std::int32_t best = kAbsent;
            for (std::size_t home = 0; home < rooms.size(); ++home) {
                if (rooms[home] >= size && (best < 0 || rooms[home] < rooms[index(best)]))
                    best = static_cast<std::int32_t>(home);
            }
            if (best < 0) return false;
            take(left, home_of, best, {number, 0, static_cast<std::int32_t>(size)}, rows);
        }
        keep(shares, std::move(rows), found);
        return true;
    }

    // Each way to divide the groups apart, until one has room for all.
    void divide(const Ints& room, const Ints& capacity, TaskPacking& found) {
        std::vector<Piece> pieces;
        divide_next(room, capacity, 0, pieces, found);
    }

    void divide_next(const Ints& room, const Ints& capacity, std::size_t number, std::vector<Piece>& pieces,
                     TaskPacking& found) {
        if (number == apart_.size()) {
            fill(room, capacity, pieces, found);
            return;
        }
        std::map<std::int32_t, Ints> parts_of_home;
        for (std::size_t leaf = 0; leaf < room.size(); ++leaf) {
            if (room[leaf] > 0) parts_of_home[homes_[number][leaf]];
        }
        for (std::size_t leaf = 0; leaf < room.size(); ++leaf) {
            const auto home = parts_of_home.find(homes_[number][leaf]);
            if (home != parts_of_home.end()) home->second.push_back(parts_[number][leaf]);
        }
        for (auto& [_, parts] : parts_of_home) {
            std::ranges::sort(parts);
            parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
            std::vector<std::int64_t> room_behind(parts.size() + 1, 0);
            for (std::size_t i = parts.size(); i-- > 0;)
                room_behind[i] = room_behind[i + 1] + capacity[index(parts[i])];
            Ints sizes(parts.size(), 0);
            divide_among(room, capacity, number, parts, room_behind, sizes, 0,
                         static_cast<std::int32_t>(apart_[number].tasks.size()), pieces, found);
            if (found.found || !found.complete) return;
        }
    }

    // All ways to divide `left` tasks among the parts from `at` on, the most in the first ones first.
    void divide_among(const Ints& room, const Ints& capacity, std::size_t number, const Ints& parts,
                      const std::vector<std::int64_t>& room_behind, Ints& sizes, std::size_t at,
                      std::int32_t left, std::vector<Piece>& pieces, TaskPacking& found) {
        if (at == parts.size()) {
            if (left == 0) try_sizes(room, capacity, number, parts, sizes, pieces, found);
            return;
        }
        const auto least = static_cast<std::int32_t>(std::max<std::int64_t>(left - room_behind[at + 1], 0));
        for (std::int32_t here = std::min(left, capacity[index(parts[at])]); here >= least; --here) {
            sizes[at] = here;
            divide_among(room, capacity, number, parts, room_behind, sizes, at + 1, left - here, pieces,
                         found);
            if (found.found || !found.complete) return;
        }
    }

    void try_sizes(const Ints& room, Ints capacity, std::size_t number, const Ints& parts, const Ints& sizes,
                   std::vector<Piece>& pieces, TaskPacking& found) {
        found.complete = ++ways_ <= kMostWays && !meter_.look_at_clock();
        if (!found.complete) return;
        const std::size_t before = pieces.size();
        bool has_room = true;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (sizes[i] == 0) continue;
            pieces.push_back({number, parts[i], sizes[i]});
            for (std::int32_t part = parts[i]; part >= 0; part = tree_.parent()[index(part)]) {
                capacity[index(part)] -= sizes[i];
                has_room = has_room && capacity[index(part)] >= 0;
            }
        }
        if (has_room) divide_next(room, capacity, number + 1, pieces, found);
        pieces.resize(before);
    }

    // The other groups beside these pieces.
    void fill(const Ints& room, const Ints& capacity, std::vector<Piece> pieces, TaskPacking& found) const {
        const groups::PackResult made = packed(tree_, capacity, forest_, kAbsent, params_.stop);
        found.complete = made.found || made.complete;
        if (!made.found) return;
        Ints left = left_of(room, made.shares);
        std::vector<Piece> rows;
        std::ranges::stable_sort(pieces, std::ranges::greater{}, &Piece::domain);  // the inner domains first
        for (const Piece& piece : pieces) take(left, parts_[piece.group], piece.domain, piece, rows);
        keep(made.shares, std::move(rows), found);
    }

    Ints left_of(Ints room, const std::vector<groups::Share>& shares) const {
        for (const groups::Share& share : shares) room[index(share.leaf) - tree_.first_leaf()] -= share.tasks;
        return room;
    }

    // Takes the room of a piece from the leaves of a domain, from those with the most first.
    static void take(Ints& left, const Ints& domain_of, std::int32_t domain, Piece piece,
                     std::vector<Piece>& rows) {
        Ints leaves;
        for (std::size_t leaf = 0; leaf < left.size(); ++leaf) {
            if (domain_of[leaf] == domain) leaves.push_back(static_cast<std::int32_t>(leaf));
        }
        std::ranges::stable_sort(leaves, std::ranges::greater{},
                                 [&](std::int32_t leaf) { return left[index(leaf)]; });
        for (const std::int32_t leaf : leaves) {
            const std::int32_t tasks = std::min(piece.tasks, left[index(leaf)]);
            if (tasks == 0) continue;
            left[index(leaf)] -= tasks;
            piece.tasks -= tasks;
            rows.push_back({piece.group, leaf, tasks});
        }
        TOPOPLACE_ASSERT(piece.tasks == 0);
    }

    // rows: the leaves of the groups apart, by their number from 0.
    void keep(const std::vector<groups::Share>& shares, std::vector<Piece> rows, TaskPacking& found) const {
        found.found = true;
        found.shares = shares;
        const auto first = static_cast<std::int32_t>(found.forest.size());
        for (const Together& group : apart_)
            found.forest.add(0, -static_cast<std::int32_t>(group.level) - 1, group.tasks);
        std::ranges::sort(rows, {},
                          [](const Piece& row) { return std::tuple(row.group, row.domain, row.tasks); });
        for (const Piece& row : rows)
            found.shares.push_back({first + static_cast<std::int32_t>(row.group),
                                    row.domain + static_cast<std::int32_t>(tree_.first_leaf()), row.tasks});
    }

    const TaskPackingParams& params_;
    const DomainTree& tree_;
    std::vector<Together> apart_;      // the largest first
    TaskForest forest_;                // of the others
    std::vector<Ints> homes_, parts_;  // of each group apart, for each leaf: its domain, and the part of it
    int ways_ = 0;
    WorkMeter meter_{params_.stop};  // between ways
};

}  // namespace

TaskPacking pack_apart(const TaskPackingParams& params) { return ApartGroups(params).run(); }

}  // namespace topoplace::decide
