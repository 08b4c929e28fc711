// Which job holds which GPUs and host resources: the only mutable state of a cluster.
//
// A GPU is healthy or drained. It is held by one job, shared by jobs that each take some thousandths of it,
// or cut into MIG slices, each of which one job may hold; it is free when healthy and none of these. Every
// change is all or nothing and costs O(1) per GPU it names. Inside a transaction every change leaves a record
// of what it replaced, so rolling back costs as much as the changes did, whatever the size of the cluster.
//
// Not synchronised: one thread at a time, as for any container.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "topoplace/change_log.hpp"
#include "topoplace/gpu_shares.hpp"
#include "topoplace/gpu_slices.hpp"
#include "topoplace/host_state.hpp"

namespace topoplace {

enum class AllocationStatus : std::uint8_t {
    ok,
    no_gpus,        // the request names none
    job_exists,     // the job holds GPUs already: release it first
    unknown_job,    // the job holds none
    unknown_gpu,    // not in 0..num_gpus-1
    duplicate_gpu,  // named twice in the request
    taken_gpu,      // another job holds it or a share of it: see owner() and sharers()
    drained_gpu,    // withdrawn: undrain() it first
    share_short,    // jobs that share it leave less of it: see share_left()
    sliced_gpu,     // it is cut into slices, all of them idle, and the request may not change that
    no_slice,       // it has no such idle slice, and the request may not cut one
    slots_taken,    // a job holds a slice with parts of it that the request needs
    hosts_short,    // a machine is unknown, drained, or lacks CPUs, memory or drives
};

// The machines of a cluster; without any, jobs hold GPUs only.
struct Machines {
    std::vector<std::int32_t> first_gpu;       // a GPU of each machine
    std::vector<HostState::Amounts> capacity;  // of each machine; none for no limits
};

// What a job takes of each of its GPUs.
struct GpuParts {
    std::int32_t share = kWholeGpu;     // thousandths of each, 1..kWholeGpu, unless it takes slices
    std::vector<MigSlice> slices = {};  // one of each GPU, or none
    bool may_reslice = false;           // idle slices of the GPUs may be given up, and new ones cut
};

// The enumerator's name, such as "taken_gpu".
std::string_view name(AllocationStatus status);

struct AllocationResult {
    AllocationStatus status = AllocationStatus::ok;
    std::int32_t position =
        -1;  // index into the request of the first GPU refused, -1 where it is not a GPU's fault
};

class ClusterState {
  public:
    // What the caller keeps with a job, such as its graph.
    using Note = std::shared_ptr<const void>;

    struct Allocation {
        std::vector<std::int32_t>
            gpus;  // task i of the job runs on gpus[i]; a job with host needs may have none
        HostNeeds hosts;
        Note note;
        std::int64_t kind = 0;              // the caller's number for jobs that disturb others alike
        std::uint64_t sequence = 0;         // rises with every allocation
        std::int32_t share = kWholeGpu;     // thousandths of each of its GPUs, unless it holds slices
        std::vector<MigSlice> slices = {};  // one of each of its GPUs, or none

        bool holds_something() const { return !gpus.empty() || !hosts.empty(); }
    };
    using Job = std::pair<const std::string, Allocation>;

    static constexpr std::int32_t kMaxGpus = std::int32_t{1} << 24;

    // All GPUs healthy and free. Throws std::invalid_argument unless num_gpus is in 1..kMaxGpus, and the
    // first GPU of every machine is one of them.
    explicit ClusterState(std::int32_t num_gpus, Machines machines = {});
    // Copies hold the same allocations and no open transaction.
    ClusterState(const ClusterState& other);
    ClusterState& operator=(const ClusterState&) = delete;
    ClusterState(ClusterState&&) noexcept = default;
    ClusterState& operator=(ClusterState&&) noexcept = default;
    ~ClusterState() = default;

    std::int32_t num_gpus() const { return static_cast<std::int32_t>(owner_.size()); }
    std::int32_t num_free() const { return num_free_; }
    bool knows(std::int32_t gpu) const { return gpu >= 0 && gpu < num_gpus(); }
    // For GPUs it knows:
    bool is_free(std::int32_t gpu) const { return test(free_, gpu); }
    bool is_drained(std::int32_t gpu) const { return test(drained_, gpu); }
    // The job that holds all of it; nullptr where it is free, shared or sliced.
    const Job* owner(std::int32_t gpu) const { return owner_[static_cast<std::size_t>(gpu)]; }
    std::span<const GpuShares<Job>::Holder> sharers(std::int32_t gpu) const { return shares_.holders(gpu); }
    const GpuSlices<Job>::Entries& slices(std::int32_t gpu) const { return slices_.of(gpu); }
    const std::unordered_map<std::int32_t, GpuSlices<Job>::Entries>& all_slices() const {
        return slices_.all();
    }
    // The thousandths that a new job can get: 0 where it is drained or sliced, or one job holds it.
    std::int32_t share_left(std::int32_t gpu) const {
        const bool is_none = is_drained(gpu) || owner(gpu) != nullptr || slices_.is_sliced(gpu);
        return is_none ? 0 : shares_.left(gpu);
    }

    // GPUs that jobs share, or that are cut into slices.
    std::size_t num_divided() const { return shares_.all().size() + slices_.all().size(); }

