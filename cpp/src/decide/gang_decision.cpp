// One search after the other, each with a share of the usual work.
#include "topoplace/gang_decision.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <set>

#include "decide/crossing_rings.hpp"
#include "decide/few_machines.hpp"
#include "decide/gang_regions.hpp"
#include "decide/gang_start.hpp"
#include "decide/narrow_domains.hpp"
#include "graph/index.hpp"
#include "job_traffic/checks.hpp"
#include "topoplace/gang_divisions.hpp"

namespace topoplace::decide {
namespace {

constexpr double kShareOfBlocks = 0.4, kShareOfOtherUnits = 0.4, kShareOfRoles = 0.4, kShareOfOneSocket = 0.2;
constexpr std::int32_t kMostSearchedAgain = 256;  // tasks of a gang whose units are also divided
// GPUs x units of divisions that are compared, as they may be faster; and where GPUs are alike, so that they
// seldom are, but prove what is found.
constexpr std::int64_t kMostDivisions = 1 << 20, kMostProven = 1 << 17;

// Some of what machines offer, as its own arrays.
struct SomeOffers {
    Region region{};
    std::vector<std::uint8_t> usable{}, free{};

    SomeOffers(const GangSearchParams& params, const std::vector<std::size_t>& numbers)
        : region(region_of(params.offers, numbers)) {
        for (const std::size_t i : numbers) {
            const auto own = params.free.subspan(i * params.free_bytes, params.free_bytes);
            free.insert(free.end(), own.begin(), own.end());
        }
    }
    // Of each machine only the socket with the most GPUs that it offers.
    explicit SomeOffers(const GangSearchParams& params)
        : region{{params.offers.machines.begin(), params.offers.machines.end()},
                 {params.offers.kind_of.begin(), params.offers.kind_of.end()},
                 {}},
          usable(params.offers.usable.size(), 0),
          free(params.free.begin(), params.free.end()) {
        std::vector<std::int32_t> sizes(usable.size() / params.offers.bytes, kAbsent);  // of kinds
        for (std::size_t i = 0; i < region.machines.size(); ++i) {
            std::int32_t& size = sizes[index(region.kind_of[i])];
            if (size == kAbsent) size = keep_socket(params, region.machines[i], region.kind_of[i]);
            region.sizes.push_back(std::min(params.offers.sizes[i], size));
        }
    }

    GangSearchParams of(GangSearchParams params) const {
        params.offers = region.offers(params.offers);
        if (!usable.empty()) params.offers.usable = usable;
        params.free = free;
        return params;
    }

  private:
    // The number of GPUs.
    std::int32_t keep_socket(const GangSearchParams& params, std::int32_t machine, std::int32_t kind) {
        const std::vector<std::int32_t>& socket = params.topology->limits.machine(machine).socket;
        std::vector<std::pair<std::int32_t, std::int32_t>> counts;  // in the order of their first GPUs
        for (const std::int32_t one : socket) {
            if (std::ranges::find(counts, one, [](auto& own) { return own.first; }) == counts.end())
                counts.emplace_back(one, 0);
        }
        const auto count_of = [&](std::size_t gpu) -> std::pair<std::int32_t, std::int32_t>& {
            return *std::ranges::find(counts, socket[gpu], [](auto& own) { return own.first; });
        };
        params.offers.each_usable(kind, [&](std::size_t gpu) { ++count_of(gpu).second; });
        const auto fullest = *std::ranges::max_element(counts, {}, [](auto& own) { return own.second; });
        params.offers.each_usable(kind, [&](std::size_t gpu) {
            const std::size_t bit = index(kind) * 8 * params.offers.bytes + gpu;
            if (socket[gpu] == fullest.first) usable[bit / 8] |= static_cast<std::uint8_t>(1U << bit % 8);
        });
        return fullest.second;
    }
};

class Decision {
  public:
    // search: the offers of the decision, or some of them. may_leave: tasks may leave the machines from which
    // they start.
    Decision(const GangDecisionParams& params, const GangSearchParams& search, bool may_leave = false)
        : params_(params), search_(search), units_{{}, search.units.size} {
        search_.machine_groups = !params.groups.on_machine.empty();
        search_.may_leave = may_leave;
        if (search.units.tasks.empty()) units_ = units();
        if (search.units.tasks.empty()) search_.units = units_.view();
    }
    Decision(const Decision&) = delete;  // the search refers to it
    Decision& operator=(const Decision&) = delete;

