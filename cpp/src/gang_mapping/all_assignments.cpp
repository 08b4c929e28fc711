// Task after task gets each free place: any for the first task of an item, one on the same leaf for the
// others.
#include "gang_mapping/all_assignments.hpp"

#include <algorithm>

#include "graph/index.hpp"

namespace topoplace::gang_mapping {
namespace {

class Lister {
  public:
    Lister(const GangParams& params, const tree_mapping::Problem& problem)
        : params_(params),
          problem_(problem),
          size_(params.tasks.size() / index(problem.items)),
          used_(index(problem.leaves), 0) {
        now_.vertex_of.assign(params.tasks.size(), ports::kNone);
        for (std::size_t i = 0; i < params.places.size(); ++i) {
            while (static_cast<std::int64_t>(i) >= params.leaf_ends[index(leaves_)]) ++leaves_;
            leaf_of_place_.push_back(leaves_);
        }
        taken_.assign(params.places.size(), 0);
    }

    std::vector<Assignment> list() {
        place(0, ports::kNone);
        return std::move(found_);
    }

  private:
    void place(std::size_t number, Index own_leaf) {
        if (number == params_.tasks.size()) {
            now_.leaves = static_cast<Index>(std::ranges::count_if(used_, [](Index one) { return one > 0; }));
            found_.push_back(now_);
            return;
        }
        const bool is_first = number % size_ == 0;
        for (std::size_t i = 0; i < taken_.size(); ++i) {
            const Index leaf = leaf_of_place_[i];
            if (taken_[i] != 0 || !(is_first ? may_begin(number / size_, leaf) : leaf == own_leaf)) continue;
            taken_[i] = 1;
            used_[index(leaf)] += is_first ? 1 : 0;
            now_.vertex_of[index(params_.tasks[number])] = params_.places[i];
            place(number + 1, leaf);
            used_[index(leaf)] -= is_first ? 1 : 0;
            taken_[i] = 0;
        }
    }

    bool may_begin(std::size_t item, Index leaf) const {
        if (used_[index(leaf)] >= problem_.room[index(leaf)]) return false;
        return problem_.start.empty() ||
               problem_.may_go(static_cast<Index>(item), problem_.start[item], leaf);
    }

    const GangParams& params_;
    const tree_mapping::Problem& problem_;
    std::size_t size_;
    Index leaves_ = 0;
    std::vector<Index> leaf_of_place_{}, used_;  // items on each leaf
    std::vector<std::uint8_t> taken_{};
    Assignment now_{};
    std::vector<Assignment> found_{};
};

// No fewer than there are: of each item, its tasks on the places of any leaf, less those that items take.
bool may_be_more(const GangParams& params, const tree_mapping::Problem& problem, std::size_t most) {
    const std::size_t size = params.tasks.size() / index(problem.items);
    if (params.tasks.size() > most) return true;
    std::size_t count = 1;
    for (std::size_t item = 0; item < index(problem.items); ++item) {
        std::size_t ways = 0;
        std::int64_t begin = 0;
        for (const std::int64_t end : params.leaf_ends) {
            std::size_t orders = 1;
            for (std::size_t i = 0; i < size; ++i) {
                orders *= static_cast<std::size_t>(std::max<std::int64_t>(0, end - begin - std::int64_t(i)));
                if (orders > most) return true;
            }
            ways += orders;
            begin = end;
        }
        count *= size == 1 ? ways - std::min(ways, item) : ways;
        if (count > most) return true;
    }
    return false;
}

}  // namespace

std::vector<Assignment> all_assignments(const GangParams& params, const tree_mapping::Problem& problem,
                                        std::size_t most) {
    if (problem.items == 0 || may_be_more(params, problem, most)) return {};
    return Lister(params, problem).list();
}

}  // namespace topoplace::gang_mapping
