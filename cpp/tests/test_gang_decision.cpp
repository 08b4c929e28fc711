// The decision about a gang against its single searches and every assignment, and units against their
// definition.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "check.hpp"
#include "oracles/gang_clusters.hpp"
#include "topoplace/gang_decision.hpp"
#include "topoplace/random.hpp"

namespace decide = topoplace::decide;
namespace traffic = topoplace::traffic;
using decide::GangDecisionParams;
using decide::GangFound;
using decide::GangUnits;
using decide::TaskGroups;
using oracle::AllAssignments;
using oracle::at;
using oracle::Numbers;
using oracle::Reals;
using topoplace::Random;
using traffic::Kind;

namespace {

constexpr double kEqual = 1 + 1e-6;

// Rows of tasks, one after the other.
std::vector<Numbers> rows_of(const Numbers& tasks, std::size_t size) {
    std::vector<Numbers> rows;
    for (std::size_t i = 0; i < tasks.size(); i += size) rows.emplace_back(&tasks[i], &tasks[i] + size);
    return rows;
}

// A gang whose groups exchange in one dimension, and the tasks of equal rank of these in another.
struct Gang {
    oracle::OfferCase c{};
    std::vector<Numbers> groups{};
    TaskGroups required{};

    Gang(Random& random, std::int32_t most_places, std::int32_t most_tasks)
        : c(oracle::random_case(random, most_places, most_tasks)) {
        c.most = random.below(4) == 0 ? 1 : static_cast<std::int32_t>(c.size());
        required.num_tasks = static_cast<std::int32_t>(c.size());
        groups = rows_of(c.units, at(c.unit));
        if (c.unit == 1 || groups.size() == 1 || random.below(4) == 0) return;
        c.job = {};
        c.edges.clear();
        add_phases(random);
        c.add_edges();
        required.are_stated = random.below(3) != 0;
        if (random.below(4) == 0) required.on_machine.assign(groups.begin(), groups.end());
        if (random.below(4) == 0) required.in_domain.push_back(groups.front());
    }
    Gang(const Gang&) = delete;  // the required groups refer to it
    Gang& operator=(const Gang&) = delete;

    GangDecisionParams params() const {
        GangDecisionParams made{.search = c.params(), .groups = required};
        made.search.units = {};
        return made;
    }
    GangUnits units() const { return decide::first_units(c.job.view(), required, c.most, c.sizes); }
    GangFound searched(const GangUnits& units) const {
        auto params = c.params();
        params.units = units.view();
        params.machine_groups = !required.on_machine.empty();
        return decide::search_gang(params);
    }
    bool is_right(const GangFound& found) const {
        std::set<std::int32_t> left;
        for (std::size_t i = 0; i < c.machines.size(); ++i) {
            const Numbers places = c.places(i);
            left.insert(places.begin(), places.end());
        }
        Numbers tasks(at(c.cluster->count), 0);
        for (const std::int32_t gpu : found.gpus) {
            if (left.erase(gpu) == 0 || ++tasks[at(c.machine_of(gpu))] > c.most) return false;
        }
        const double seconds = c.seconds(found.gpus);
        return found.gpus.size() == c.size() && seconds <= found.seconds * kEqual &&
               found.seconds <= seconds * kEqual;
    }
    std::size_t count_domains(const GangFound& found, std::size_t level) const {
        std::set<std::int64_t> domains;
        for (const std::int32_t gpu : found.gpus)
            domains.insert((*c.cluster->levels)[level].codes[at(c.machine_of(gpu))]);
        return domains.size();
    }

  private:
    void add_phases(Random& random) {
        const Kind inside = random.below(2) == 0 ? Kind::kReduce : Kind::kPairs;
        for (const Numbers& group : groups) c.job.add(inside, group, 1.0 + random.below(6));
        c.job.end_phase();
        for (std::size_t rank = 0; rank < at(c.unit); ++rank) {
            Numbers ring;
            for (const Numbers& group : groups) ring.push_back(group[rank]);
            c.job.add(Kind::kReduce, ring, 1.0 + random.below(6));
        }
        c.job.end_phase();
    }
};

// Groups of equal size with all tasks.
bool divide_tasks(const std::set<Numbers>& groups, std::size_t num_tasks) {
    std::set<std::int32_t> tasks;
    std::size_t sum = 0;
    for (const Numbers& group : groups) {
        tasks.insert(group.begin(), group.end());
        sum += group.size();
        if (group.size() != groups.begin()->size()) return false;
    }
    return sum == num_tasks && tasks.size() == num_tasks;
}

}  // namespace

