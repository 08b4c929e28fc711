// A packing of the required groups, then of more and more preferred ones; tasks get its leaves in order.
#include "topoplace/task_division.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "decide/task_exchange.hpp"
#include "graph/index.hpp"
#include "job_traffic/checks.hpp"

namespace topoplace::decide {
namespace {

class TaskDivider {
  public:
    explicit TaskDivider(const TaskDivisionParams& params)
        : params_(params), tasks_(index(params.num_tasks)), meter_(better()) {
        std::iota(tasks_.begin(), tasks_.end(), 0);
    }

    TaskDivision run() {
        TaskDivision found;
        std::optional<TaskPacking> best = first(found.complete);
        if (!best) return found;
        for (const std::vector<Together>& wishes : wishes_of()) {
            if (meter_.look_at_clock()) break;
            fulfil(wishes, *best);
        }
        found.found = true;
        found.leaf_of = leaves_of(*best);
        if (!params_.edges.empty()) exchange_tasks(params_, best->forest, better(), found.leaf_of);
        return found;
    }

    TaskPacking any() const { return packing({}, kAbsent, params_.stop); }

  private:
    bool has_limit() const { return params_.better_until != std::chrono::steady_clock::time_point::max(); }
    bool time_is_up() const { return better().time_is_up(); }
    StopCondition better() const {
        StopCondition stop = params_.stop;
        stop.when = std::min(stop.when, params_.better_until);
        return stop;
    }

    TaskPacking packing(std::span<const Together> wishes, std::int32_t balanced,
                        const StopCondition& stop) const {
        TaskPackingParams params{.tree = params_.tree,
                                 .num_tasks = params_.num_tasks,
                                 .tasks = tasks_,
                                 .together = required_,
                                 .apart = params_.apart,
                                 .balanced = balanced,
                                 .stop = stop};
        params.together.insert(params.together.end(), wishes.begin(), wishes.end());
        return pack_tasks(params);
    }

    // With even shares, if these are asked for and found in time. Where there is a limit, one is first found
    // without them.
    std::optional<TaskPacking> first(bool& complete) const {
        const auto kept = [&](TaskPacking found) {
            complete = found.complete;
            return found.found ? std::optional(std::move(found)) : std::nullopt;
        };
        if (params_.balanced < 0) return kept(any());
        std::optional<TaskPacking> found;
        if (has_limit() && !(found = kept(any()))) return found;
        if (time_is_up()) return found;
        TaskPacking even = packing({}, params_.balanced, better());
        return even.found || even.complete || !found ? kept(std::move(even)) : found;
    }

    // The most tasks that a domain of a level can have.
    std::size_t most_in_domain(std::size_t level) const {
        const std::vector<std::int32_t> domains = params_.tree->domains_of(level);
        std::vector<std::size_t> room(1 + index(std::ranges::max(domains)), 0);
        for (std::size_t leaf = 0; leaf < domains.size(); ++leaf)
            room[index(domains[leaf])] += index(params_.tree->room()[params_.tree->first_leaf() + leaf]);
        return std::ranges::max(room);
    }

    // The preferred groups that some domain has room for.
    std::vector<Together> possible_wishes() const {
        std::vector<Together> found = params_.preferred;
        std::map<std::size_t, std::size_t> most;
        std::erase_if(found, [&](const Together& one) {
            if (!most.contains(one.level)) most[one.level] = most_in_domain(one.level);
            return one.tasks.size() > most[one.level];
        });
        return found;
    }

    // Equal ones in one list, the largest first, then those of the outermost level.
    std::vector<std::vector<Together>> wishes_of() const {
        const auto kind = [](const Together& one) { return std::pair(one.tasks.size(), one.level); };
        std::vector<Together> sorted = possible_wishes();
        std::ranges::stable_sort(sorted, [&](const Together& a, const Together& b) {
            if (a.tasks.size() != b.tasks.size()) return a.tasks.size() > b.tasks.size();
            if (a.level != b.level) return a.level < b.level;
            return std::ranges::lexicographical_compare(a.tasks, b.tasks);
        });
        std::vector<std::vector<Together>> found;
        for (const Together& one : sorted) {
            const bool is_new = found.empty() || kind(found.back().front()) != kind(one);
            if (is_new) found.emplace_back();
            const bool is_known = !is_new && std::ranges::equal(found.back().back().tasks, one.tasks);
            if (!is_known) found.back().push_back(one);
        }
        return found;
    }

    // Requires as many of the wishes as are found to be fulfilled in time, the first ones. Fewer are no
    // harder.
    void fulfil(const std::vector<Together>& wishes, TaskPacking& best) {
        std::size_t low = 0, high = wishes.size(), middle = high;
        while (low < high) {
            std::optional<TaskPacking> found;
            if (!meter_.look_at_clock())
                found = packing(std::span(wishes).first(middle), params_.balanced, better());
            if (found && found->found) {
                best = std::move(*found);
                low = middle;
            } else {
                high = middle - 1;
            }
            middle = (low + high + 1) / 2;
        }
        required_.insert(required_.end(), wishes.begin(), wishes.begin() + static_cast<std::ptrdiff_t>(low));
    }

    std::vector<std::int32_t> leaves_of(const TaskPacking& packing) const {
        std::vector<std::int32_t> order = tasks_, found(tasks_.size());
        std::ranges::stable_sort(order, {},
                                 [&](std::int32_t task) { return packing.forest.inner[index(task)]; });
        std::size_t next = 0;
        const auto first_leaf = static_cast<std::int32_t>(params_.tree->first_leaf());
        for (const groups::Share& share : packing.shares) {
            for (std::int32_t i = 0; i < share.tasks; ++i)
                found[index(order[next++])] = share.leaf - first_leaf;
        }
        return found;
    }

    const TaskDivisionParams& params_;
    std::vector<std::int32_t> tasks_;
    std::vector<Together> required_ = params_.required;  // and the wishes that are fulfilled
    WorkMeter meter_;                                    // of what makes the first division better
};

}  // namespace

Fault check(const TaskDivisionParams& params) {
    TaskPackingParams packing{.tree = params.tree,
                              .num_tasks = params.num_tasks,
                              .together = params.required,
                              .apart = params.apart,
                              .balanced = params.balanced};
    packing.together.insert(packing.together.end(), params.preferred.begin(), params.preferred.end());
    if (auto fault = check(packing)) return fault;
    if (auto fault = traffic::check_edges(params.edges, index(params.num_tasks))) return fault;
    if (params.edges.empty()) return std::nullopt;
    if (params.distances == nullptr) return "distances are missing";
    if (auto fault = traffic::check_size("gpus", params.gpus.size(), params.tree->num_leaves())) return fault;
    return traffic::check_range("gpus", params.gpus, 0, index(params.distances->num_gpus()));
}

TaskDivision divide_tasks(const TaskDivisionParams& params) { return TaskDivider(params).run(); }

bool can_be_divided(const TaskDivisionParams& params) { return TaskDivider(params).any().found; }

}  // namespace topoplace::decide
