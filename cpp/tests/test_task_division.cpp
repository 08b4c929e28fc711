// The division of jobs with groups beside all ways to put their tasks on leaves; and distances of GPUs.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "check.hpp"
#include "topoplace/random.hpp"
#include "topoplace/task_division.hpp"

namespace {

namespace decide = topoplace::decide;
using namespace decide;
using Ints = std::vector<std::int32_t>;

struct Case {
    std::vector<std::vector<std::int64_t>> codes{}, domains{};  // machines are the last level
    Ints machines{}, sizes{}, socket_ends{}, socket_sizes{};
    std::int32_t tasks = 1;
    std::vector<std::pair<std::size_t, Ints>> required{}, apart{}, preferred{};
    std::int32_t balanced = -1;

    DomainTree tree() const {
        DomainTreeParams params{
            .machines = machines, .sizes = sizes, .socket_ends = socket_ends, .socket_sizes = socket_sizes};
        for (std::size_t i = 0; i < codes.size(); ++i) params.levels.push_back({codes[i], domains[i]});
        CHECK(!DomainTree::check(params));
        return DomainTree(params);
    }
    static std::vector<Together> rows(const std::vector<std::pair<std::size_t, Ints>>& some) {
        std::vector<Together> found;
        for (const auto& [level, own] : some) found.push_back({level, own});
        return found;
    }
    TaskDivisionParams params(const DomainTree& of) const {
        return {.tree = &of,
                .num_tasks = tasks,
                .required = rows(required),
                .apart = rows(apart),
                .preferred = rows(preferred),
                .balanced = balanced};
    }
};

// Tasks from `first` on.
Ints some_tasks(std::int32_t first, std::int32_t end) {
    Ints found(static_cast<std::size_t>(end - first));
    std::iota(found.begin(), found.end(), first);
    return found;
}

// Nested or disjoint groups of consecutive tasks; up to 4 machines in up to 2 levels, some with two sockets.
Case random_case(topoplace::Random& random) {
    Case c;
    const std::int32_t count = 1 + random.below(4), levels = random.below(3);
    for (std::int32_t level = 0; level < levels; ++level) {
        auto& codes = c.codes.emplace_back();
        for (std::int32_t machine = 0; machine < count; ++machine)
            codes.push_back(level == 0 ? machine / 2 : machine / 2 * 8 + random.below(2));
    }
    auto& own = c.codes.emplace_back();
    for (std::int32_t machine = 0; machine < count; ++machine) own.push_back(machine);
    c.domains = c.codes;
    const bool has_sockets = random.below(3) == 0;
    for (std::int32_t machine = count; machine-- > 0;) {
        c.machines.push_back(machine);
        c.sizes.push_back(random.below(4));
        if (!has_sockets) continue;
        for (int socket = 0; socket < 2; ++socket) c.socket_sizes.push_back(random.below(3));
        c.socket_ends.push_back(static_cast<std::int32_t>(c.socket_sizes.size()));
    }
    const std::int32_t depths = levels + 1 + (has_sockets ? 1 : 0);
    c.tasks = 1 + random.below(6);
    if (random.below(3) == 0) c.required.emplace_back(random.below(depths), some_tasks(0, c.tasks));
    for (std::int32_t first = 0; first < c.tasks;) {
        const std::int32_t end = std::min(c.tasks, first + 1 + random.below(4));
        auto& some = random.below(2) == 0 ? c.required : c.preferred;
        some.emplace_back(random.below(depths), some_tasks(first, end));
        if (end - first > 2) some.emplace_back(random.below(depths), some_tasks(first, first + 2));
        first = end;
    }
    if (random.below(4) == 0) c.balanced = random.below(depths);
    return c;
}

// Two levels that cross: groups of the inner one may be apart.
Case crossing_case(topoplace::Random& random) {
    Case c;
    const std::int32_t count = 2 + random.below(3);
    auto &outer = c.codes.emplace_back(), &inner = c.domains.emplace_back();
    for (std::int32_t machine = 0; machine < count; ++machine) outer.push_back(random.below(2));
    inner = outer;
    auto &cut = c.codes.emplace_back(), &whole = c.domains.emplace_back();
    for (std::int32_t machine = 0; machine < count; ++machine) {
        whole.push_back(random.below(2));
        cut.push_back(2 * c.codes[0][static_cast<std::size_t>(machine)] + whole.back());
    }
    auto& own = c.codes.emplace_back();
    for (std::int32_t machine = 0; machine < count; ++machine) own.push_back(machine);
    c.domains.push_back(own);
    for (std::int32_t machine = 0; machine < count; ++machine) {
        c.machines.push_back(machine);
        c.sizes.push_back(random.below(4));
    }
    c.tasks = 3 + random.below(4);
    const std::int32_t end = 2 + random.below(c.tasks - 2);
    c.apart.emplace_back(1, some_tasks(0, end));
    if (c.tasks - end > 1) c.required.emplace_back(2 * random.below(2), some_tasks(end, c.tasks));
    return c;
}

bool are_together(const DomainTree& tree, const std::pair<std::size_t, Ints>& group, const Ints& leaf_of) {
    const Ints domain_of = tree.domains_of(group.first);
    std::set<std::int32_t> domains;
    for (const std::int32_t task : group.second)
        domains.insert(domain_of[static_cast<std::size_t>(leaf_of[static_cast<std::size_t>(task)])]);
    return domains.size() == 1;
}

bool is_division(const Case& c, const DomainTree& tree, const Ints& leaf_of) {
    Ints left(tree.room().begin(), tree.room().end());
    for (const std::int32_t leaf : leaf_of) {
        std::int32_t domain = leaf + static_cast<std::int32_t>(tree.first_leaf());
        for (; domain >= 0; domain = tree.parent()[static_cast<std::size_t>(domain)]) {
            if (left[static_cast<std::size_t>(domain)]-- == 0) return false;
        }
    }
    const auto kept = [&](const auto& group) { return are_together(tree, group, leaf_of); };
    return std::ranges::all_of(c.required, kept) && std::ranges::all_of(c.apart, kept);
}

// Calls `take` with each division; wanted: how many of the preferred groups are kept as well.
template <class Take>
void each_division(const Case& c, const DomainTree& tree, const Take& take) {
    Ints leaf_of(static_cast<std::size_t>(c.tasks), 0);
    while (true) {
        if (is_division(c, tree, leaf_of)) take(leaf_of);
        std::size_t at = 0;
        while (at < leaf_of.size() && ++leaf_of[at] == static_cast<std::int32_t>(tree.num_leaves()))
            leaf_of[at++] = 0;
        if (at == leaf_of.size()) return;
    }
}

std::size_t num_kept(const Case& c, const DomainTree& tree, const Ints& leaf_of) {
    const auto kept = [&](const auto& group) { return are_together(tree, group, leaf_of); };
    return static_cast<std::size_t>(std::ranges::count_if(c.preferred, kept));
}

// The most tasks in a domain of the balanced level.
std::size_t most_of(const Case& c, const DomainTree& tree, const Ints& leaf_of) {
    const Ints domain_of = tree.domains_of(static_cast<std::size_t>(c.balanced));
    std::map<std::int32_t, std::size_t> counts;
    std::size_t most = 0;
    for (const std::int32_t leaf : leaf_of)
        most = std::max(most, ++counts[domain_of[static_cast<std::size_t>(leaf)]]);
    return most;
}

double cost_of(const std::vector<double>& edges, const GpuDistances& distances, const Ints& gpus,
               const Ints& leaf_of) {
    double sum = 0.0;
    for (std::size_t i = 0; i < edges.size(); i += 3) {
        const auto leaf = [&](double task) { return leaf_of[static_cast<std::size_t>(task)]; };
        const std::int32_t here = leaf(edges[i]), there = leaf(edges[i + 1]);
        if (here == there) continue;
        sum += edges[i + 2] *
               distances.between(gpus[static_cast<std::size_t>(here)], gpus[static_cast<std::size_t>(there)]);
    }
    return sum;
}

}  // namespace

