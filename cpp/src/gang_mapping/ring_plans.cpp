// Fills domains from the top down, then takes items from the fullest ones for those that have too few.
#include "gang_mapping/ring_plans.hpp"

#include <algorithm>
#include <utility>

#include "graph/index.hpp"

namespace topoplace::gang_mapping {
namespace {

using tree_mapping::Problem;

class RingFiller {
  public:
    RingFiller(const Problem& problem, std::vector<Index>& room, Index depth, Index least)
        : problem_(problem),
          room_(room),
          least_(least),
          depth_of_(problem.parent.size(), 0),
          ring_depth_(depth) {
        takes_.assign(problem.parent.size(), 0);
        for (std::size_t i = 1; i < depth_of_.size(); ++i) {
            depth_of_[i] = depth_of_[index(problem.parent[i])] + 1;
            if (depth_of_[i] == ring_depth_) ring_domains_.push_back(static_cast<Index>(i));
        }
        count_takes();
    }

    // Appends the leaves of so many items, and takes them from the room; false where that is not found.
    bool append(Index count, Choice choice, Plan& plan) {
        if (takes_[0] < count) return false;
        chosen_.clear();
        if (choice == Choice::kNear) fill(0, count);
        if (choice == Choice::kLargest) choose_largest(count);
        if (choice == Choice::kTightest && !choose_tightest(count)) return false;
        if (!spread()) return false;
        filled_.clear();
        for (const auto& [domain, part] : chosen_) fill_leaves(domain, part, plan);
        for (const Index domain : filled_) count_takes_around(domain);
        return true;
    }

  private:
    struct Part {
        Index domain = 0;
        std::int64_t count = 0;
    };

    void count_takes() {
        for (std::size_t i = takes_.size(); i-- > 0;) {
            const Index leaf = problem_.leaf_of_domain[i];
            if (leaf >= 0) takes_[i] = room_[index(leaf)];
            if (depth_of_[i] == ring_depth_ && takes_[i] < least_) takes_[i] = 0;
            if (i > 0) takes_[index(problem_.parent[i])] += takes_[i];
        }
    }

    // Of a leaf whose room has changed, and of the domains around it.
    void count_takes_around(Index leaf) {
        std::int64_t now = room_[index(problem_.leaf_of_domain[index(leaf)])];
        for (Index one = leaf;; one = problem_.parent[index(one)]) {
            if (depth_of_[index(one)] == ring_depth_ && now < least_) now = 0;
            const std::int64_t before = std::exchange(takes_[index(one)], now);
            if (one == 0 || before == now) return;
            now += takes_[index(problem_.parent[index(one)])] - before;
        }
    }

    // The domains that can take something, and how much.
    std::vector<Part> domains() const {
        std::vector<Part> found;
        for (const Index one : ring_domains_) {
            if (takes_[index(one)] > 0) found.push_back({one, takes_[index(one)]});
        }
        return found;
    }

    void choose_largest(std::int64_t count) {
        const auto is_after = [](const Part& one, const Part& other) {
            return std::pair(one.count, other.domain) < std::pair(other.count, one.domain);
        };
        std::vector<Part> left = domains();
        std::ranges::make_heap(left, is_after);
        while (count > 0 && !left.empty()) {
            std::ranges::pop_heap(left, is_after);
            chosen_.push_back({left.back().domain, std::min(left.back().count, count)});
            count -= chosen_.back().count;
            left.pop_back();
        }
        std::ranges::sort(chosen_, {}, &Part::domain);
    }

    // As many domains as `count` items fill: the smallest ones, some of them for larger ones until there is
    // room.
    bool choose_tightest(std::int64_t count) {
        std::vector<Part> left = domains();
        const auto most = std::min(static_cast<std::ptrdiff_t>(left.size()),
                                   static_cast<std::ptrdiff_t>(std::max<std::int64_t>(1, count / least_)));
        const auto by_count = [](const Part& one) { return std::pair(one.count, one.domain); };
        std::ranges::partial_sort(left, left.begin() + most, {}, by_count);
        chosen_.assign(left.begin(), left.begin() + most);
        left.erase(left.begin(), left.begin() + most);
        std::int64_t lacking = count;
        for (const Part& one : chosen_) lacking -= one.count;
        if (lacking > 0) std::ranges::sort(left, {}, by_count);
        for (std::size_t i = 0; lacking > 0 && i < chosen_.size() && !left.empty(); ++i) {
            auto larger = std::ranges::lower_bound(left, chosen_[i].count + lacking, {}, &Part::count);
            if (larger == left.end()) --larger;
            lacking -= larger->count - chosen_[i].count;
            chosen_[i] = *larger;
            left.erase(larger);
        }
        if (lacking > 0) return false;
        std::ranges::stable_sort(chosen_, std::ranges::greater{}, &Part::count);
        take(count);
        return true;
    }

