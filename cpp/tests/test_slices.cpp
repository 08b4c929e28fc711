// MIG slices of GPUs against a model that lists what each job holds, under changes, transactions and copies.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "restored.hpp"
#include "topoplace/cluster_state.hpp"
#include "topoplace/machine_conditions.hpp"
#include "topoplace/random.hpp"

using topoplace::AllocationStatus;
using topoplace::ClusterState;
using topoplace::GpuParts;
using topoplace::kWholeGpu;
using topoplace::MigSlice;
using topoplace::Random;

namespace {

constexpr std::int32_t kGpus = 3;

struct Held {
    std::int32_t gpu = 0;
    std::int32_t share = kWholeGpu;
    std::optional<MigSlice> slice;
};

struct Model {
    std::map<std::string, Held> jobs;
    std::map<std::int32_t, std::set<MigSlice>> cut;
    std::set<std::int32_t> drained;

    bool holds(std::int32_t gpu, const MigSlice& slice) const {
        return std::any_of(jobs.begin(), jobs.end(), [&](const auto& entry) {
            return entry.second.gpu == gpu && entry.second.slice == slice;
        });
    }
    std::int32_t shared(std::int32_t gpu) const {
        std::int32_t sum = 0;
        for (const auto& [_, held] : jobs) sum += held.gpu == gpu && !held.slice ? held.share : 0;
        return sum;
    }
    bool is_idle(std::int32_t gpu) const {
        const auto found = cut.find(gpu);
        return found == cut.end() || std::none_of(found->second.begin(), found->second.end(),
                                                  [&](const auto& one) { return holds(gpu, one); });
    }
    std::int32_t left(std::int32_t gpu) const {
        return drained.contains(gpu) || cut.contains(gpu) ? 0 : kWholeGpu - shared(gpu);
    }
};

MigSlice any_slice(Random& rng) {
    const std::uint32_t size = std::uint32_t{1} << rng.below(3);
    const auto parts = ((std::uint32_t{1} << size) - 1) << rng.below(8 - static_cast<std::int32_t>(size) + 1);
    return {parts | (rng.below(4) == 0 ? 0x100u : 0u), static_cast<std::uint32_t>(1 + rng.below(2))};
}

// One of those that the GPU has, or any.
MigSlice likely_slice(const Model& model, std::int32_t gpu, Random& rng) {
    const auto found = model.cut.find(gpu);
    if (found == model.cut.end() || rng.below(2) == 0) return any_slice(rng);
    auto at = found->second.begin();
    std::advance(at, rng.below(static_cast<std::int32_t>(found->second.size())));
    return *at;
}

void set_slices(ClusterState& state, Model& model, std::int32_t gpu, Random& rng) {
    std::vector<MigSlice> wanted;
    std::uint32_t parts = 0;
    bool possible = model.shared(gpu) == 0;
    for (std::int32_t count = rng.below(4); count > 0; --count) {
        wanted.push_back(likely_slice(model, gpu, rng));
        possible = possible && (parts & wanted.back().parts) == 0;
        parts |= wanted.back().parts;
    }
    const std::set<MigSlice> now(wanted.begin(), wanted.end());
    for (const MigSlice& one : model.cut.contains(gpu) ? model.cut[gpu] : std::set<MigSlice>())
        possible = possible && (!model.holds(gpu, one) || now.contains(one));
    CHECK_EQ(state.set_slices(gpu, wanted).status == AllocationStatus::ok, possible);
    if (!possible) return;
    if (now.empty()) model.cut.erase(gpu);
    if (!now.empty()) model.cut[gpu] = now;
}

// Takes a slice in the model, and returns whether it can be taken.
bool take_slice(Model& model, std::int32_t gpu, const MigSlice& slice, bool may_reslice) {
    std::set<MigSlice> kept;
    bool is_there = false;
    for (const MigSlice& one : model.cut.contains(gpu) ? model.cut[gpu] : std::set<MigSlice>()) {
        const bool meets = (one.parts & slice.parts) != 0;
        if (meets && model.holds(gpu, one)) return false;
        is_there = is_there || one == slice;
        if (!meets) kept.insert(one);
    }
    if (model.shared(gpu) != 0 || !(is_there || may_reslice)) return false;
    if (is_there) return true;
    kept.insert(slice);
    model.cut[gpu] = kept;
    return true;
}

// The same for a share.
bool take_share(Model& model, std::int32_t gpu, std::int32_t share, bool may_reslice) {
    const bool may_join = may_reslice && model.cut.contains(gpu) && model.is_idle(gpu);
    if (model.left(gpu) < share && !may_join) return false;
    model.cut.erase(gpu);
    return true;
}

void allocate(ClusterState& state, Model& model, const std::string& job, std::int32_t gpu, Random& rng) {
    GpuParts parts{.share = rng.below(2) == 0 ? kWholeGpu : 1 + rng.below(kWholeGpu),
                   .may_reslice = rng.below(2) == 0};
    Held held{gpu, parts.share, {}};
    if (rng.below(2) == 0) {
        held.slice = likely_slice(model, gpu, rng);
        parts.share = kWholeGpu;
        parts.slices = {*held.slice};
    }
    const bool may = !model.jobs.contains(job) && !model.drained.contains(gpu);
    const bool possible = may && (held.slice ? take_slice(model, gpu, *held.slice, parts.may_reslice)
                                             : take_share(model, gpu, parts.share, parts.may_reslice));
    const std::vector<std::int32_t> gpus{gpu};
    CHECK_EQ(state.allocate(job, gpus, {}, {}, 0, parts).status == AllocationStatus::ok, possible);
    if (possible) model.jobs[job] = held;
}

void change(ClusterState& state, Model& model, Random& rng) {
    const std::string job = "job" + std::to_string(rng.below(6));
    const std::int32_t gpu = rng.below(kGpus);
    switch (rng.below(8)) {
        case 0:
            CHECK(state.drain(gpu) == model.drained.insert(gpu).second);
            break;
        case 1:
            CHECK(state.undrain(gpu) == (model.drained.erase(gpu) == 1));
            break;
        case 2:
        case 3:
            CHECK((state.release(job).status == AllocationStatus::ok) == (model.jobs.erase(job) == 1));
            break;
        case 4:
            set_slices(state, model, gpu, rng);
            break;
        default:
            allocate(state, model, job, gpu, rng);
    }
}

void compare(const ClusterState& state, const Model& model) {
    for (std::int32_t gpu = 0; gpu < kGpus; ++gpu) {
        CHECK_EQ(state.share_left(gpu), model.left(gpu));
        CHECK_EQ(state.is_free(gpu), model.left(gpu) == kWholeGpu);
        const auto found = model.cut.find(gpu);
        CHECK_EQ(state.slices(gpu).size(), found == model.cut.end() ? 0 : found->second.size());
        for (const auto& [slice, job] : state.slices(gpu)) {
            CHECK(found != model.cut.end() && found->second.contains(slice));
            CHECK_EQ(job != nullptr, model.holds(gpu, slice));
            if (job != nullptr) CHECK(model.jobs.at(job->first).slice == slice);
        }
    }
    CHECK_EQ(state.num_jobs(), model.jobs.size());
}

TEST(slices_agree_with_a_model) {
    Random rng(11);
    for (int round = 0; round < 60; ++round) {
        ClusterState state(kGpus);
        Model model;
        for (int step = 0; step < 120; ++step) {
            if (rng.below(6) == 0) {  // a transaction that is undone
                const ClusterState::Mark mark = state.begin();
                Model inside = model;
                for (int i = rng.below(6); i > 0; --i) change(state, inside, rng);
                compare(state, inside);
                state.rollback(mark);
            } else {
                change(state, model, rng);
            }
            compare(state, model);
        }
        const ClusterState copy(state);
        compare(copy, model);
        const std::string bytes = state.snapshot();
        compare(restored(bytes, kGpus), model);
        CHECK_EQ(restored(bytes, kGpus).snapshot(), bytes);
    }
}

TEST(machines_with_other_slices_are_in_other_conditions) {
    ClusterState state(4);
    topoplace::MachineConditions conditions(state, {{{0}, {1}, {2}, {3}}, {0, 0, 0, 0}, {{0}}},
                                            {.jobs = false, .shares = true});
    const MigSlice half{0x0f, 3}, other{0xf0, 3};
    CHECK(state.set_slices(0, {half, other}).status == AllocationStatus::ok);
    CHECK(state.set_slices(1, {other, half}).status == AllocationStatus::ok);
    CHECK(state.set_slices(2, {half}).status == AllocationStatus::ok);
    conditions.refresh();
    CHECK_EQ(conditions.condition_of(0), conditions.condition_of(1));
    CHECK(conditions.condition_of(0) != conditions.condition_of(2));
    CHECK(conditions.condition_of(2) != conditions.condition_of(3));
    const std::vector<std::int32_t> gpus{1};
    CHECK(state.allocate("job", gpus, {}, {}, 0, {.slices = {half}}).status == AllocationStatus::ok);
    conditions.refresh();
    CHECK(conditions.condition_of(0) != conditions.condition_of(1));
}

TEST(bytes_of_wrong_slices_are_refused) {
    ClusterState state(1);
    CHECK(state.set_slices(0, {{0x0f, 3}, {0x1f, 1}}).status == AllocationStatus::no_slice);
    CHECK(state.set_slices(0, {{0x100, 1}}).status == AllocationStatus::no_slice);
    CHECK(state.set_slices(0, {{0x200f, 1}}).status == AllocationStatus::no_slice);
    CHECK(state.set_slices(5, {}).status == AllocationStatus::unknown_gpu);
    CHECK(state.is_free(0));
}

}  // namespace