TEST(units_are_groups_for_which_there_is_room) {
    Random random(81);
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < check::rounds(2000); ++i) {
        const Gang gang(random, 16, 12);
        const GangUnits units = gang.units();
        std::set<Numbers> rows;
        for (Numbers row : rows_of(units.tasks, at(units.size))) {
            std::ranges::sort(row);
            rows.insert(row);
        }
        CHECK(divide_tasks(rows, gang.c.size()));
        std::int32_t room = 0;
        for (const std::int32_t size : gang.c.sizes) room += size / units.size;
        if (units.size == 1) continue;
        CHECK(gang.c.most > 1 && room >= units.view().count());
        CHECK(gang.required.are_stated || !gang.required.on_machine.empty());
        ++count;
    }
    CHECK(count > check::rounds(2000) / 50);
}

TEST(units_are_those_of_the_dimension_that_exchanges_most) {
    oracle::Collectives job;
    const Numbers sizes{2, 2};
    for (const Numbers& pair : {Numbers{0, 2}, Numbers{1, 3}}) job.add(Kind::kReduce, pair, 1.0);
    job.end_phase();
    for (const Numbers& pair : {Numbers{3, 2}, Numbers{1, 0}, Numbers{0, 1}}) job.add(Kind::kRing, pair, 2.0);
    job.end_phase();
    TaskGroups groups{.num_tasks = 4, .are_stated = true};
    CHECK(decide::first_units(job.view(), groups, 4, sizes).tasks == Numbers({1, 0, 3, 2}));
    CHECK(decide::further_units(job.view(), groups, 4, sizes).tasks == Numbers({0, 2, 1, 3}));
    CHECK_EQ(decide::first_units(job.view(), groups, 1, sizes).size, 1);
    CHECK_EQ(decide::first_units(job.view(), groups, 4, Numbers{3, 1}).size, 1);
    const Numbers three{0, 1, 2}, two{2, 3};
    groups.in_domain = {three};
    CHECK_EQ(decide::first_units(job.view(), groups, 4, sizes).size, 1);
    groups.in_domain = {two};
    CHECK_EQ(decide::first_units(job.view(), groups, 4, sizes).size, 2);
    groups.on_machine = {two};
    CHECK_EQ(decide::first_units(job.view(), groups, 4, sizes).size, 1);
    groups.are_stated = false;
    groups.on_machine = {};
    CHECK_EQ(decide::first_units(job.view(), groups, 4, sizes).size, 1);
    CHECK(decide::further_units(job.view(), groups, 4, sizes).tasks.empty());
}

TEST(no_single_search_is_faster) {
    Random random(82);
    std::int32_t count = 0, faster = 0;
    for (std::int32_t i = 0; i < check::rounds(1000); ++i) {
        const Gang gang(random, 8, 6);
        const GangDecisionParams params = gang.params();
        CHECK(!decide::check(params));
        const GangFound made = decide::place_gang(params);
        const GangFound first = gang.searched(gang.units());
        CHECK_EQ(made.found, first.found);
        if (!first.found) continue;
        CHECK(gang.is_right(made));
        CHECK(made.seconds <= first.seconds);
        const GangFound single = gang.searched(decide::single_tasks(gang.required.num_tasks));
        const bool has_groups = !gang.required.on_machine.empty() || !gang.required.in_domain.empty();
        if (!has_groups) CHECK(made.seconds <= single.seconds * (1 + params.search.slack));
        faster += made.seconds < first.seconds ? 1 : 0;
        ++count;
    }
    CHECK(count > check::rounds(1000) / 2 && faster > 0);
}

TEST(the_bound_holds_for_every_assignment) {
    Random random(83);
    for (std::int32_t i = 0; i < check::rounds(600); ++i) {
        const Gang gang(random, 8, 5);
        const GangFound found = decide::place_gang(gang.params());
        if (!found.found || !gang.required.on_machine.empty()) continue;
        CHECK(found.least <= AllAssignments(gang.c).best * kEqual);
    }
}