    std::vector<std::int32_t> free_gpus() const { return members(free_); }        // ascending
    std::vector<std::int32_t> drained_gpus() const { return members(drained_); }  // ascending
    const Job* find(const std::string& job) const;                                // nullptr: it holds nothing
    std::vector<const Job*> jobs() const;  // in the order of their allocation
    std::size_t num_jobs() const { return jobs_.size(); }

    const HostState& hosts() const { return hosts_; }
    // GPUs whose owner or drain state the last change, or the last rollback, may have changed; and the first
    // GPU of each machine whose host resources it changed.
    const std::vector<std::int32_t>& touched() const { return touched_; }
    // The GPUs that changes touched, for those who follow the state from time to time.
    const ChangeLog& changes() const { return changes_; }

    AllocationResult allocate(const std::string& job, std::span<const std::int32_t> gpus,
                              HostNeeds hosts = {}, Note note = {}, std::int64_t kind = 0,
                              GpuParts parts = {});
    AllocationResult release(const std::string& job);
    // Gives a job that holds GPUs, or a new one, host resources and a note: for states that are read from
    // bytes.
    AllocationResult attach(const std::string& job, HostNeeds hosts, Note note, std::int64_t kind = 0);
    // Cuts a GPU into these slices, or makes it whole. Refused unless the slices are disjoint, those that
    // jobs hold are among them, and no job holds or shares the GPU otherwise; the position is 0 then.
    AllocationResult set_slices(std::int32_t gpu, const std::vector<MigSlice>& slices);
    // Withdraws a GPU: it stays with the job that holds it and is not free afterwards. Both are idempotent,
    // and say whether they changed anything; the GPU must be one it knows.
    bool drain(std::int32_t gpu);
    bool undrain(std::int32_t gpu);
    // The same for all these GPUs and the machine they are on: it accepts no new processes while it is
    // drained.
    void set_drained(std::int32_t machine, std::span<const std::int32_t> gpus, bool drained);

    // Transactions nest: rollback(begin()) undoes what happened in between, inner transactions included.
    using Mark = std::size_t;
    Mark begin();
    void commit();
    void rollback(Mark mark);

    // The state as bytes, the same for the same state; restore() refuses any it did not write, and those of
    // another number of GPUs, by std::invalid_argument. An open transaction is not part of it.
    std::string snapshot() const;
    // Host resources and notes are not part of it: see attach().
    static ClusterState restore(std::string_view bytes, std::int32_t num_gpus, Machines machines = {});

  private:
    using Bits = std::vector<std::uint64_t>;
    using Jobs = std::unordered_map<std::string, Allocation>;

    using Entries = GpuSlices<Job>::Entries;

    struct Allocated {
        const Job* job;
        std::vector<std::pair<std::int32_t, Entries>> before;  // of GPUs whose slices changed
    };
    struct Released {
        Jobs::node_type job;  // taken out of jobs_ whole, so that pointers to it hold when it returns
    };
    struct Sliced {
        std::int32_t gpu;
        Entries before;
    };
    struct Drained {
        std::int32_t gpu;
    };
    struct Undrained {
        std::int32_t gpu;
    };
    struct MachineDrained {
        std::int32_t machine;
        bool drained;  // what it was set to
    };
    using Change = std::variant<Allocated, Released, Sliced, Drained, Undrained, MachineDrained>;

    static bool test(const Bits& bits, std::int32_t gpu);
    static std::vector<std::int32_t> members(const Bits& bits);

    bool is_consistent() const;
    AllocationStatus refusal(std::int32_t gpu, const GpuParts& parts, std::size_t position) const;
    AllocationStatus slice_refusal(std::int32_t gpu, const MigSlice& slice, bool may_reslice) const;
    AllocationResult first_refusal(std::span<const std::int32_t> gpus, const GpuParts& parts);
    bool owners_are_consistent() const;
    bool slices_are_consistent() const;
    bool holds(const Job& job, std::size_t position) const;
    void write_sliced(std::string& out) const;
    std::vector<std::pair<std::int32_t, Entries>> reslice(const Allocation& allocation);
    void refresh_free(std::int32_t gpu);
    void set_free(std::int32_t gpu, bool free);
    void take(const Job& job);
    void give_back(const Job& job);
    void set_gpu_drained(std::int32_t gpu, bool drained);
    void touch(const Allocation& allocation);
    void log_touched();
    void record(Change&& change);

    void undo(Allocated& change);
    void undo(Released& change);
    void undo(Sliced& change);
    void undo(Drained& change);
    void undo(Undrained& change);
    void undo(MachineDrained& change);

    std::vector<const Job*> owner_;
    GpuShares<Job> shares_;
    GpuSlices<Job> slices_;
    Bits free_;
    Bits drained_;
    Bits named_;  // of the request that is looked at; empty between requests
    Jobs jobs_;
    HostState hosts_;
    std::vector<std::int32_t> first_gpu_;  // of each machine
    std::vector<std::int32_t> touched_;
    ChangeLog changes_;
    std::vector<Change> log_;
    std::int32_t num_free_ = 0;
    std::int32_t open_transactions_ = 0;
    std::uint64_t next_sequence_ = 0;
};

}  // namespace topoplace
