// Divides a gang (task_division.hpp), and says what its tasks may not leave.
#include "decide/gang_start.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "decide/gang_regions.hpp"
#include "graph/index.hpp"
#include "job_traffic/checks.hpp"
#include "topoplace/task_division.hpp"

namespace topoplace::decide {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point half_way(const StopCondition& stop) {
    if (stop.when == Clock::time_point::max()) return stop.when;
    const auto now = Clock::now();
    return stop.when > now ? now + (stop.when - now) / 2 : stop.when;
}

std::size_t num_different(std::vector<std::int64_t> values) {
    std::ranges::sort(values);
    return static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin());
}

}  // namespace

Fault check(const GangGroups& groups, const GangLevels& levels, std::int32_t num_tasks) {
    if (groups.tree == nullptr)
        return groups.bind() || !groups.roles.empty() ? Fault("the levels of groups are missing")
                                                      : std::nullopt;
    const std::size_t size = groups.tree->size();
    if ((*groups.tree)[0].codes.size() != levels[0].codes.size())
        return "the levels of groups are those of other machines";
    if (auto fault = traffic::check_size("level_of", groups.level_of.size(), size)) return fault;
    for (std::size_t i = 0; i < size; ++i) {
        if (groups.level_of[i] >= levels.size())
            return traffic::wrong("level_of", i, groups.level_of[i], "not a level");
    }
    for (const auto* some : {&groups.required, &groups.apart, &groups.preferred}) {
        if (auto fault = check_groups(*some, size, num_tasks)) return fault;
    }
    for (const auto role : groups.roles) {
        if (auto fault = traffic::check_once("role", role, index(num_tasks))) return fault;
    }
    if (groups.balanced < -1 || groups.balanced >= static_cast<std::int32_t>(size))
        return traffic::wrong("balanced", 0, groups.balanced, "not a level of groups");
    return std::nullopt;
}

GangSearchParams GangStart::of(GangSearchParams search, bool is_balanced) const {
    search.units = units.view();
    search.start = machine_of;
    search.together = together;
    search.whole = whole;
    search.is_balanced = is_balanced;
    return search;
}

BoundGang::BoundGang(const GangDecisionParams& params, const GangSearchParams& search)
    : params_(params),
      search_(search),
      bound_(params.bound),
      units_(first_units(search.job, params.groups, search.most, search.offers.sizes)) {}

bool BoundGang::needs_division() const {
    const std::size_t machines = bound_.tree->size() - 1;
    const bool are_whole = units_.size > 1;  // then units are the groups of machines, if there are any
    const auto divides = [&](const Together& one) { return one.level != machines || !are_whole; };
    return std::ranges::any_of(bound_.required, divides) || !bound_.apart.empty() ||
           !bound_.preferred.empty() || bound_.balanced >= 0 || search_.edges.empty();
}

std::optional<GangStart> BoundGang::start() const {
    Ints found = divided(search_);
    if (found.empty()) return std::nullopt;
    if (params_.search.others != nullptr && !search_.stop.time_is_up()) {
        const std::vector<std::size_t> idle = beside_no_others();
        const Region region = region_of(search_.offers, idle);
        std::int64_t room = 0;
        for (const std::int32_t size : region.sizes) room += size;
        if (idle.size() < search_.offers.machines.size() && room >= params_.groups.num_tasks) {
            GangSearchParams among = search_;
            among.offers = region.offers(search_.offers);
            Ints other = divided(among);
            if (!other.empty()) {
                const std::vector<std::size_t> ours = widths(other), theirs = widths(found);
                const bool is_as_narrow = std::ranges::equal(ours, theirs, std::less_equal{});
                if (is_as_narrow) found = std::move(other);
            }
        }
    }
    return start_from(std::move(found));
}

std::vector<std::int32_t> BoundGang::division() const { return divided(search_); }

// With the units whole if that is possible.
BoundGang::Ints BoundGang::divided(const GangSearchParams& search) const {
    if (units_.size > 1 && !bound_.on_machine) {
        std::vector<Together> required = bound_.required;
        const Units units = units_.view();
        for (std::int32_t unit = 0; unit < units.count(); ++unit)
            required.push_back(
                {bound_.tree->size() - 1, units.tasks.subspan(index(unit * units.size), index(units.size))});
        Ints found = divided(search, std::move(required), bound_.preferred);
        if (!found.empty()) return found;
    }
    Ints found = divided(search, bound_.required, bound_.preferred);
    return !found.empty() && tasks_are_alike() ? in_rank_order(found) : found;
}

// The machine of each task; none without a division.
BoundGang::Ints BoundGang::divided(const GangSearchParams& search, std::vector<Together> required,
                                   std::vector<Together> preferred) const {
    const MachineOffers& offers = search.offers;
    Ints sizes(offers.sizes.begin(), offers.sizes.end());
    if (search.most < params_.groups.num_tasks) {
        for (std::int32_t& size : sizes) size = std::min(size, search.most);
    }
    DomainTreeParams tree_params{.machines = offers.machines, .sizes = sizes};
    for (std::size_t i = 0; i < bound_.tree->size(); ++i)
        tree_params.levels.push_back({(*bound_.tree)[i].codes, (*bound_.tree)[i].domains});
    const DomainTree tree(tree_params);
    Ints gpus;
    for (const std::int32_t at : tree.order()) {
        std::size_t first = SIZE_MAX;
        offers.each_usable(offers.kind_of[index(at)], [&](std::size_t gpu) { first = std::min(first, gpu); });
        const auto own = search.topology->machines.gpus_of(offers.machines[index(at)]);
        gpus.push_back(own[first == SIZE_MAX ? 0 : first]);
    }
    TaskDivisionParams params{.tree = &tree,
                              .num_tasks = params_.groups.num_tasks,
                              .required = std::move(required),
                              .apart = bound_.apart,
                              .preferred = std::move(preferred),
                              .balanced = bound_.balanced,
                              .distances = bound_.distances,
                              .gpus = gpus,
                              .stop = params_.until_found,
                              .better_until = half_way(search_.stop)};
    if (bound_.distances != nullptr) params.edges = search.edges;
    TaskDivision made = divide_tasks(params);
    for (std::int32_t& leaf : made.leaf_of) leaf = offers.machines[index(tree.order()[index(leaf)])];
    return std::move(made.leaf_of);
}

