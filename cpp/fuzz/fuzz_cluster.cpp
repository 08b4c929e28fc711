// ClusterState against a map that cannot be wrong: any sequence of changes, transactions and snapshots, and
// bytes that no snapshot wrote.
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "fuzz.hpp"
#include "restored.hpp"
#include "topoplace/cluster_state.hpp"

namespace {

using topoplace::AllocationStatus;
using topoplace::ClusterState;
using Gpus = std::vector<std::int32_t>;

constexpr std::int32_t kNumGpus = 67;  // a word of bits and a little
constexpr std::int64_t kCpus = 5;      // of each of two machines

struct Model {
    std::map<std::string, Gpus> jobs;
    std::map<std::string, std::array<std::int64_t, 2>> cpus;  // of a job, on each machine
    std::vector<std::string> order;                           // of allocation
    std::set<std::int32_t> drained;
    std::map<std::int32_t, std::string> kept;  // reasons to hold
    std::set<std::int32_t> unhealthy;

    const std::string* owner(std::int32_t gpu) const {
        for (const auto& [job, gpus] : jobs) {
            for (const std::int32_t held : gpus) {
                if (held == gpu) return &job;
            }
        }
        return nullptr;
    }
    bool is_free(std::int32_t gpu) const {
        return owner(gpu) == nullptr && !drained.contains(gpu) && !kept.contains(gpu) &&
               !unhealthy.contains(gpu);
    }

    std::int64_t free_cpus(std::size_t machine) const {
        std::int64_t free = kCpus;
        for (const auto& [job, taken] : cpus) free -= taken[machine];
        return free;
    }

    // What allocating has to answer: a status, and the index of the GPU it is about.
    std::pair<AllocationStatus, std::int32_t> refusal(const std::string& job, const Gpus& gpus,
                                                      const std::array<std::int64_t, 2>& taken) const {
        if (gpus.empty()) return {AllocationStatus::no_gpus, -1};
        if (jobs.contains(job)) return {AllocationStatus::job_exists, -1};
        for (std::size_t machine = 0; machine < 2; ++machine) {
            if (taken[machine] > free_cpus(machine)) return {AllocationStatus::hosts_short, -1};
        }
        std::set<std::int32_t> seen;
        for (std::size_t i = 0; i < gpus.size(); ++i) {
            const std::int32_t gpu = gpus[i];
            const auto at = std::int32_t(i);
            if (gpu < 0 || gpu >= kNumGpus) return {AllocationStatus::unknown_gpu, at};
            if (owner(gpu) != nullptr) return {AllocationStatus::taken_gpu, at};
            if (drained.contains(gpu)) return {AllocationStatus::drained_gpu, at};
            if (kept.contains(gpu)) return {AllocationStatus::held_gpu, at};
            if (unhealthy.contains(gpu)) return {AllocationStatus::unhealthy_gpu, at};
            if (!seen.insert(gpu).second) return {AllocationStatus::duplicate_gpu, at};
        }
        return {AllocationStatus::ok, -1};
    }
    AllocationStatus release(const std::string& job) {
        if (jobs.erase(job) == 0) return AllocationStatus::unknown_job;
        cpus.erase(job);
        std::erase(order, job);
        return AllocationStatus::ok;
    }
};

void compare(const ClusterState& state, const Model& model) {
    Gpus free;
    for (std::int32_t gpu = 0; gpu < kNumGpus; ++gpu) {
        const std::string* owner = model.owner(gpu);
        REQUIRE((state.owner(gpu) == nullptr) == (owner == nullptr));
        REQUIRE(owner == nullptr || state.owner(gpu)->first == *owner);
        const topoplace::Withdrawal& its = state.withdrawal(gpu);
        REQUIRE(its.drained == model.drained.contains(gpu));
        REQUIRE(its.unhealthy == model.unhealthy.contains(gpu));
        REQUIRE((its.held != 0) == model.kept.contains(gpu));
        REQUIRE(its.held == 0 || state.reason(its.held) == model.kept.at(gpu));
        REQUIRE(state.is_free(gpu) == model.is_free(gpu));
        if (model.is_free(gpu)) free.push_back(gpu);
    }
    REQUIRE(state.free_gpus() == free);
    REQUIRE(state.num_free() == std::int32_t(free.size()));
    std::vector<std::string> order;
    for (const ClusterState::Job* job : state.jobs()) {
        REQUIRE(job->second.gpus == model.jobs.at(job->first));
        order.push_back(job->first);
    }
    REQUIRE(order == model.order);
}

void compare_hosts(const ClusterState& state, const Model& model) {
    for (std::size_t machine = 0; machine < 2; ++machine)
        REQUIRE(state.hosts().free()[machine][0] == model.free_cpus(machine));
}

// Restoring either refuses or yields a state that writes the same bytes.
void check_bytes(const std::string& bytes, bool must_restore) {
    topoplace::Fault fault;
    const auto state = ClusterState::restore(bytes, kNumGpus, {}, fault);
    REQUIRE(state ? state->snapshot() == bytes : fault && !must_restore);
}

class Run {
  public:
    explicit Run(fuzz::Bytes& bytes) : bytes_(bytes) {}