    GangFound first() const {
        GangFound of_blocks = in_blocks();  // often proven at once
        if (of_blocks.found && !is_open(of_blocks)) return of_blocks;
        GangFound best = divided(search_gang(search_));
        of_blocks.least = best.least = std::max(of_blocks.least, best.least);
        return faster(std::move(best), std::move(of_blocks), search_.slack);
    }

    // From the machines of whole roles, which may be some of those offered.
    GangFound from_roles(GangFound best) const { return among_some(std::move(best), search_, kShareOfRoles); }

    GangFound last(GangFound best) const {
        if (!is_open(best) || !search_.start.empty()) return best;
        const GangUnits other = other_units();
        if (!other.tasks.empty()) {
            GangSearchParams search = search_;
            search.units = other.view();
            best = among_all(std::move(best), search, kShareOfOtherUnits);
        }
        if (!is_open(best) || !may_use_one_socket_each()) return best;
        const SomeOffers offers(search_);
        return among_some(std::move(best), offers.of(search_), kShareOfOneSocket);
    }

    bool is_open(const GangFound& best) const {
        return best.found && !best.is_proven() && !search_.stop.time_is_up();
    }

  private:
    std::int32_t num_tasks() const { return params_.groups.num_tasks; }
    bool has_groups() const {
        return !params_.groups.on_machine.empty() || !params_.groups.in_domain.empty();
    }
    GangUnits units() const {
        return first_units(search_.job, params_.groups, search_.most, search_.offers.sizes);
    }

    // What another search finds if that is faster. It proves something if it is among the same machines.
    GangFound among_all(GangFound best, GangSearchParams search, double share) const {
        search.share = share;
        GangFound other = search_gang(search);
        best.least = other.least = std::max(best.least, other.least);
        return faster(std::move(best), std::move(other), search_.slack);
    }
    GangFound among_some(GangFound best, GangSearchParams search, double share) const {
        search.share = share;
        GangFound other = search_gang(search);
        other.least = best.least;
        return faster(std::move(best), std::move(other), search_.slack);
    }

    // The gang whose units are blocks of two dimensions.
    GangFound in_blocks() const {
        if (!search_.start.empty() || has_groups()) return {};
        std::vector<std::int64_t> rooms;
        for (const std::int32_t size : search_.offers.sizes) rooms.push_back(std::min(size, search_.most));
        const GangUnits blocks = block_units(search_.topology->limits, search_.job, num_tasks(), rooms);
        if (blocks.tasks.empty()) return {};
        GangSearchParams search = search_;
        search.units = blocks.view();
        search.share = kShareOfBlocks;
        return search_gang(search);
    }

    // Single tasks of a small gang, or else the groups of a dimension in which less is exchanged.
    GangUnits other_units() const {
        if (has_groups()) return {};
        if (search_.units.size == 1)
            return further_units(search_.job, params_.groups, search_.most, search_.offers.sizes);
        return num_tasks() <= kMostSearchedAgain ? single_tasks(num_tasks()) : GangUnits{};
    }

    bool may_use_one_socket_each() const {
        const GangLimits& limits = search_.topology->limits;
        return num_tasks() <= kMostSearchedAgain && !limits.are_alike() &&
               std::ranges::any_of(limits.machines, [](const Machine* one) {
                   return std::ranges::adjacent_find(one->socket, std::ranges::not_equal_to{}) !=
                          one->socket.end();
               });
    }

    // The fastest division by what each machine can have if it is faster, and what it proves.
    GangFound divided(GangFound best) const {
        if (!is_open(best)) return best;
        const SomeOffers some(search_, in_outermost_domains(search_));
        const GangSearchParams search = some.of(search_);
        GangUnits units = single_tasks(num_tasks());
        if (has_groups()) units = first_units(search.job, params_.groups, search.most, search.offers.sizes);
        const bool are_all = search.offers.machines.size() == search_.offers.machines.size();
        if (!compares_divisions(units, search.offers.sizes, are_all)) return best;
        WorkMeter meter(search.stop);
        const GangRoom room =
            gang_room(search.topology->machines, search.offers, search.levels->codes(), search.most);
        const MachineLimits limits(search.topology->limits, room, search.levels->bound_class(), search.job,
                                   units.view(), search.machine_groups, meter);
        if (!limits.are_rings() && !limits.are_groups()) return best;
        std::vector<divisions::Division> found = fastest_division(search, limits, units);
        if (found.empty() || search.stop.time_is_up()) return best;
        if (are_all) best.least = std::max(best.least, found.front().seconds);
        if (params_.bound.bind() || params_.max_machines > 0 || !limits.are_rings()) return best;
        const double seconds =
            traffic::time_of(search.topology->network, search.job, found.front().gpus, search.others).seconds;
        return faster(best, {true, std::move(found.front().gpus), seconds, best.least}, search.slack);
    }