    // Gives the chosen domains what they can take, one after the other, as long as there are items; then they
    // are in the order of the tree.
    void take(std::int64_t count) {
        std::size_t used = 0;
        for (; used < chosen_.size() && count > 0; ++used) {
            chosen_[used].count = std::min(chosen_[used].count, count);
            count -= chosen_[used].count;
        }
        chosen_.resize(used);
        std::ranges::sort(chosen_, {}, &Part::domain);
    }

    // The largest children first, each with what it can take, and at last the smallest that suffices. Of
    // equal ones, the first.
    template <class Take>
    void divide(Index domain, std::int64_t count, const Take& take) const {
        const auto is_after = [this](Index one, Index other) {
            return std::pair(takes_[index(one)], other) < std::pair(takes_[index(other)], one);
        };
        std::vector<Index> left;
        for (const Index child : problem_.children[index(domain)]) {
            if (takes_[index(child)] > 0) left.push_back(child);
        }
        std::ranges::make_heap(left, is_after);
        while (count > 0 && !left.empty()) {
            if (takes_[index(left.front())] >= count) return take(tightest(left, count), count);
            std::ranges::pop_heap(left, is_after);
            const std::int64_t part = takes_[index(left.back())];
            take(left.back(), part);
            left.pop_back();
            count -= part;
        }
    }

    // The first of the smallest domains that have room for so many.
    Index tightest(const std::vector<Index>& domains, std::int64_t count) const {
        Index chosen = domains.front();
        for (const Index one : domains) {
            const bool is_smaller =
                std::pair(takes_[index(one)], one) < std::pair(takes_[index(chosen)], chosen);
            if (takes_[index(one)] >= count && is_smaller) chosen = one;
        }
        return chosen;
    }

    void fill(Index domain, std::int64_t count) {
        if (depth_of_[index(domain)] == ring_depth_) {
            chosen_.push_back({domain, count});
            return;
        }
        divide(domain, count, [this](Index child, std::int64_t part) { fill(child, part); });
    }

    // Brings every chosen domain to `least` items; false where there are too few.
    bool spread() {
        for (Part& poor : chosen_) {
            while (poor.count < least_) {
                const auto rich = std::ranges::max_element(chosen_, {}, &Part::count);
                if (rich->count <= least_) return false;
                const std::int64_t part = std::min(rich->count - least_, least_ - poor.count);
                rich->count -= part;
                poor.count += part;
            }
        }
        return true;
    }

    void fill_leaves(Index domain, std::int64_t count, Plan& plan) {
        if (const Index leaf = problem_.leaf_of_domain[index(domain)]; leaf >= 0) {
            room_[index(leaf)] -= static_cast<Index>(count);
            filled_.push_back(domain);
            plan.insert(plan.end(), static_cast<std::size_t>(count), leaf);
            return;
        }
        divide(domain, count, [&](Index child, std::int64_t part) { fill_leaves(child, part, plan); });
    }

    const Problem& problem_;
    std::vector<Index>& room_;
    std::int64_t least_;
    std::vector<Index> depth_of_;
    Index ring_depth_;
    std::vector<Index> ring_domains_{};  // of this depth
    std::vector<std::int64_t> takes_;
    std::vector<Part> chosen_{};
    std::vector<Index> filled_{};  // leaves
};

}  // namespace

Plan ring_plan(const Problem& problem, std::vector<Index> room, Index depth, Index least, Index block,
               Choice choice) {
    Plan plan;
    RingFiller filler(problem, room, depth, least);
    for (Index begin = 0; begin < problem.items; begin += block) {
        if (!filler.append(std::min(block, problem.items - begin), choice, plan)) return {};
    }
    return plan;
}

}  // namespace topoplace::gang_mapping
