// Loads of hops kept up to date while tasks move, against loads made anew.
#include <algorithm>
#include <cmath>
#include <vector>

#include "check.hpp"
#include "gang_mapping/gang_loads.hpp"
#include "oracles/gang_cases.hpp"
#include "topoplace/random.hpp"

namespace gang_mapping = topoplace::gang_mapping;
using gang_mapping::GangLoads;
using gang_mapping::Moved;
using oracle::GangCase;
using oracle::Numbers;

namespace {

bool are_near(double one, double other, double part) {
    return std::abs(one - other) <= part * std::max({1.0, std::abs(one), std::abs(other)});
}

void check_equal(const GangLoads& kept, const GangCase& c, double never) {
    const auto params = c.params();
    GangLoads fresh(params);
    topoplace::WorkMeter meter{topoplace::StopCondition{}};
    CHECK(fresh.set(kept.vertex_of(), meter));
    CHECK(are_near(kept.seconds(), fresh.seconds(), 1e-9));
    CHECK(are_near(kept.port_seconds(), fresh.port_seconds(), 1e-9));
    CHECK(are_near(kept.port_gigabytes(), fresh.port_gigabytes(), 1e-9));
    const oracle::GangTime time = oracle::gang_time(c, kept.vertex_of());
    if (time.seconds >= never) return;  // flows without a path
    CHECK(are_near(kept.seconds(), time.seconds, 1e-9));
    CHECK(are_near(kept.port_seconds(), time.port_seconds, 1e-9));
}

// Some tasks, each to a vertex without one or to that of another task, which goes the other way.
std::vector<Moved> random_moves(topoplace::Random& random, const Numbers& vertex_of, std::int32_t n) {
    std::vector<Moved> moves;
    Numbers now = vertex_of;
    std::vector<std::uint8_t> moved(now.size(), 0);
    for (std::int32_t left = 1 + random.below(3); left > 0; --left) {
        const auto task = std::size_t(random.below(static_cast<std::int32_t>(now.size())));
        const std::int32_t to = random.below(n);
        const auto other = std::size_t(std::ranges::find(now, to) - now.begin());
        if (moved[task] != 0 || other == task || (other < now.size() && moved[other] != 0)) continue;
        moved[task] = 1;
        moves.push_back({static_cast<std::int32_t>(task), to});
        if (other < now.size()) {
            moved[other] = 1;
            moves.push_back({static_cast<std::int32_t>(other), now[task]});
            now[other] = now[task];
        }
        now[task] = to;
    }
    return moves;
}

}  // namespace

TEST(loads_after_moves_are_those_of_a_fresh_start) {
    topoplace::Random random(51);
    for (std::int32_t i = 0; i < check::rounds(120); ++i) {
        const GangCase c =
            oracle::random_gang(random, oracle::random_fabric(random, 1 + random.below(5), 4), 20, 12);
        const auto params = c.params();
        GangLoads loads(params);
        topoplace::WorkMeter meter{topoplace::StopCondition{}};
        Numbers vertex_of = oracle::permutation(random, c.fabric.network.n);
        vertex_of.resize(c.tasks.size());
        CHECK(loads.set(vertex_of, meter));
        const double smooth = loads.smooth();
        std::vector<std::vector<Moved>> back;
        for (std::int32_t move = 0; move < 400; ++move) {
            const std::vector<Moved> moves = random_moves(random, loads.vertex_of(), c.fabric.network.n);
            const Numbers before = loads.vertex_of();
            loads.move(moves);
            if (random.below(2) == 0) {
                loads.undo();
                CHECK(loads.vertex_of() == before);
                continue;
            }
            back.emplace_back();
            for (const Moved& one : moves) back.back().push_back({one.task, before[std::size_t(one.task)]});
            if (move % 40 == 0) check_equal(loads, c, GangLoads::kNever);
        }
        check_equal(loads, c, GangLoads::kNever);
        for (; !back.empty(); back.pop_back()) loads.move(back.back());
        CHECK(loads.vertex_of() == vertex_of);
        check_equal(loads, c, GangLoads::kNever);
        CHECK(are_near(loads.smooth(), smooth, 1e-6));
    }
}

// It is at most the time times a root of the number of hops, and at least the time.
TEST(smooth_seconds_are_close_above_seconds) {
    topoplace::Random random(52);
    for (std::int32_t i = 0; i < check::rounds(300); ++i) {
        const GangCase c = oracle::random_gang(random, oracle::random_fabric(random, 4, 4), 16, 10);
        const auto params = c.params();
        GangLoads loads(params);
        topoplace::WorkMeter meter{topoplace::StopCondition{}};
        Numbers vertex_of = oracle::permutation(random, c.fabric.network.n);
        vertex_of.resize(c.tasks.size());
        CHECK(loads.set(vertex_of, meter));
        CHECK(loads.smooth() >= loads.seconds() * (1 - 1e-9));
        CHECK(loads.smooth() <= loads.seconds() * 1.6 + 1e-9);
    }
}

// Of 2,000 tasks in pairs, far more work than are loaded without a look at the clock.
TEST(a_long_start_is_stopped) {
    topoplace::Random random(53);
    GangCase c;
    c.fabric = oracle::random_fabric(random, check::rounds(900, 2), 4);
    Numbers tasks(std::min(2000, c.fabric.network.n));
    for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i] = static_cast<std::int32_t>(i);
    c.tasks = tasks;
    c.job.add(topoplace::traffic::Kind::kPairs, tasks, 1.0);
    c.job.end_phase();
    const auto params = c.params();
    GangLoads loads(params);
    topoplace::WorkMeter stopped{topoplace::StopCondition::in(0)}, endless{topoplace::StopCondition{}};
    CHECK(!loads.set(tasks, stopped));
    CHECK(loads.work() < 2 * GangLoads::kLeast);
    CHECK(loads.set(tasks, endless));
    CHECK(are_near(loads.seconds(), oracle::gang_time(c, tasks).seconds, 1e-9) ||
          loads.seconds() >= GangLoads::kNever);
}