    // Divisions are few, and may be faster or prove something.
    bool compares_divisions(const GangUnits& units, std::span<const std::int32_t> sizes, bool are_all) const {
        std::int64_t work = 0;
        for (const std::int32_t size : sizes) work += size;
        work *= units.view().count();
        const bool are_alike = search_.topology->limits.are_alike();
        if (work > (are_alike ? kMostProven : kMostDivisions) || (are_alike && !are_all)) return false;
        if (units.size > 1) return true;
        for (std::size_t i = 0; i < search_.job.ends.size(); ++i) {
            if (search_.job.size_of(i) != num_tasks()) return false;
        }
        return !search_.job.ends.empty();
    }

    std::vector<divisions::Division> fastest_division(const GangSearchParams& search,
                                                      const MachineLimits& limits,
                                                      const GangUnits& units) const {
        const GangMachines& machines = search.topology->machines;
        std::vector<std::uint8_t> usable(index(search.topology->network.ports().num_vertices()), 0);
        std::vector<std::int32_t> most(index(machines.size()), 0);
        for (std::size_t i = 0; i < search.offers.machines.size(); ++i) {
            const std::int32_t machine = search.offers.machines[i];
            most[index(machine)] = std::min(search.offers.sizes[i], search.most);
            search.offers.each_usable(search.offers.kind_of[i], [&](std::size_t gpu) {
                usable[index(machines.gpus_of(machine)[gpu])] = 1;
            });
        }
        const std::vector<std::uint8_t> known(most.size(), 0);
        const GangDivision division(limits, {.units = units.tasks,
                                             .unit_size = units.size,
                                             .usable = usable,
                                             .most = most,
                                             .known = known,
                                             .fastest = true,
                                             .stop = search.stop});
        return divisions::divide(division.params()).found;
    }

    const GangDecisionParams& params_;
    GangSearchParams search_;
    GangUnits units_;
};

// Whether a gang may be in fewer domains instead of as it was found.
class Instead {
  public:
    explicit Instead(const GangDecisionParams& params) : params_(params) {}

    GangFound chosen(const GangFound& found, GangFound other) const {
        if (!other.found || !keeps_limit(other) || parts_more(other, found)) return found;
        if (step(other) > step(found) * (1 + params_.compact)) return found;
        other.least = found.least;
        return other;
    }

    bool keeps_limit(const GangFound& one) const {
        std::set<std::int32_t> machines;
        for (const std::int32_t gpu : one.gpus)
            machines.insert(params_.search.topology->network.vertex(gpu).machine);
        return params_.max_machines == 0 || machines.size() <= index(params_.max_machines);
    }

  private:
    bool parts_more(const GangFound& one, const GangFound& other) const {
        return std::ranges::any_of(params_.bound.preferred, [&](Together tasks) {
            tasks.level = params_.bound.level_of[tasks.level];
            return count_domains(params_.search, tasks, one.gpus) >
                   count_domains(params_.search, tasks, other.gpus);
        });
    }

    // Seconds of communication and, where these are known, of operations.
    double step(const GangFound& one) const {
        if (params_.tflop == 0.0) return one.seconds;
        double slowest = params_.tflop_per_s[index(one.gpus.front())];
        for (const std::int32_t gpu : one.gpus) slowest = std::min(slowest, params_.tflop_per_s[index(gpu)]);
        return one.seconds + (slowest > 0.0 ? params_.tflop / slowest : 0.0);
    }