    void step() {
        switch (bytes_.below(8)) {
            case 0:
            case 1:
            case 2:
                return allocate();
            case 3:
                return release();
            case 4:
                return drain();
            case 5:
                return begin();
            case 6:
                return end();
            default:
                return store();
        }
    }
    const ClusterState& state() const { return state_; }
    const Model& model() const { return model_; }

  private:
    std::string job() { return std::string(std::size_t(bytes_.below(3)), 'j') + char('a' + bytes_.below(4)); }

    void allocate() {
        const std::string name = job();
        Gpus gpus;
        for (std::int32_t count = bytes_.below(6); count > 0; --count) {
            gpus.push_back(bytes_.below(kNumGpus + 2) - 1);
        }
        topoplace::HostNeeds needs;
        std::array<std::int64_t, 2> taken{};
        for (std::int32_t count = gpus.empty() ? 0 : bytes_.below(4); count > 0; --count) {
            const std::int32_t machine = bytes_.below(2);
            const std::int64_t cpus = bytes_.below(4);
            needs.processes.push_back({machine, cpus, 0});
            taken[std::size_t(machine)] += cpus;
        }
        const auto [status, position] = model_.refusal(name, gpus, taken);
        const topoplace::AllocationResult result = state_.allocate(name, gpus, std::move(needs));
        REQUIRE(result.status == status && result.position == position);
        if (status == AllocationStatus::ok) {
            model_.jobs[name] = gpus;
            model_.cpus[name] = taken;
            model_.order.push_back(name);
        }
    }
    void release() {
        const std::string name = job();
        REQUIRE(state_.release(name).status == model_.release(name));
    }
    void drain() {
        const std::int32_t gpu = bytes_.below(kNumGpus);
        const Gpus one{gpu};
        switch (bytes_.below(6)) {
            case 0:
                REQUIRE(state_.drain(gpu) == model_.drained.insert(gpu).second);
                break;
            case 1:
                REQUIRE(state_.undrain(gpu) == (model_.drained.erase(gpu) == 1));
                break;
            case 2:
                model_.kept[gpu] = bytes_.below(2) == 0 ? "spare" : "tests";
                state_.hold(model_.kept[gpu], one);
                break;
            case 3:
                REQUIRE(state_.unhold(one) == (model_.kept.erase(gpu) == 1));
                break;
            case 4:
                REQUIRE(state_.set_unhealthy(one, true) == model_.unhealthy.insert(gpu).second);
                break;
            default:
                REQUIRE(state_.set_unhealthy(one, false) == (model_.unhealthy.erase(gpu) == 1));
        }
    }
    void begin() { open_.emplace_back(state_.begin(), model_); }
    void end() {
        if (open_.empty()) return;
        auto [mark, before] = std::move(open_.back());
        open_.pop_back();
        if (bytes_.below(2) == 0) return state_.commit();
        state_.rollback(mark);
        model_ = std::move(before);
    }
    void store() {
        std::string bytes = state_.snapshot();
        check_bytes(bytes, true);
        ClusterState again = restored(bytes, kNumGpus);
        again.set_unhealthy(Gpus(model_.unhealthy.begin(), model_.unhealthy.end()), true);
        compare(again, model_);
        compare(ClusterState(state_), model_);
        compare_hosts(ClusterState(state_), model_);
        const auto place = std::size_t(bytes_.below(256)) % bytes.size();
        const auto change = char(bytes_.below(256));
        bytes[place] = char(bytes[place] ^ change);
        check_bytes(bytes, change == 0);
    }

    fuzz::Bytes& bytes_;
    ClusterState state_{kNumGpus, {{0, 40}, {{kCpus, 0, 0}, {kCpus, 0, 0}}}};
    Model model_;
    std::vector<std::pair<ClusterState::Mark, Model>> open_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    check_bytes(std::string(reinterpret_cast<const char*>(data), size), false);
    fuzz::Bytes bytes(data, size);
    Run run(bytes);
    while (!bytes.empty()) {
        run.step();
        compare(run.state(), run.model());
        compare_hosts(run.state(), run.model());
    }
    return 0;
}