TEST(divides_as_brute_force_does) {
    topoplace::Random random(81);
    int found = 0;
    for (std::int32_t i = 0; i < check::rounds(1500, 10); ++i) {
        const Case c = random_case(random);
        const DomainTree tree = c.tree();
        const TaskDivisionParams params = c.params(tree);
        CHECK(!decide::check(params));
        const TaskDivision made = divide_tasks(params);
        bool is_possible = false, is_any_kept = c.preferred.empty();
        each_division(c, tree, [&](const Ints& one) {
            is_possible = true;
            is_any_kept = is_any_kept || num_kept(c, tree, one) > 0;
        });
        CHECK(made.complete);
        CHECK_EQ(made.found, is_possible);
        CHECK_EQ(can_be_divided(params), is_possible);
        if (!made.found) continue;
        ++found;
        CHECK(is_division(c, tree, made.leaf_of));
        if (c.preferred.size() == 1 && c.balanced < 0)
            CHECK_EQ(num_kept(c, tree, made.leaf_of), is_any_kept ? 1U : 0U);
    }
    CHECK(found > check::rounds(1500, 10) / 5);
}

TEST(divides_evenly) {
    topoplace::Random random(82);
    for (std::int32_t i = 0; i < check::rounds(600, 10); ++i) {
        Case c = random_case(random);
        c.required.clear();
        c.preferred.clear();
        c.socket_ends.clear();
        c.socket_sizes.clear();
        c.balanced = static_cast<std::int32_t>(c.codes.size()) - 1;
        const DomainTree tree = c.tree();
        const TaskDivision made = divide_tasks(c.params(tree));
        if (!made.found) continue;
        std::set<std::int32_t> used(made.leaf_of.begin(), made.leaf_of.end());
        std::size_t least = std::numeric_limits<std::size_t>::max();
        each_division(c, tree, [&](const Ints& one) {
            if (std::set<std::int32_t>(one.begin(), one.end()).size() <= used.size())
                least = std::min(least, most_of(c, tree, one));
        });
        CHECK_EQ(most_of(c, tree, made.leaf_of), least);
    }
}