// All tasks are in all collectives and groups: the library's rings then follow the ranks.
bool BoundGang::tasks_are_alike() const {
    const std::size_t count = index(params_.groups.num_tasks);
    const auto has_all = [&](const Together& one) { return one.tasks.size() == count; };
    for (const auto* some : {&bound_.required, &bound_.apart, &bound_.preferred}) {
        if (!std::ranges::all_of(*some, has_all)) return false;
    }
    for (std::size_t i = 0; i < search_.job.ends.size(); ++i) {
        if (index(static_cast<std::int32_t>(search_.job.size_of(i))) != count) return false;
    }
    return true;
}

// As many tasks on each machine, but consecutive ones.
BoundGang::Ints BoundGang::in_rank_order(const Ints& machine_of) const {
    Ints found = machine_of;
    std::ranges::sort(found);
    return found;
}

// The offers in domains whose uplinks no other job uses, up to the outermost level of a group.
std::vector<std::size_t> BoundGang::beside_no_others() const {
    const std::vector<double> flows = largest_flows(search_.job, units_.view());
    const double largest = flows.empty() ? 0.0 : *std::ranges::max_element(flows);
    const std::size_t level = std::min(bound_.outermost, search_.levels->size());
    return search_.levels->beside_no_others(level, search_.offers.machines, *search_.others, largest);
}

// How many domains a division has at each level, and the preferred groups and the units are in.
std::vector<std::size_t> BoundGang::widths(const Ints& machine_of) const {
    const auto count = [&](const std::vector<std::int64_t>& domains, std::span<const std::int32_t> tasks) {
        std::vector<std::int64_t> own;
        for (const std::int32_t task : tasks) own.push_back(domains[index(machine_of[index(task)])]);
        return num_different(std::move(own));
    };
    const GangUnits every = single_tasks(params_.groups.num_tasks);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < search_.levels->size(); ++i)
        found.push_back(count((*search_.levels)[i].codes, every.tasks));
    for (const Together& one : bound_.preferred)
        found.push_back(count((*search_.levels)[bound_.level_of[one.level]].domains, one.tasks));
    const Units units = units_.view();
    std::vector<std::int64_t> of_units;
    for (std::size_t i = 0; i < units.tasks.size(); ++i) {
        const std::int64_t unit = static_cast<std::int64_t>(i) / units.size;
        of_units.push_back(unit * search_.topology->machines.size() + machine_of[index(units.tasks[i])]);
    }
    found.push_back(num_different(std::move(of_units)));
    return found;
}

bool BoundGang::are_whole(const Ints& machine_of) const {
    const Units units = units_.view();
    for (std::size_t i = 0; i < units.tasks.size(); ++i) {
        const std::size_t first = i / index(units.size) * index(units.size);
        if (machine_of[index(units.tasks[i])] != machine_of[index(units.tasks[first])]) return false;
    }
    return true;
}

GangStart BoundGang::start_from(Ints machine_of) const {
    GangStart start{.machine_of = std::move(machine_of), .units = units_};
    if (!are_whole(start.machine_of)) start.units = single_tasks(params_.groups.num_tasks);
    const std::size_t count = index(params_.groups.num_tasks), machines = search_.levels->size() - 1;
    std::vector<Together> required = bound_.required;
    required.insert(required.end(), bound_.apart.begin(), bound_.apart.end());
    std::set<std::size_t> wanted;  // levels of which one domain must have all tasks
    for (Together& one : required) {
        one.level = bound_.level_of[one.level];
        if (one.tasks.size() == count) wanted.insert(one.level);
    }
    const auto is_wanted = [&](const Together& one) { return wanted.contains(one.level); };
    if (bound_.preferred.empty() && bound_.balanced < 0 && std::ranges::all_of(required, is_wanted))
        start.whole.assign(wanted.rbegin(), wanted.rend());
    for (Together one : bound_.preferred) {
        one.level = bound_.level_of[one.level];
        required.push_back(one);
    }
    for (const Together& one : required) {
        const bool is_unit = one.level == machines && one.tasks.size() == index(start.units.size);
        if (!is_unit) start.together.push_back(one);
    }
    return start;
}

std::optional<GangStart> BoundGang::from_roles(const GangSearchParams& among) const {
    std::vector<Together> preferred = bound_.preferred;
    for (const auto role : bound_.roles) {
        if (role.size() > 1) preferred.push_back({bound_.tree->size() - 1, role});
    }
    Ints found = divided(among, bound_.required, std::move(preferred));
    if (found.empty()) return std::nullopt;
    return start_from(std::move(found));
}

}  // namespace topoplace::decide