TEST(rings_of_two_dimensions_are_not_all_inside_machines) {
    Random random(84);
    std::int32_t count = 0, tight = 0;
    for (std::int32_t i = 0; i < check::rounds(400); ++i) {
        Gang gang(random, 8, 6);
        const std::size_t width = at(gang.c.unit), height = gang.groups.size();
        if (width == 1 || height == 1 || width * height > 6) continue;
        gang.c.job = {};
        gang.c.others.reset();
        for (const bool along : {true, false}) {
            for (std::size_t ring = 0; ring < (along ? height : width); ++ring) {
                Numbers tasks;
                for (std::size_t k = 0; k < (along ? width : height); ++k)
                    tasks.push_back(along ? gang.groups[ring][k] : gang.groups[k][ring]);
                gang.c.job.add(Kind::kReduce, tasks, 1.0 + random.below(3));
            }
            gang.c.job.end_phase();
        }
        GangDecisionParams params = gang.params();
        params.groups = {.num_tasks = params.groups.num_tasks};
        const GangFound found = decide::place_gang(params);
        if (!found.found) continue;
        const double best = AllAssignments(gang.c).best;
        CHECK(found.least <= best * kEqual);
        tight += found.least * kEqual >= best ? 1 : 0;
        ++count;
    }
    CHECK(count > check::rounds(400) / 20);
    CHECK(tight > 0);
}

TEST(a_stopped_decision_has_gpus) {
    Random random(85);
    for (std::int32_t i = 0; i < check::rounds(200); ++i) {
        const Gang gang(random, 16, 12);
        GangDecisionParams params = gang.params();
        params.compact = 1.0;
        params.search.stop.when = {};
        const GangFound made = decide::place_gang(params);
        CHECK_EQ(made.found, gang.searched(gang.units()).found);
        if (made.found) CHECK(gang.is_right(made));
    }
}

TEST(a_gang_goes_into_fewer_domains_if_that_costs_little) {
    Random random(86);
    std::int32_t fewer = 0;
    for (std::int32_t i = 0; i < check::rounds(600); ++i) {
        const Gang gang(random, 16, 8);
        GangDecisionParams params = gang.params();
        const GangFound before = decide::place_gang(params);
        if (!before.found) continue;
        const std::size_t levels = params.search.levels->size();
        for (const double compact : {0.05, 1e9}) {
            params.compact = compact;
            const GangFound after = decide::place_gang(params);
            CHECK(gang.is_right(after) && after.seconds <= before.seconds * (1 + compact) * kEqual);
            if (after.gpus == before.gpus) continue;
            CHECK(levels > 1 &&
                  gang.count_domains(after, levels - 2) < gang.count_domains(before, levels - 2));
            CHECK(after.least == before.least);
            ++fewer;
        }
    }
    CHECK(fewer > 0);
}

// Groups of consecutive tasks in domains of the levels of a case.
struct BoundCase {
    Gang gang;
    Numbers tasks{};
    decide::GangGroups bound{};

    BoundCase(Random& random, std::int32_t most_tasks) : gang(random, 8, most_tasks), tasks(gang.c.size()) {
        std::iota(tasks.begin(), tasks.end(), 0);
        gang.required.on_machine.clear();
        gang.required.in_domain.clear();
        const decide::GangLevels& levels = *gang.c.params().levels;
        bound.tree = &levels;
        for (std::size_t i = 0; i < levels.size(); ++i) bound.level_of.push_back(i);
    }
    decide::Together together(Random& random, std::size_t begin, std::size_t end) const {
        const auto levels = static_cast<std::int32_t>(bound.tree->size());
        return {at(random.below(levels)), std::span(tasks).subspan(begin, end - begin)};
    }
    void add_groups(Random& random) {
        for (std::size_t begin = 0; begin < tasks.size();) {
            const std::size_t end = std::min(tasks.size(), begin + 2 + at(random.below(3)));
            if (end - begin > 1 && random.below(3) != 0) require(together(random, begin, end));
            begin = end;
        }
        if (random.below(4) == 0) require(together(random, 0, tasks.size()));
    }
    void require(const decide::Together& one) {
        const bool is_machine = one.level + 1 == bound.tree->size();
        bound.required.push_back(one);
        bound.on_machine = bound.on_machine || is_machine;
        (is_machine ? gang.required.on_machine : gang.required.in_domain).push_back(one.tasks);
    }
    GangDecisionParams params() const {
        GangDecisionParams made = gang.params();
        made.bound = bound;
        return made;
    }
    std::size_t num_domains(const decide::Together& one, const Numbers& gpus) const {
        std::set<std::int64_t> domains;
        for (const std::int32_t task : one.tasks)
            domains.insert((*bound.tree)[one.level].domains[at(gang.c.machine_of(gpus[at(task)]))]);
        return domains.size();
    }
    bool keeps(const Numbers& gpus) const {
        return std::ranges::all_of(bound.required, [&](auto& one) { return num_domains(one, gpus) == 1; });
    }
    // Whether some assignment of GPUs keeps the groups.
    bool is_possible() const {
        Numbers gpus;
        return extend(gpus);
    }

