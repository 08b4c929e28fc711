// Divisions of small jobs against all of them, and arguments out of range.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "check.hpp"
#include "topoplace/divisions.hpp"
#include "topoplace/random.hpp"

namespace divisions = topoplace::divisions;
using divisions::DivideParams;
using Ints = std::vector<std::int32_t>;
using Flags = std::vector<std::uint8_t>;

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

struct Case {
    Ints units, machine_of, most, stays, order, class_of;
    Flags usable, known;
    std::int32_t unit_size = 1;
    std::vector<std::vector<double>> seconds_of_sets;
    std::vector<double> seconds_of_count;
    std::vector<std::span<const double>> sets;

    DivideParams params() {
        sets.assign(seconds_of_sets.begin(), seconds_of_sets.end());
        return {.units = units,
                .unit_size = unit_size,
                .machine_of = machine_of,
                .usable = usable,
                .most = most,
                .stays = stays,
                .known = known,
                .order = order,
                .class_of = class_of,
                .seconds_of_sets = sets,
                .seconds_of_count = seconds_of_count};
    }
};

std::vector<double> any_seconds(topoplace::Random& random, std::int32_t count) {
    std::vector<double> seconds;
    for (std::int32_t i = 0; i < count; ++i) seconds.push_back(random.below(4));
    return seconds;
}

void add_machines(Case& c, topoplace::Random& random) {
    for (std::int32_t machine = 0; machine < 3; ++machine) {
        std::int32_t usable = 0;
        for (std::int32_t gpu = 0; gpu < 3; ++gpu) {
            c.machine_of.push_back(machine);
            c.usable.push_back(random.below(4) != 0);
            usable += c.usable.back();
        }
        c.most.push_back(random.below(3) == 0 ? random.below(usable + 1) : usable);
        c.known.push_back(random.below(2) == 0);
        c.class_of.push_back(random.below(2));
    }
    c.seconds_of_sets = {{}, c.unit_size == 1 ? any_seconds(random, 8) : std::vector<double>{}};
    c.seconds_of_count = any_seconds(random, 4);
}

// The tasks of a unit that may stay are on one machine, as for others a unit only counts where it has the
// most.
void add_units(Case& c, topoplace::Random& random) {
    const std::int32_t tasks = c.unit_size * (1 + random.below(4 / c.unit_size));
    c.units.resize(at(tasks));
    std::iota(c.units.begin(), c.units.end(), 0);
    for (std::size_t i = c.units.size(); i > 1; --i) {
        std::swap(c.units[i - 1], c.units[at(random.below(static_cast<std::int32_t>(i)))]);
    }
    if (random.below(4) == 0) return;
    c.stays.assign(at(tasks), -1);
    Flags taken(c.usable.size(), 0);
    for (std::size_t i = 0; i < c.units.size(); ++i) {
        const std::int32_t gpu = random.below(static_cast<std::int32_t>(c.usable.size()));
        const std::size_t first = i - i % at(c.unit_size);
        const std::int32_t beside = i > first ? c.stays[at(c.units[first])] : -1;
        const bool is_apart = beside >= 0 && c.machine_of[at(beside)] != c.machine_of[at(gpu)];
        if (is_apart || c.usable[at(gpu)] == 0 || taken[at(gpu)] != 0) continue;
        taken[at(gpu)] = 1;
        c.stays[at(c.units[i])] = gpu;
    }
}

Case any_case(topoplace::Random& random) {
    Case c;
    c.unit_size = 1 + random.below(2);
    add_machines(c, random);
    add_units(c, random);
    return c;
}

// Calls `each` with every way to give the tasks GPUs.
template <class Each>
void all_divisions(const DivideParams& params, Ints& gpus, std::vector<bool>& taken, const Each& each) {
    if (gpus.size() == params.units.size()) {
        each();
        return;
    }
    for (std::int32_t gpu = 0; at(gpu) < taken.size(); ++gpu) {
        if (taken[at(gpu)] || params.usable[at(gpu)] == 0) continue;
        taken[at(gpu)] = true;
        gpus.push_back(gpu);
        all_divisions(params, gpus, taken, each);
        gpus.pop_back();
        taken[at(gpu)] = false;
    }
}

struct Least {
    std::int64_t moves = std::numeric_limits<std::int64_t>::max();
    std::int32_t new_machines = 0;

    bool operator<(const Least& other) const {
        return moves != other.moves ? moves < other.moves : new_machines < other.new_machines;
    }
};

// Moves and machines that are not known.
Least cost_of(const DivideParams& params, const Ints& gpus) {
    Least cost{.moves = 0, .new_machines = 0};
    std::vector<bool> used(params.most.size());
    for (std::size_t task = 0; task < gpus.size(); ++task) {
        cost.moves += params.stays.empty() || params.stays[task] != gpus[task] ? 1 : 0;
        used[at(params.machine_of[at(gpus[task])])] = true;
    }
    for (std::size_t machine = 0; machine < used.size(); ++machine) {
        cost.new_machines += used[machine] && params.known[machine] == 0 ? 1 : 0;
    }
    return cost;
}

