#include <array>
#include <utility>

#include "check.hpp"
#include "restored.hpp"
#include "topoplace/cluster_state.hpp"

using topoplace::AllocationStatus;
using topoplace::ClusterState;
using Gpus = std::vector<std::int32_t>;

namespace {

AllocationStatus allocate(ClusterState& state, const char* job, const Gpus& gpus) {
    return state.allocate(job, gpus).status;
}

bool restores(const std::string& bytes, std::int32_t num_gpus) {
    topoplace::Fault fault;
    CHECK_EQ(ClusterState::restore(bytes, num_gpus, {}, fault).has_value(), !fault);
    return !fault;
}

ClusterState busy() {
    ClusterState state(72);
    static_cast<void>(state.allocate("b", Gpus{70, 3}));
    static_cast<void>(state.allocate("a", Gpus{0}));
    state.drain(3);
    state.drain(64);
    return state;
}

}  // namespace

TEST(an_allocation_is_all_or_nothing) {
    ClusterState state(72);
    CHECK(allocate(state, "a", {71, 5}) == AllocationStatus::ok);
    state.drain(8);
    const std::string before = state.snapshot();
    const std::array<std::pair<Gpus, AllocationStatus>, 6> refused{{
        {{1, 2, 5}, AllocationStatus::taken_gpu},
        {{1, 2, 1}, AllocationStatus::duplicate_gpu},
        {{1, 2, 72}, AllocationStatus::unknown_gpu},
        {{1, 2, -1}, AllocationStatus::unknown_gpu},
        {{1, 2, 8}, AllocationStatus::drained_gpu},
        {{}, AllocationStatus::no_gpus},
    }};
    for (const auto& [gpus, status] : refused) {
        const auto result = state.allocate("b", gpus);
        CHECK(result.status == status);
        CHECK_EQ(result.position, gpus.empty() ? -1 : 2);
        CHECK(state.snapshot() == before);
    }
    CHECK(allocate(state, "a", {1}) == AllocationStatus::job_exists);
    CHECK(state.release("b").status == AllocationStatus::unknown_job);
    CHECK(state.snapshot() == before);
    CHECK_EQ(state.num_free(), 69);
    CHECK_EQ(state.owner(71)->first, "a");
    CHECK(state.owner(1) == nullptr);
}

TEST(a_drained_gpu_stays_with_its_job_and_is_not_free_after_it) {
    ClusterState state(2);
    static_cast<void>(state.allocate("a", Gpus{1}));
    CHECK(state.drain(1));
    CHECK(!state.drain(1));
    CHECK_EQ(state.owner(1)->first, "a");
    static_cast<void>(state.release("a"));
    CHECK(state.free_gpus() == Gpus{0});
    CHECK(state.undrain(1));
    CHECK(!state.undrain(1));
    CHECK_EQ(state.num_free(), 2);
}

TEST(what_is_drained_held_and_unhealthy_is_taken_back_one_by_one) {
    ClusterState state(4, {{0, 2}, {}});
    CHECK(state.drain(Gpus{0, 1}, Gpus{0}));
    CHECK(state.hold("spare", Gpus{1, 2}, Gpus{0}));
    CHECK(!state.hold("spare", Gpus{1}));
    CHECK(state.set_unhealthy(Gpus{2}, true));
    CHECK(state.out_of_service() == (Gpus{0, 1, 2}));
    CHECK(allocate(state, "a", {1}) == AllocationStatus::drained_gpu);
    CHECK(state.undrain(Gpus{0, 1}, Gpus{0}));
    CHECK(state.free_gpus() == (Gpus{0, 3}));
    CHECK(allocate(state, "a", {1}) == AllocationStatus::held_gpu);
    CHECK(state.allocate("a", {}, {{{0, 0, 0}}, {}}).status == AllocationStatus::hosts_short);
    CHECK_EQ(state.reason(state.withdrawal(2).held), "spare");
    CHECK(state.unhold(Gpus{1, 2}, Gpus{0}));
    CHECK(!state.undrain(2));
    CHECK(allocate(state, "a", {2}) == AllocationStatus::unhealthy_gpu);
    CHECK(state.set_unhealthy(Gpus{2}, false));
    CHECK_EQ(state.num_free(), 4);
}

TEST(a_job_that_runs_already_may_hold_what_is_out_of_service) {
    ClusterState state(4, {{0, 2}, {}});
    state.drain(Gpus{0}, Gpus{0});
    state.hold("spare", Gpus{1});
    state.set_unhealthy(Gpus{2}, true);
    const auto status = state.allocate("a", Gpus{0, 1, 2}, {{{0, 1, 1}}, {}}, {}, 0, {.runs = true}).status;
    CHECK(status == AllocationStatus::ok);
    static_cast<void>(state.release("a"));
    CHECK(state.free_gpus() == Gpus{3});
}