  private:
    bool extend(Numbers& gpus) const {
        if (gpus.size() == tasks.size()) return keeps(gpus);
        for (std::size_t i = 0; i < gang.c.machines.size(); ++i) {
            const auto used = std::ranges::count_if(
                gpus, [&](std::int32_t gpu) { return gang.c.machine_of(gpu) == gang.c.machines[i]; });
            if (used >= std::min(gang.c.sizes[i], gang.c.most)) continue;
            gpus.push_back(gang.c.places(i)[static_cast<std::size_t>(used)]);
            const bool is_found = extend(gpus);
            gpus.pop_back();
            if (is_found) return true;
        }
        return false;
    }
};

TEST(groups_are_kept_where_that_is_possible) {
    Random random(87);
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < check::rounds(600); ++i) {
        BoundCase c(random, 6);
        c.add_groups(random);
        GangDecisionParams params = c.params();
        params.compact = random.below(2) == 0 ? 0.0 : 0.5;
        CHECK_EQ(decide::check(params).value_or(""), "");
        const GangFound made = decide::place_gang(params);
        const bool is_possible = c.is_possible();
        CHECK_EQ(made.found, is_possible);
        if (decide::can_place_gang(params)) CHECK(is_possible);
        if (!made.found) continue;
        CHECK(c.gang.is_right(made) && c.keeps(made.gpus));
        count += c.bound.required.empty() ? 0 : 1;
    }
    CHECK(count > check::rounds(600) / 5);
}

TEST(a_preferred_domain_has_all_tasks_if_it_can) {
    Random random(89);
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < check::rounds(600); ++i) {
        BoundCase c(random, 6);
        const decide::Together whole = c.together(random, 0, c.tasks.size());
        c.bound.preferred = {whole};
        GangDecisionParams params = c.params();
        params.compact = random.below(2) == 0 ? 0.0 : 0.5;
        const GangFound made = decide::place_gang(params);
        if (!made.found) continue;
        c.bound.required = {whole};
        const bool is_possible = c.is_possible();
        CHECK(c.gang.is_right(made));
        CHECK_EQ(c.num_domains(whole, made.gpus) == 1, is_possible);
        count += is_possible ? 1 : 0;
    }
    CHECK(count > check::rounds(600) / 10);
}

TEST(even_shares_stay_even) {
    Random random(90);
    for (std::int32_t i = 0; i < check::rounds(300); ++i) {
        BoundCase c(random, 12);
        c.bound.balanced = static_cast<std::int32_t>(c.bound.tree->size()) - 1;
        const GangFound made = decide::place_gang(c.params());
        if (!made.found) continue;
        CHECK(c.gang.is_right(made));
        std::vector<std::int64_t> tasks(at(c.gang.c.cluster->count), 0);
        for (const std::int32_t gpu : made.gpus) ++tasks[at(c.gang.c.machine_of(gpu))];
        for (std::size_t offer = 0; offer < c.gang.c.machines.size(); ++offer) {
            const std::int64_t own = tasks[at(c.gang.c.machines[offer])];
            const bool is_full = own == std::min(c.gang.c.sizes[offer], c.gang.c.most);
            for (const std::int64_t other : tasks) CHECK(own == 0 || is_full || other <= own + 1);
        }
    }
}

TEST(roles_and_limits_cost_nothing_else) {
    Random random(91);
    std::int32_t limited = 0;
    for (std::int32_t i = 0; i < check::rounds(300); ++i) {
        BoundCase c(random, 12);
        GangDecisionParams params = c.params();
        const GangFound free = decide::place_gang(params);
        const std::size_t half = c.tasks.size() / 2;
        params.bound.roles = {std::span(c.tasks).first(half), std::span(c.tasks).subspan(half)};
        const GangFound made = decide::place_gang(params);
        CHECK_EQ(made.found, free.found);
        if (!free.found) continue;
        CHECK(c.gang.is_right(made) && made.seconds <= free.seconds * (1 + params.search.slack) * kEqual);
        params.bound.roles.clear();
        params.max_machines = 1;
        const GangFound one = decide::place_gang(params);
        const decide::Together whole{c.bound.tree->size() - 1, c.tasks};
        if (one.found) CHECK_EQ(c.num_domains(whole, one.gpus), 1U);
        limited += one.found ? 0 : 1;
    }
    CHECK(limited > 0);
}