// For each limit 0..3.
std::vector<Least> least_of(const DivideParams& params) {
    std::vector<Least> best(4);
    Ints gpus;
    std::vector<bool> taken(params.machine_of.size());
    all_divisions(params, gpus, taken, [&] {
        const Least cost = cost_of(params, gpus);
        for (std::size_t limit = 0; limit < best.size(); ++limit) {
            const divisions::Division one{cost.moves, static_cast<double>(limit), gpus};
            if (cost < best[limit] && !verify_division(params, one)) best[limit] = cost;
        }
    });
    return best;
}

// The fault of the arguments once they are changed.
template <class Change>
std::string refusal(const Change& change) {
    topoplace::Random random(1);
    Case c = any_case(random);
    c.stays.assign(c.units.size(), -1);
    DivideParams params = c.params();
    change(c, params);
    return divisions::check(params).value_or("");
}

}  // namespace

TEST(no_division_moves_fewer_tasks_or_adds_fewer_machines) {
    topoplace::Random random(1);
    std::int32_t found = 0, impossible = 0, several = 0;
    for (std::int32_t round = 0; round < check::rounds(3000); ++round) {
        Case c = any_case(random);
        const DivideParams params = c.params();
        CHECK(!divisions::check(params));
        const auto result = divisions::divide(params);
        CHECK(result.complete && !result.too_many);
        const auto best = least_of(params);
        double least_limit = 4;
        for (const auto& one : result.found) {
            const Least& least = best[static_cast<std::size_t>(one.seconds)];
            CHECK_EQ(one.moves, least.moves);
            least_limit = one.seconds;
            if (one.gpus.empty()) continue;
            const auto fault = verify_division(params, one);
            CHECK_EQ(fault.value_or(""), "");
            CHECK_EQ(cost_of(params, one.gpus).new_machines, least.new_machines);
        }
        for (double limit = 0; limit < least_limit && limit < 4; ++limit) {
            CHECK_EQ(best[static_cast<std::size_t>(limit)].moves, Least{}.moves);
        }
        found += result.found.empty() ? 0 : 1;
        impossible += result.found.empty() ? 1 : 0;
        several += result.found.size() > 1 && result.found[0].moves < result.found.back().moves ? 1 : 0;
    }
    CHECK(found > check::rounds(1000) && impossible > check::rounds(100) && several > check::rounds(100));
}

TEST(the_fastest_is_the_last_of_all) {
    topoplace::Random random(2);
    for (std::int32_t round = 0; round < 1000; ++round) {
        Case c = any_case(random);
        DivideParams params = c.params();
        const auto all = divisions::divide(params);
        params.fastest = true;
        const auto fastest = divisions::divide(params);
        CHECK_EQ(fastest.found.size(), std::size_t{all.found.empty() ? 0U : 1U});
        if (all.found.empty()) continue;
        CHECK_EQ(fastest.found[0].moves, all.found.back().moves);
        CHECK_EQ(fastest.found[0].seconds, all.found.back().seconds);
        CHECK(fastest.found[0].gpus == all.found.back().gpus);
    }
}

TEST(work_ends_it) {
    Case c;
    const std::int32_t machines = 400, gpus = 8;
    for (std::int32_t i = 0; i < machines * gpus; ++i) {
        c.machine_of.push_back(i / gpus);
        c.usable.push_back(1);
        c.units.push_back(i);
    }
    c.most.assign(at(machines), gpus);
    c.known.assign(at(machines), 0);
    c.class_of.assign(at(machines), 0);
    c.seconds_of_sets = {{}};
    for (std::int32_t i = 0; i <= gpus; ++i) c.seconds_of_count.push_back(10 - i);
    DivideParams params = c.params();
    const auto whole = divisions::divide(params);
    CHECK(whole.complete && whole.found.size() == 8);
    CHECK(whole.nodes > 10'000 && whole.nodes < 500'000);
    params.stop.max_nodes = whole.nodes / 2;
    const auto part = divisions::divide(params);
    CHECK(!part.complete && !part.found.empty() && part.found.size() < 8);
    CHECK(!verify_division(params, part.found.back()));
    params.stop.max_nodes = 1;
    CHECK(divisions::divide(params).found.empty());
    params.most_steps = 1'000'000;
    CHECK(divisions::divide(params).too_many);
}

TEST(arguments_out_of_range_are_named) {
    const auto names = [](const std::string& fault, const char* name) { return fault.rfind(name, 0) == 0; };
    CHECK(names(refusal([](Case& c, auto&) { c.units[0] = 99; }), "units[0] = 99"));
    CHECK(names(refusal([](Case&, auto& params) { params.unit_size = 3; }), "units has"));
    CHECK(names(refusal([](Case& c, auto&) { c.stays[0] = 9; }), "stays[0] = 9"));
    CHECK(names(refusal([](Case& c, auto&) { c.machine_of[1] = 3; }), "machine_of[1] = 3"));
    CHECK(names(refusal([](Case& c, auto&) { c.most[2] = 4; }), "most[2] = 4"));
    CHECK(names(refusal([](Case& c, auto&) { c.class_of[0] = 2; }), "class_of[0] = 2"));
    CHECK(names(refusal([](Case& c, auto&) { c.seconds_of_count[1] = -1; }), "seconds_of_count[1]"));
    CHECK(names(refusal([](Case&, auto& params) {
                    static const std::vector<double> rising{1, 2};
                    params.limits = rising;
                }),
                "limits[1]"));
    CHECK(names(refusal([](Case&, auto& params) { params.below = std::nan(""); }), "below"));
    CHECK(refusal([](Case&, auto&) {}).empty());
}