    const GangDecisionParams& params_;
};

Fault check_compact(const GangDecisionParams& params) {
    const std::size_t gpus =
        params.tflop == 0.0 ? 0 : index(params.search.topology->network.ports().num_vertices());
    if (!(params.compact >= 0.0 && params.compact <= 1e9))
        return traffic::wrong("compact", 0, params.compact, "not in 0..1e9");
    if (!(params.tflop >= 0.0)) return traffic::wrong("tflop", 0, params.tflop, "below 0");
    return traffic::check_size("tflop_per_s", params.tflop_per_s.size(), gpus);
}

// The groups by which units are chosen are those that bind the gang.
Fault check_same(const TaskGroups& groups, const GangGroups& bound) {
    if (bound.tree == nullptr) return std::nullopt;
    const auto is_machine = [&](const Together& one) { return one.level + 1 == bound.tree->size(); };
    const auto machines = static_cast<std::size_t>(std::ranges::count_if(bound.required, is_machine));
    const std::size_t others = bound.required.size() + bound.apart.size() - machines;
    if (auto fault = traffic::check_size("on_machine", groups.on_machine.size(), machines)) return fault;
    return traffic::check_size("in_domain", groups.in_domain.size(), others);
}

}  // namespace

Fault check(const GangDecisionParams& params) {
    if (auto fault = check(params.groups)) return fault;
    const GangUnits single = single_tasks(params.groups.num_tasks);
    GangSearchParams search = params.search;
    if (search.units.tasks.empty()) search.units = single.view();
    if (auto fault = check(search)) return fault;
    if (auto fault = traffic::check_size("units", search.units.tasks.size(), single.tasks.size()))
        return fault;
    if (params.max_machines < 0) return traffic::wrong("max_machines", 0, params.max_machines, "below 0");
    if (auto fault = check(params.bound, *search.levels, params.groups.num_tasks)) return fault;
    if (auto fault = check_same(params.groups, params.bound)) return fault;
    return check_compact(params);
}

namespace {

// Tasks of a gang that also begins with each role on one machine.
constexpr std::int32_t kMostWithRoles = 256;

// The offers with the most room if they have enough, as a role would get what is left of a used machine.
std::vector<std::size_t> emptiest(const MachineOffers& offers, std::int32_t num_tasks) {
    const std::int32_t most = *std::ranges::max_element(offers.sizes);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < offers.sizes.size(); ++i) {
        if (offers.sizes[i] == most) found.push_back(i);
    }
    if (static_cast<std::int64_t>(found.size()) * most >= num_tasks) return found;
    found.resize(offers.sizes.size());
    std::iota(found.begin(), found.end(), std::size_t{0});
    return found;
}

// The fastest gang on these offers.
GangFound fastest_on(const GangDecisionParams& params, const GangSearchParams& search) {
    const GangGroups& bound = params.bound;
    if (search.offers.machines.empty()) return {};
    std::optional<BoundGang> gang;
    const bool is_bound = bound.bind() || !bound.roles.empty() || search.edges.empty();
    if (is_bound && bound.tree != nullptr) gang.emplace(params, search);
    if (gang && params.may_divide && gang->needs_division()) {
        const std::optional<GangStart> start = gang->start();
        if (!start) return {};
        const Decision decision(params, start->of(search, bound.balanced >= 0));
        return decision.last(decision.first());
    }
    const Decision decision(params, search);
    GangFound best = decision.first();
    const bool has_roles = !bound.roles.empty() && params.groups.num_tasks <= kMostWithRoles;
    if (has_roles && decision.is_open(best)) {
        const SomeOffers some(search, emptiest(search.offers, params.groups.num_tasks));
        const GangSearchParams among = some.of(search);
        if (const std::optional<GangStart> start = gang->from_roles(among)) {
            const Decision from(params, start->of(among, bound.balanced >= 0), true);
            best = from.from_roles(std::move(best));
        }
    }
    return decision.last(std::move(best));
}

// The fastest gang on a few machines, of those with the most room.
GangFound fastest_on_few(const GangDecisionParams& params, double least) {
    const std::vector<std::size_t> few =
        on_few_machines(params.search, params.groups.num_tasks, params.max_machines);
    if (few.empty()) return {};
    const SomeOffers some(params.search, few);
    GangFound found = fastest_on(params, some.of(params.search));
    found.least = least;
    return found;
}

}  // namespace

GangFound place_gang(const GangDecisionParams& params) {
    const Instead instead(params);
    GangFound best = fastest_on(params, params.search);
    if (best.found && !instead.keeps_limit(best)) best = fastest_on_few(params, best.least);
    if (best.found && params.compact > 0.0 && !params.search.stop.time_is_up()) {
        const std::vector<std::size_t> fewer = in_fewest_narrow_domains(params.search, best.gpus);
        if (!fewer.empty()) {
            const SomeOffers some(params.search, fewer);
            best = instead.chosen(best, fastest_on(params, some.of(params.search)));
        }
    }
    return best.found && !instead.keeps_limit(best) ? GangFound{} : best;
}

bool can_place_gang(const GangDecisionParams& params) {
    const MachineOffers& offers = params.search.offers;
    if (offers.machines.empty()) return false;
    const BoundGang gang(params, params.search);
    if (params.bound.tree != nullptr && gang.needs_division()) return !gang.division().empty();
    const Units units = gang.units();
    std::int64_t room = 0;
    for (const std::int32_t size : offers.sizes) room += std::min(size, params.search.most) / units.size;
    return room >= units.count();
}

}  // namespace topoplace::decide