TEST(a_limit_on_machines_is_kept_wherever_that_is_possible) {
    Random random(93);
    std::int32_t found = 0, limited = 0;
    for (std::int32_t i = 0; i < check::rounds(400); ++i) {
        const Gang gang(random, 12, 6);
        GangDecisionParams params = gang.params();
        const GangFound free = decide::place_gang(params);
        params.max_machines = 1 + random.below(3);
        const GangFound few = decide::place_gang(params);
        Numbers room = gang.c.sizes;
        for (std::int32_t& one : room) one = std::min(one, params.search.most);
        std::ranges::sort(room, std::ranges::greater{});
        room.resize(std::min(room.size(), at(params.max_machines)));
        const std::int32_t most = std::accumulate(room.begin(), room.end(), 0);
        CHECK_EQ(few.found, most >= params.groups.num_tasks);
        if (!few.found) continue;
        ++found;
        std::set<std::int32_t> machines;
        for (const std::int32_t gpu : few.gpus) machines.insert(gang.c.cluster->fabric.machine[at(gpu)]);
        CHECK(machines.size() <= at(params.max_machines));
        CHECK(gang.is_right(few));
        CHECK(few.least <= few.seconds * kEqual);
        limited += few.seconds > free.seconds * kEqual ? 1 : 0;
    }
    CHECK(found > check::rounds(100));
    CHECK(limited > 0);
}

TEST(a_decision_names_what_is_out_of_range) {
    Random random(88);
    const Gang gang(random, 8, 4);
    const auto size = static_cast<std::int32_t>(gang.c.size());
    const Numbers outside{size}, none{};
    const Reals few{1.0};
    const auto fault_of = [&](auto change) {
        GangDecisionParams params = gang.params();
        change(params);
        return decide::check(params).value_or("");
    };
    CHECK_EQ(fault_of([](auto&) {}), "");
    CHECK_EQ(fault_of([](auto& p) { p.groups.num_tasks = 0; }), "num_tasks[0] = 0: below 1");
    CHECK_EQ(fault_of([&](auto& p) { p.groups.on_machine = {none}; }), "a group has no tasks");
    CHECK(fault_of([&](auto& p) { p.groups.in_domain = {outside}; }).starts_with("group[0] = "));
    CHECK_EQ(fault_of([](auto& p) { p.search.topology = nullptr; }), "a topology is missing");
    CHECK_EQ(fault_of([&](auto& p) { p.bound.preferred = {{0, outside}}; }),
             "the levels of groups are missing");
    const BoundCase bound(random, 4);
    const auto fault_of_bound = [&](auto change) {
        GangDecisionParams params = bound.params();
        change(params.bound);
        return decide::check(params).value_or("");
    };
    CHECK_EQ(fault_of_bound([](auto&) {}), "");
    CHECK_EQ(fault_of_bound([&](auto& b) { b.required = {{99, bound.tasks}}; }),
             "level[0] = 99: not a level");
    CHECK_EQ(fault_of_bound([&](auto& b) { b.apart = {{0, none}}; }), "a group has no tasks");
    CHECK(fault_of_bound([&](auto& b) { b.required = {{0, bound.tasks}}; }).find(" has 0 entries") !=
          std::string::npos);
    CHECK(fault_of_bound([&](auto& b) { b.roles = {outside}; }) == "" ||
          fault_of_bound([&](auto& b) { b.roles = {outside}; }).starts_with("role[0] = "));
    CHECK_EQ(fault_of_bound([](auto& b) { b.balanced = 99; }), "balanced[0] = 99: not a level of groups");
    CHECK(fault_of_bound([](auto& b) { b.level_of.pop_back(); }).starts_with("level_of has "));
    CHECK_EQ(fault_of([](auto& p) { p.max_machines = -1; }), "max_machines[0] = -1: below 0");
    CHECK(fault_of([](auto& p) { p.compact = -1.0; }).starts_with("compact[0] = "));
    CHECK(fault_of([](auto& p) { p.tflop = std::nan(""); }).starts_with("tflop[0] = "));
    CHECK(fault_of([&](auto& p) { p.tflop = 1.0, p.tflop_per_s = few; }).starts_with("tflop_per_s has 1"));
    const Numbers units{0};
    CHECK(fault_of([&](auto& p) { p.search.units = {units, 1}, p.groups.num_tasks = size + 1; }) != "");
}