TEST(a_snapshot_keeps_what_is_held_with_its_reason) {
    ClusterState state(4, {{0, 2}, {}});
    state.hold("spare", Gpus{3, 1}, Gpus{1});
    state.hold("tests", Gpus{0});
    const std::string bytes = state.snapshot();
    const ClusterState again = restored(bytes, 4, {{0, 2}, {}});
    CHECK(again.snapshot() == bytes);
    CHECK(again.held_back().at("spare").gpus == (Gpus{1, 3}));
    CHECK(again.held_back().at("spare").machines == Gpus{1});
    CHECK(again.held_back().at("tests").gpus == Gpus{0});
    CHECK(!restores(bytes, 4));  // it does not know the machine
    state.unhold(Gpus{0, 1, 2, 3}, Gpus{0, 1});
    CHECK(state.snapshot() == ClusterState(4).snapshot());
}

TEST(a_rollback_restores_everything_and_nests) {
    ClusterState state = busy();
    const std::string before = state.snapshot();
    const auto outer = state.begin();
    static_cast<void>(state.release("b"));
    static_cast<void>(state.allocate("c", Gpus{70, 1}));
    const std::string between = state.snapshot();
    const auto inner = state.begin();
    static_cast<void>(state.release("c"));
    static_cast<void>(state.release("a"));
    static_cast<void>(state.allocate("b", Gpus{0, 1}));
    state.drain(0);
    state.undrain(3);
    state.rollback(inner);
    CHECK(state.snapshot() == between);
    state.begin();
    state.undrain(64);
    state.commit();
    state.rollback(outer);
    CHECK(state.snapshot() == before);
    CHECK_EQ(state.num_free(), 68);
    CHECK_EQ(state.owner(70)->first, "b");
}

TEST(a_commit_keeps_the_changes) {
    ClusterState state(4);
    state.begin();
    static_cast<void>(state.allocate("a", Gpus{2}));
    state.commit();
    CHECK_EQ(state.owner(2)->first, "a");
    const auto mark = state.begin();
    CHECK_EQ(mark, std::size_t{0});
    state.rollback(mark);
    CHECK_EQ(state.num_free(), 3);
}

TEST(a_copy_is_independent) {
    ClusterState state = busy();
    ClusterState copy(state);
    CHECK(copy.snapshot() == state.snapshot());
    static_cast<void>(state.release("b"));
    CHECK_EQ(copy.owner(70)->first, "b");
    CHECK(copy.owner(70) == copy.find("b"));
    CHECK(copy.find("none") == nullptr);
}

TEST(jobs_come_in_the_order_of_their_allocation) {
    ClusterState state = busy();
    CHECK_EQ(state.jobs().front()->first, "b");
    CHECK_EQ(state.jobs().back()->first, "a");
    CHECK((state.jobs().front()->second.gpus == Gpus{70, 3}));
}

TEST(a_snapshot_restores_and_damage_is_refused) {
    const std::string bytes = busy().snapshot();
    CHECK(restored(bytes, 72).snapshot() == bytes);
    CHECK(!restores(bytes, 71));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        CHECK(!restores(bytes.substr(0, i), 72));
        for (int bit = 0; bit < 8; ++bit) {
            std::string damaged = bytes;
            damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
            CHECK(!restores(damaged, 72));
        }
    }
    CHECK(!restores(bytes + '\0', 72));
}

TEST(a_status_has_its_name) {
    CHECK_EQ(name(AllocationStatus::ok), "ok");
    CHECK_EQ(name(AllocationStatus::drained_gpu), "drained_gpu");
    CHECK_EQ(name(AllocationStatus::unhealthy_gpu), "unhealthy_gpu");
    CHECK_EQ(name(AllocationStatus::hosts_short), "hosts_short");
}

