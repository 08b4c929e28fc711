#include <numeric>
#include <string>
#include <vector>

#include "check.hpp"
#include "instructions/counted.hpp"
#include "restored.hpp"
#include "topoplace/cluster_state.hpp"
#include "topoplace/fragmentation.hpp"
#include "topoplace/machine_conditions.hpp"
#include "topoplace/machine_ranking.hpp"
#include "topoplace/random.hpp"

using topoplace::ClusterState;

namespace {

constexpr std::int32_t kMachines = 200;
constexpr std::int32_t kGpus = 8;  // of each machine

topoplace::MachineLayout layout() {
    topoplace::MachineLayout made{{}, std::vector<std::int32_t>(kMachines, 0), {{0, 0, 0, 0, 1, 1, 1, 1}}};
    for (std::int32_t machine = 0; machine < kMachines; ++machine) {
        made.gpus_of.emplace_back();
        for (std::int32_t i = 0; i < kGpus; ++i) made.gpus_of.back().push_back(kGpus * machine + i);
    }
    return made;
}

topoplace::Machines machines() {
    topoplace::Machines made;
    for (std::int32_t machine = 0; machine < kMachines; ++machine) {
        made.first_gpu.push_back(kGpus * machine);
        made.capacity.push_back({64, 1 << 20, 0});
    }
    return made;
}

// Jobs of one to four GPUs of a machine begin, and every second one ends; some changes are taken back.
void live(ClusterState& state, std::int32_t jobs) {
    topoplace::Random random(8);
    for (std::int32_t job = 0; job < jobs; ++job) {
        const std::int32_t machine = random.below(kMachines);
        const std::int32_t first = kGpus * machine + 4 * random.below(2);
        std::vector<std::int32_t> gpus(std::size_t(1 + random.below(4)));
        std::iota(gpus.begin(), gpus.end(), first);
        const auto mark = state.begin();
        static_cast<void>(state.allocate(std::to_string(job), gpus));
        if (job % 10 == 0) {
            state.rollback(mark);
        } else {
            state.commit();
        }
        if (job % 2 == 1) static_cast<void>(state.release(std::to_string(random.below(job))));
    }
}

}  // namespace

TEST(jobs_that_begin_and_end) {
    ClusterState state(kMachines * kGpus, machines());
    counted([&] {
        live(state, 5000);
        CHECK(restored(state.snapshot(), kMachines * kGpus, machines()).num_free() == state.num_free());
    });
}

TEST(machines_in_equal_condition) {
    ClusterState state(kMachines * kGpus, machines());
    topoplace::MachineConditions conditions(state, layout(), {});
    topoplace::MachineRanking ranking(conditions);
    counted([&] {
        for (std::int32_t round = 0; round < kMachines; ++round) {
            const std::vector<std::int32_t> gpus{kGpus * round, kGpus * round + 1 + round % 7};
            static_cast<void>(state.allocate(std::to_string(round), gpus));
            for (const std::int32_t condition : ranking.unknown())
                ranking.set(condition, topoplace::MachineRanking::Key{double(condition % 5)});
            CHECK(ranking.best({}).machine >= 0);
            CHECK(!ranking.first(16, {}).empty());
        }
    });
}

TEST(fragments_that_jobs_leave) {
    topoplace::Random random(9);
    std::vector<topoplace::TypicalJob> jobs;
    for (std::int32_t job = 0; job < 24; ++job) {
        const std::int32_t tasks = job % 5;
        const std::int32_t share = tasks == 1 ? 1 + random.below(1000) : tasks == 0 ? 0 : 1000;
        jobs.push_back({1000 * random.below(9), tasks, share, double(1 + random.below(9)), {1}});
    }
    const topoplace::Fragmentation fragmentation(jobs);
    std::vector<std::vector<std::int32_t>> left(400);
    for (auto& gpus : left) {
        for (std::int32_t gpu = 0; gpu < kGpus; ++gpu) gpus.push_back(100 * random.below(11));
    }
    counted([&] {
        double sum = 0;
        for (const auto& gpus : left)
            sum += fragmentation.best_step({0, 32000, gpus}, 4000, 1, 300, false).score;
        CHECK(sum > 0);
    });
}