TEST(divides_groups_of_crossing_levels) {
    topoplace::Random random(83);
    int found = 0, cut = 0;
    for (std::int32_t i = 0; i < check::rounds(1500, 10); ++i) {
        const Case c = crossing_case(random);
        const DomainTree tree = c.tree();
        const TaskDivision made = divide_tasks(c.params(tree));
        bool is_possible = false;
        each_division(c, tree, [&](const Ints&) { is_possible = true; });
        CHECK_EQ(made.found, is_possible);
        if (!made.found) continue;
        ++found;
        CHECK(is_division(c, tree, made.leaf_of));
        const Ints parts = tree.part_of(1);
        std::set<std::int32_t> used;
        for (const std::int32_t task : c.apart[0].second)
            used.insert(parts[static_cast<std::size_t>(made.leaf_of[static_cast<std::size_t>(task)])]);
        cut += used.size() > 1 ? 1 : 0;
    }
    CHECK(found > check::rounds(1500, 10) / 5);
    CHECK(cut > 0);
}

TEST(exchanges_tasks_for_less_communication) {
    topoplace::Random random(84);
    int cheaper = 0;
    for (std::int32_t i = 0; i < check::rounds(800, 10); ++i) {
        Case c = random_case(random);
        const DomainTree tree = c.tree();
        std::vector<double> inside(64, 1.0);
        for (std::size_t gpu = 0; gpu < 8; ++gpu) inside[9 * gpu] = 0.0;
        const Ints template_of(c.codes.back().size(), 0), sizes{8}, port(8, 0);
        const std::vector<std::uint8_t> joined{1};
        Ints domain;
        for (const std::int64_t code : c.codes.front()) domain.push_back(static_cast<std::int32_t>(code));
        const GpuDistances distances({.template_of = template_of,
                                      .sizes = sizes,
                                      .inside = {inside},
                                      .levels = {{domain, {}, port, joined, 4.0}},
                                      .beyond = 9.0});
        Ints gpus;
        for (std::size_t leaf = 0; leaf < tree.num_leaves(); ++leaf) {
            const auto at =
                static_cast<std::size_t>(tree.order()[static_cast<std::size_t>(tree.machine_of()[leaf])]);
            gpus.push_back(8 * c.machines[at] + static_cast<std::int32_t>(leaf % 2));
        }
        std::vector<double> edges;
        for (std::int32_t a = 0; a < c.tasks; ++a) {
            for (std::int32_t b = a + 1; b < c.tasks; ++b) {
                if (random.below(2) == 0)
                    edges.insert(edges.end(), {double(a), double(b), 1.0 + random.below(9)});
            }
        }
        TaskDivisionParams params = c.params(tree);
        const TaskDivision before = divide_tasks(params);
        params.edges = edges;
        params.distances = &distances;
        params.gpus = gpus;
        CHECK(!decide::check(params));
        const TaskDivision after = divide_tasks(params);
        CHECK_EQ(after.found, before.found);
        if (!after.found) continue;
        CHECK(is_division(c, tree, after.leaf_of));
        CHECK(num_kept(c, tree, after.leaf_of) >=
              std::min<std::size_t>(1, num_kept(c, tree, before.leaf_of)));
        const double cost = cost_of(edges, distances, gpus, after.leaf_of);
        const double first = cost_of(edges, distances, gpus, before.leaf_of);
        CHECK(cost <= first * (1 + 1e-9));
        cheaper += cost < first ? 1 : 0;
    }
    CHECK(cheaper > 0);
}

