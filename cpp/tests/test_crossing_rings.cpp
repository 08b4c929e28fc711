// Blocks of the rings of two phases, as the definition has them.
#include <numeric>
#include <set>

#include "check.hpp"
#include "decide/crossing_rings.hpp"
#include "oracles/gang_clusters.hpp"
#include "topoplace/random.hpp"

namespace decide = topoplace::decide;
namespace traffic = topoplace::traffic;
using oracle::at;
using oracle::Numbers;
using topoplace::Random;

namespace {

// Several grids of tasks, in whose rows and columns are rings.
struct Grid {
    std::int32_t count, height, width;
    Numbers tasks;

    explicit Grid(Random& random)
        : count(1 + random.below(3)),
          height(2 + random.below(5)),
          width(2 + random.below(5)),
          tasks(oracle::permutation(random, count * height * width)) {}

    std::int32_t size() const { return static_cast<std::int32_t>(tasks.size()); }
    oracle::Collectives job() const {
        oracle::Collectives made;
        for (std::int32_t row = 0; row < count * height; ++row)
            made.add(traffic::Kind::kReduce, part(row * width, width, 1), 1.0);
        made.end_phase();
        for (std::int32_t column = 0; column < count * width; ++column)
            made.add(traffic::Kind::kRing,
                     part(column / width * height * width + column % width, height, width), 2.0);
        made.end_phase();
        return made;
    }
    // The number of a task's ring in a phase.
    std::int32_t ring_of(std::int32_t task, bool is_row) const {
        const auto place = static_cast<std::int32_t>(std::ranges::find(tasks, task) - tasks.begin());
        return is_row ? place / width : place / (height * width) * width + place % width;
    }

  private:
    Numbers part(std::int32_t first, std::int32_t length, std::int32_t step) const {
        Numbers found;
        for (std::int32_t i = 0; i < length; ++i) found.push_back(tasks[at(first + i * step)]);
        return found;
    }
};

std::size_t count_rings(const Grid& grid, std::span<const std::int32_t> block, bool is_row) {
    std::set<std::int32_t> rings;
    for (const std::int32_t task : block) rings.insert(grid.ring_of(task, is_row));
    return rings.size();
}

}  // namespace

TEST(blocks_are_rows_times_columns) {
    Random random(95);
    std::int32_t found = 0;
    for (std::int32_t i = 0; i < check::rounds(300); ++i) {
        const auto c = oracle::random_case(random, 8, 4);
        const decide::GangLimits& limits = c.cluster->topology->limits;
        const Grid grid(random);
        const auto job = grid.job();
        const std::vector<std::int64_t> rooms(30, 1 + random.below(8));
        const auto phases = decide::rings_of_phases(decide::phases_of(job.view()), grid.tasks.size());
        CHECK_EQ(phases.size(), 2U);
        CHECK_EQ(decide::most_in_common(phases[0], phases[1]), 1);
        const decide::GangUnits blocks = decide::block_units(limits, job.view(), grid.size(), rooms);
        if (blocks.tasks.empty()) continue;
        ++found;
        CHECK(blocks.size <= rooms[0]);
        CHECK_EQ(std::set(blocks.tasks.begin(), blocks.tasks.end()).size(), grid.tasks.size());
        for (std::size_t begin = 0; begin < blocks.tasks.size(); begin += at(blocks.size)) {
            const auto block = std::span(blocks.tasks).subspan(begin, at(blocks.size));
            CHECK_EQ(count_rings(grid, block, true) * count_rings(grid, block, false), at(blocks.size));
        }
    }
    CHECK(found > check::rounds(100));
}

TEST(phases_that_are_no_grid_have_no_blocks) {
    Random random(96);
    const auto c = oracle::random_case(random, 8, 4);
    oracle::Collectives job;
    for (const Numbers& ring : {Numbers{0, 1}, Numbers{2, 3}, Numbers{4, 5}})
        job.add(traffic::Kind::kReduce, ring, 1.0);
    job.end_phase();
    for (const Numbers& ring : {Numbers{0, 2, 4}, Numbers{1, 5, 3}})
        job.add(traffic::Kind::kReduce, ring, 1.0);
    job.end_phase();
    const std::vector<std::int64_t> rooms{3, 3};
    CHECK(!decide::block_units(c.cluster->topology->limits, job.view(), 6, rooms).tasks.empty());
    CHECK_EQ(decide::most_of_some_machine({2, 5, 3}, 7), 3);
    CHECK_EQ(decide::most_of_some_machine({2, 5, 3}, 11), 0);
    // A task in no ring, and rings of several sizes.
    CHECK(decide::rings_of_phases(decide::phases_of(job.view()), 7).empty());
    job.add(traffic::Kind::kReduce, {0, 1, 2, 3}, 1.0);
    job.add(traffic::Kind::kReduce, {4, 5}, 1.0);
    job.end_phase();
    CHECK_EQ(decide::rings_of_phases(decide::phases_of(job.view()), 6).size(), 2U);
    // Of many phases only some are compared: those with the most GB.
    for (std::int32_t phase = 0; phase < 40; ++phase) {
        job.add(traffic::Kind::kReduce, {0, 1, 2, 3, 4, 5}, 1.0 + phase % 20);
        job.end_phase();
    }
    const auto kept = decide::rings_of_phases(decide::phases_of(job.view()), 6);
    CHECK(kept.size() < 10);
    CHECK(std::ranges::all_of(kept, [](const auto& rings) { return rings.gigabytes > 17.0; }));
}
