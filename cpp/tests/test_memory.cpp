// Memory that runs out in a change of a cluster's state: each allocation of each change fails once, and the
// state must be the one before the change. Rolling back gets no memory at all.
#include <cstdlib>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "check.hpp"
#include "topoplace/cluster_state.hpp"
#include "topoplace/machine_conditions.hpp"
#include "topoplace/random.hpp"

namespace {

constexpr long kNever = -1;
long allocations_left = kNever;  // until one fails; after that, none fails

void* allocated(std::size_t size) {
    if (allocations_left != kNever && allocations_left-- == 0) throw std::bad_alloc();
    if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocated(size); }
void* operator new[](std::size_t size) { return allocated(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using topoplace::ClusterState;
using topoplace::GpuParts;
using topoplace::HostNeeds;
using topoplace::kWholeGpu;
using topoplace::MigSlice;
using topoplace::Random;
using Gpus = std::vector<std::int32_t>;

constexpr std::int32_t kGpus = 6;

ClusterState new_state() { return ClusterState(kGpus, {{0, 3}, {{9, 90, 3}, {9, 90, 3}}}); }

// All that can be asked of a state.
std::string whole(const ClusterState& state) {
    std::string text = state.snapshot();
    const auto add = [&text](std::int64_t number) { text += ' ' + std::to_string(number); };
    for (std::int32_t gpu = 0; gpu < kGpus; ++gpu) {
        const topoplace::Withdrawal& its = state.withdrawal(gpu);
        for (const std::int64_t number :
             {state.is_free(gpu) ? 1 : 0, state.share_left(gpu), its.drained ? 1 : 0, its.unhealthy ? 1 : 0,
              static_cast<std::int32_t>(its.held)})
            add(number);
        if (state.owner(gpu) != nullptr) text += state.owner(gpu)->first;
        std::set<std::string> sharers;  // their order means nothing
        for (const auto& sharer : state.sharers(gpu)) sharers.insert(sharer.job->first);
        for (const std::string& job : sharers) text += job;
        for (const auto& [slice, job] : state.slices(gpu)) text += job != nullptr ? job->first : "-";
    }
    for (const ClusterState::Job* job : state.jobs()) text += " " + job->first;
    for (std::size_t machine = 0; machine < 2; ++machine) {
        for (const std::int64_t amount : state.hosts().free()[machine]) add(amount);
        add(state.hosts().num_processes()[machine]);
        add(state.hosts().accepts(static_cast<std::int32_t>(machine)) ? 1 : 0);
    }
    return text;
}

Gpus some_gpus(Random& rng) {
    Gpus gpus;
    for (std::int32_t gpu = 0; gpu < kGpus; ++gpu) {
        if (rng.below(3) == 0) gpus.push_back(gpu);
    }
    return gpus;
}

void allocate(ClusterState& state, const std::string& job, Random& rng) {
    const Gpus gpus = some_gpus(rng);
    GpuParts parts{.share = rng.below(2) == 0 ? kWholeGpu : 100 * (1 + rng.below(9)),
                   .may_reslice = rng.below(2) == 0,
                   .runs = rng.below(2) == 0};
    if (rng.below(3) == 0) {
        parts.share = kWholeGpu;
        for (std::size_t i = 0; i < gpus.size(); ++i) parts.slices.push_back({1u << rng.below(8), 1});
    }
    HostNeeds needs;
    if (rng.below(2) == 0) needs = {{{rng.below(2), 2, 5}}, {rng.below(2)}};
    static_cast<void>(state.allocate(job, gpus, needs, std::make_shared<const int>(1), 0, parts));
}

// One change that follows from the seed alone.
void change(ClusterState& state, std::uint64_t seed) {
    Random rng(seed);
    const std::string job = "a job with a name too long to be kept in place " + std::to_string(rng.below(6));
    const Gpus gpus = some_gpus(rng);
    const Gpus machines(static_cast<std::size_t>(rng.below(2)), rng.below(2));
    switch (rng.below(10)) {
        case 0:
            state.drain(gpus, machines);
            break;
        case 1:
            state.undrain(gpus, machines);
            break;
        case 2:
            state.hold("a reason too long to be kept in place " + std::to_string(rng.below(3)), gpus,
                       machines);
            break;
        case 3:
            state.unhold(gpus, machines);
            break;
        case 4:
            state.set_unhealthy(gpus, rng.below(2) == 0);
            break;
        case 5: {
            const std::vector<MigSlice> slices{{3, 1}, {12, 1}, {48, 2}};
            static_cast<void>(
                state.set_slices(rng.below(kGpus), {slices.begin(), slices.begin() + rng.below(4)}));
            break;
        }
        case 6:
        case 7:
            static_cast<void>(state.release(job));
            break;
        default:
            allocate(state, job, rng);
    }
}

// Makes the change after each of its allocations failed once; returns how many there are.
int change_after_failures(ClusterState& state, std::uint64_t seed) {
    const std::string before = whole(state);
    for (int failures = 0;; ++failures) {
        try {
            allocations_left = failures;
            change(state, seed);
            allocations_left = kNever;
            return failures;
        } catch (const std::bad_alloc&) {
            allocations_left = kNever;
        }
        CHECK(whole(state) == before);
    }
}

TEST(a_change_without_memory_changes_nothing) {
    Random rng(3);
    int failures = 0;
    for (std::int32_t round = 0; round < check::rounds(400); ++round) {
        ClusterState state = new_state();
        for (int step = 0; step < 25; ++step) failures += change_after_failures(state, rng.next());
    }
    CHECK(failures > 1000);
}

TEST(a_rollback_needs_no_memory) {
    Random rng(4);
    for (std::int32_t round = 0; round < check::rounds(1000); ++round) {
        ClusterState state = new_state();
        for (int step = 0; step < 12; ++step) change(state, rng.next());
        const std::string before = whole(state);
        const ClusterState::Mark outer = state.begin();
        for (int step = 0; step < 6; ++step) change_after_failures(state, rng.next());
        const std::string between = whole(state);
        const ClusterState::Mark inner = state.begin();
        for (int step = 0; step < 6; ++step) change_after_failures(state, rng.next());
        allocations_left = 0;
        state.rollback(inner);
        allocations_left = kNever;
        CHECK(whole(state) == between);
        allocations_left = 0;
        state.rollback(outer);
        allocations_left = kNever;
        CHECK(whole(state) == before);
    }
}

TEST(conditions_of_machines_are_right_after_memory_ran_out) {
    Random rng(5);
    for (std::int32_t round = 0; round < check::rounds(100); ++round) {
        ClusterState state = new_state();
        const topoplace::MachineLayout layout{{{0, 1, 2}, {3, 4, 5}}, {0, 0}, {{0, 0, 0}}};
        const topoplace::Sight sight{.gpu_use = true, .shares = true};
        topoplace::MachineConditions conditions(state, layout, sight);
        for (int step = 0; step < 20; ++step) {
            change(state, rng.next());
            try {
                allocations_left = rng.below(12);
                conditions.refresh();
            } catch (const std::bad_alloc&) {
            }
            allocations_left = kNever;
            conditions.refresh();
            const topoplace::MachineConditions fresh(state, layout, sight);
            for (std::int32_t machine = 0; machine < 2; ++machine) {
                CHECK(conditions.condition(conditions.condition_of(machine)) ==
                      fresh.condition(fresh.condition_of(machine)));
                CHECK(conditions.machines(conditions.condition_of(machine)).contains(machine));
            }
        }
    }
}

}  // namespace