TEST(sizes_are_bounded) {
    for (const std::int32_t size : {0, -1, ClusterState::kMaxGpus + 1}) CHECK(ClusterState::check(size, {}));
    CHECK_EQ(ClusterState(100'000).num_free(), 100'000);
}

// ---- host resources
// ------------------------------------------------------------------------------------------------

namespace {

using topoplace::HostNeeds;
using topoplace::HostState;

// Two machines of two GPUs; the first has 8 CPUs, 100 MB and a drive, the second 4 CPUs and 50 MB.
ClusterState with_hosts() { return ClusterState(4, {{0, 2}, {{8, 100, 1}, {4, 50, 0}}}); }

std::vector<HostState::Amounts> free_of(const ClusterState& state) {
    return {state.hosts().free().begin(), state.hosts().free().end()};
}

}  // namespace

TEST(gpus_and_host_resources_are_taken_together_or_not_at_all) {
    ClusterState state = with_hosts();
    const auto before = free_of(state);
    const HostNeeds fits{{{0, 6, 100}, {1, 4, 0}}, {0}};
    CHECK(state.allocate("a", Gpus{3, 4}, fits).status == AllocationStatus::unknown_gpu);
    CHECK(free_of(state) == before);
    const std::array<HostNeeds, 5> short_of_something{{
        {{{0, 5, 0}, {0, 4, 0}}, {}},
        {{{1, 0, 51}}, {}},
        {{{0, 1, 1}}, {0, 0}},
        {{{2, 0, 0}}, {}},
        {{}, {-1}},
    }};
    for (const HostNeeds& needs : short_of_something) {
        CHECK(state.allocate("a", Gpus{0}, needs).status == AllocationStatus::hosts_short);
        CHECK(free_of(state) == before);
        CHECK_EQ(state.num_free(), 4);
    }
    CHECK(state.allocate("a", Gpus{1}, fits).status == AllocationStatus::ok);
    CHECK((free_of(state) == std::vector<HostState::Amounts>{{2, 0, 0}, {0, 50, 0}}));
    CHECK_EQ(state.hosts().num_processes()[1], std::int64_t{1});
    CHECK((state.touched() == Gpus{1, 0, 2, 0}));
    CHECK(state.release("a").status == AllocationStatus::ok);
    CHECK(free_of(state) == before);
}

TEST(a_job_may_hold_host_resources_alone) {
    ClusterState state = with_hosts();
    CHECK(state.allocate("a", Gpus{}, {{{1, 3, 0}}, {}}).status == AllocationStatus::ok);
    CHECK(state.allocate("a", Gpus{0}).status == AllocationStatus::job_exists);
    CHECK(restored(state.snapshot(), 4).jobs().empty());
    CHECK(ClusterState(state).find("a") != nullptr);
    CHECK(state.release("a").status == AllocationStatus::ok);
}

TEST(a_rollback_restores_host_resources_and_drained_machines) {
    ClusterState state = with_hosts();
    static_cast<void>(state.allocate("a", Gpus{0}, {{{0, 8, 0}}, {}}));
    const auto before = free_of(state);
    const auto mark = state.begin();
    static_cast<void>(state.release("a"));
    state.drain(Gpus{0, 1}, Gpus{0});
    CHECK(state.allocate("b", Gpus{}, {{{0, 1, 0}}, {}}).status == AllocationStatus::hosts_short);
    static_cast<void>(state.allocate("b", Gpus{2}, {{{1, 4, 50}}, {}}));
    state.rollback(mark);
    CHECK(free_of(state) == before);
    CHECK(state.hosts().accepts(0));
    CHECK_EQ(state.owner(0)->first, "a");
    CHECK_EQ(state.num_free(), 3);
}

TEST(machines_of_unknown_size_take_any_process) {
    ClusterState state(4, {{0, 2}, {}});
    CHECK(state.allocate("a", Gpus{0}, {{{1, 1000, 1000}}, {}}).status == AllocationStatus::ok);
    CHECK(state.allocate("b", Gpus{1}, {{{1, 1000, 1000}}, {}}).status == AllocationStatus::ok);
    CHECK(state.release("a").status == AllocationStatus::ok);
}

TEST(a_rollback_tells_which_machine_is_no_longer_drained) {
    ClusterState state = with_hosts();
    const auto mark = state.begin();
    state.drain(Gpus{}, Gpus{1});
    state.rollback(mark);
    CHECK(state.touched() == Gpus{2});
}

TEST(notes_stay_with_their_jobs) {
    ClusterState state = with_hosts();
    const auto note = std::make_shared<const int>(7);
    static_cast<void>(state.allocate("a", Gpus{0}, {}, note));
    CHECK(state.attach("a", {{{0, 1, 0}}, {}}, note).status == AllocationStatus::ok);
    CHECK(state.attach("a", {{{0, 1, 0}}, {}}, note).status == AllocationStatus::job_exists);
    CHECK(state.attach("b", {{{1, 9, 0}}, {}}, note).status == AllocationStatus::hosts_short);
    const auto mark = state.begin();
    static_cast<void>(state.release("a"));
    state.rollback(mark);
    CHECK(state.find("a")->second.note == note);
    CHECK_EQ(state.hosts().free()[0][0], std::int64_t{7});
}

TEST(machines_that_cannot_be_are_refused) {
    const std::array<topoplace::Machines, 3> wrong{
        {{{0, 4}, {}}, {{0, 2}, {{1, 1, 1}}}, {{0}, {{1, -1, 1}}}}};
    for (const topoplace::Machines& machines : wrong) CHECK(ClusterState::check(4, machines));
}
