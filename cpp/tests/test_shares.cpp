// Shares of GPUs against a model that adds up what each job holds, under changes, transactions and copies.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "restored.hpp"
#include "topoplace/cluster_state.hpp"
#include "topoplace/random.hpp"

using topoplace::AllocationStatus;
using topoplace::ClusterState;
using topoplace::kWholeGpu;
using topoplace::Random;

namespace {

constexpr std::int32_t kGpus = 5;

struct Model {
    std::map<std::string, std::pair<std::vector<std::int32_t>, std::int32_t>> held;
    std::set<std::int32_t> drained;

    std::int32_t left(std::int32_t gpu) const {
        std::int32_t rest = drained.contains(gpu) ? 0 : kWholeGpu;
        if (rest == 0) return 0;
        for (const auto& [_, entry] : held) {
            for (const std::int32_t its : entry.first) rest -= its == gpu ? entry.second : 0;
        }
        return rest;
    }
    bool fits(const std::vector<std::int32_t>& gpus, std::int32_t share) const {
        std::set<std::int32_t> seen;
        for (const std::int32_t gpu : gpus) {
            if (left(gpu) < share || !seen.insert(gpu).second) return false;
        }
        return !gpus.empty();
    }
};

void change(ClusterState& state, Model& model, Random& rng) {
    const std::string job = "job" + std::to_string(rng.below(6));
    const std::int32_t gpu = rng.below(kGpus);
    switch (rng.below(6)) {
        case 0:
            CHECK(state.drain(gpu) == model.drained.insert(gpu).second);
            break;
        case 1:
            CHECK(state.undrain(gpu) == (model.drained.erase(gpu) == 1));
            break;
        case 2:
            CHECK((state.release(job).status == AllocationStatus::ok) == (model.held.erase(job) == 1));
            break;
        default: {
            const std::int32_t share = rng.below(3) == 0 ? kWholeGpu : 1 + rng.below(kWholeGpu);
            std::vector<std::int32_t> gpus(static_cast<std::size_t>(1 + rng.below(3)));
            for (std::int32_t& one : gpus) one = rng.below(kGpus);
            const bool fits = !model.held.contains(job) && model.fits(gpus, share);
            CHECK((state.allocate(job, gpus, {}, {}, 0, {share}).status == AllocationStatus::ok) == fits);
            if (fits) model.held[job] = {gpus, share};
        }
    }
}

void compare(const ClusterState& state, const Model& model) {
    std::int32_t num_free = 0;
    for (std::int32_t gpu = 0; gpu < kGpus; ++gpu) {
        CHECK_EQ(state.share_left(gpu), model.left(gpu));
        CHECK_EQ(state.is_free(gpu), model.left(gpu) == kWholeGpu);
        num_free += state.is_free(gpu) ? 1 : 0;
        std::map<std::string, std::int32_t> sharers;
        for (const auto& one : state.sharers(gpu)) sharers[one.job->first] = one.share;
        if (state.owner(gpu) != nullptr) sharers[state.owner(gpu)->first] = kWholeGpu;
        for (const auto& [job, entry] : model.held) {
            const bool holds = std::count(entry.first.begin(), entry.first.end(), gpu) > 0;
            CHECK_EQ(sharers.contains(job), holds);
            if (holds) CHECK_EQ(sharers[job], entry.second);
        }
    }
    CHECK_EQ(state.num_free(), num_free);
}

}  // namespace

TEST(shares_add_up_to_a_gpu_at_most) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        Random rng(seed);
        ClusterState state(kGpus);
        Model model;
        for (int step = 0; step < 300; ++step) {
            if (rng.below(8) == 0) {
                const Model before = model;
                const ClusterState::Mark mark = state.begin();
                for (int i = 0; i < 5; ++i) change(state, model, rng);
                state.rollback(mark);
                model = before;
            } else {
                change(state, model, rng);
            }
            compare(state, model);
        }
        compare(ClusterState(state), model);
        const std::string bytes = state.snapshot();
        const ClusterState again = restored(bytes, kGpus);
        compare(again, model);
        CHECK(again.snapshot() == bytes);
    }
}

TEST(a_share_of_a_snapshot_is_in_thousandths) {
    ClusterState state(1);
    CHECK(state.allocate("a", std::vector<std::int32_t>{0}, {}, {}, 0, {1}).status == AllocationStatus::ok);
    CHECK(state.allocate("b", std::vector<std::int32_t>{0}, {}, {}, 0, {999}).status == AllocationStatus::ok);
    CHECK(state.allocate("c", std::vector<std::int32_t>{0}, {}, {}, 0, {1}).status ==
          AllocationStatus::share_short);
    CHECK(state.allocate("d", std::vector<std::int32_t>{0}).status == AllocationStatus::taken_gpu);
    CHECK(restored(state.snapshot(), 1).snapshot() == state.snapshot());
}