TEST(ends_in_time) {
    topoplace::Random random(85);
    for (int i = 0; i < 50; ++i) {
        const Case c = random_case(random);
        const DomainTree tree = c.tree();
        TaskDivisionParams params = c.params(tree);
        const TaskDivision unhurried = divide_tasks(params);
        params.better_until = std::chrono::steady_clock::now();
        const TaskDivision hurried = divide_tasks(params);
        CHECK_EQ(hurried.found, unhurried.found);
        if (hurried.found) CHECK(is_division(c, tree, hurried.leaf_of));
    }
}

TEST(distances_are_those_of_the_first_level_with_a_path) {
    // Two templates, of one and two GPUs; the second GPU of the latter has no port into the inner level.
    const Ints template_of{0, 1, 1}, sizes{1, 2}, inner{0, 0, 1}, outer{-1, 4, 4}, rails{7, 7, 8};
    const Ints port{0, 0, 1}, same(3, 0);
    const std::vector<std::uint8_t> joined{1, 0, 0, 0}, all{1};
    const std::vector<double> one{0.0}, two{0.0, 2.0, 2.0, 0.0};
    const GpuDistancesParams params{
        .template_of = template_of,
        .sizes = sizes,
        .inside = {one, two},
        .levels = {{inner, {}, port, joined, 5.0}, {outer, rails, same, all, 6.0}},
        .beyond = 7.0};
    CHECK(!GpuDistances::check(params));
    const GpuDistances distances(params);
    const double expected[5][5] = {
        {0, 5, 7, 7, 7}, {5, 0, 2, 6, 7}, {7, 2, 0, 7, 6}, {7, 6, 7, 0, 2}, {7, 7, 6, 2, 0}};
    for (std::int32_t u = 0; u < 5; ++u) {
        for (std::int32_t v = 0; v < 5; ++v) CHECK_EQ(distances.between(u, v), expected[u][v]);
    }
}

TEST(refuses_what_is_no_tree_and_no_division) {
    topoplace::Random random(86);
    const Case c = random_case(random);
    const DomainTree tree = c.tree();
    TaskDivisionParams params = c.params(tree);
    params.balanced = 9;
    CHECK_EQ(decide::check(params).value_or(""), "balanced[0] = 9: not a level");
    params = c.params(tree);
    const Ints twice{0, 0};
    params.required = {{0, twice}};
    CHECK(decide::check(params));
    DomainTreeParams wrong{.machines = c.machines, .sizes = c.sizes};
    CHECK(DomainTree::check(wrong));
    for (std::size_t i = 0; i < c.codes.size(); ++i) wrong.levels.push_back({c.codes[i], c.domains[i]});
    const Ints below(c.machines.size(), -1);
    wrong.sizes = below;
    CHECK(DomainTree::check(wrong));
    wrong.sizes = c.sizes;
    wrong.socket_ends = below;
    CHECK(DomainTree::check(wrong));
}
