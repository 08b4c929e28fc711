// Which job holds which GPUs and host resources: the only mutable state of a cluster.
//
// A GPU is in service unless it is drained, held back or unhealthy, which are three states of their own. It
// is held by one job, shared by jobs that each take some thousandths of it, or cut into MIG slices, each of
// which one job may hold; it is free when in service and none of these. Every change is all or nothing, also
// where memory runs out: what it needs is reserved before anything changes. It costs O(1) per GPU it names.
// Inside a transaction every change leaves a record of what it replaced, so rolling back costs as much as the
// changes did, whatever the size of the cluster, and needs no memory.
//
// Not synchronised: one thread at a time, as for any container.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "topoplace/change_log.hpp"
#include "topoplace/fault.hpp"
#include "topoplace/gpu_shares.hpp"
#include "topoplace/gpu_slices.hpp"
#include "topoplace/host_state.hpp"
#include "topoplace/withdrawal.hpp"

namespace topoplace {

enum class AllocationStatus : std::uint8_t {
    ok,
    no_gpus,        // the request names none
    job_exists,     // the job holds GPUs already: release it first
    unknown_job,    // the job holds none
    unknown_gpu,    // not in 0..num_gpus-1
    duplicate_gpu,  // named twice in the request
    taken_gpu,      // another job holds it or a share of it: see owner() and sharers()
    drained_gpu,    // undrain() it first
    held_gpu,       // it is held back for a reason: unhold() it first
    unhealthy_gpu,  // it is broken
    share_short,    // jobs that share it leave less of it: see share_left()
    sliced_gpu,     // it is cut into slices, all of them idle, and the request may not change that
    no_slice,       // it has no such idle slice, and the request may not cut one
    slots_taken,    // a job holds a slice with parts of it that the request needs
    hosts_short,    // a machine is unknown, not in service, or lacks CPUs, memory or drives
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
    bool runs = false;                  // it runs already, so GPUs and machines may be out of service
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

    // A number of GPUs that is not in 1..kMaxGpus, or machines that cannot be.
    [[nodiscard]] static Fault check(std::int32_t num_gpus, const Machines& machines);
    // All GPUs in service and free.
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
    // Why no new job gets it.
    const Withdrawal& withdrawal(std::int32_t gpu) const { return withdrawn_[static_cast<std::size_t>(gpu)]; }
    bool is_in_service(std::int32_t gpu) const { return withdrawal(gpu).in_service(); }
    // The job that holds all of it; nullptr where it is free, shared or sliced.
    const Job* owner(std::int32_t gpu) const { return owner_[static_cast<std::size_t>(gpu)]; }
    std::span<const GpuShares<Job>::Holder> sharers(std::int32_t gpu) const { return shares_.holders(gpu); }
    const GpuSlices<Job>::Entries& slices(std::int32_t gpu) const { return slices_.of(gpu); }
    std::vector<std::int32_t> sliced_gpus() const;  // ascending
    // The thousandths that a new job can get: 0 where it is out of service or sliced, or one job holds it.
    std::int32_t share_left(std::int32_t gpu) const {
        const bool is_none = !is_in_service(gpu) || owner(gpu) != nullptr || slices_.is_sliced(gpu);
        return is_none ? 0 : shares_.left(gpu);
    }

    // GPUs that jobs share, or that are cut into slices.
    std::size_t num_divided() const { return shares_.num_shared() + slices_.num_sliced(); }

    std::vector<std::int32_t> free_gpus() const { return members(free_); }                 // ascending
    std::vector<std::int32_t> out_of_service() const { return members(withdrawn_gpus_); }  // GPUs, ascending
    std::vector<std::int32_t> drained_gpus() const;                                        // ascending
    const Job* find(const std::string& job) const;  // nullptr: it holds nothing
    std::vector<const Job*> jobs() const;           // in the order of their allocation
    std::size_t num_jobs() const { return jobs_.size(); }

    const HostState& hosts() const { return hosts_; }
    // GPUs whose owner or withdrawal the last change, or the last rollback, may have changed; and the first
    // GPU of each machine whose host resources it changed.
    const std::vector<std::int32_t>& touched() const { return touched_; }
    // The GPUs that changes touched, for those who follow the state from time to time.
    const ChangeLog& changes() const { return changes_; }

    AllocationResult allocate(const std::string& job, std::span<const std::int32_t> gpus,
                              HostNeeds hosts = {}, Note note = {}, std::int64_t kind = 0,
                              GpuParts parts = {});
    AllocationResult release(const std::string& job);
    // Gives a job that holds GPUs, or a new one, host resources and a note, also of machines out of
    // service: for states that are read from bytes.
    AllocationResult attach(const std::string& job, HostNeeds hosts, Note note, std::int64_t kind = 0);
    // Cuts a GPU into these slices, or makes it whole. Refused unless the slices are disjoint, those that
    // jobs hold are among them, and no job holds or shares the GPU otherwise; the position is 0 then.
    AllocationResult set_slices(std::int32_t gpu, const std::vector<MigSlice>& slices);
    // Withdraws GPUs, and machines from new processes: what is withdrawn stays with its jobs and is not free
    // afterwards. What one of these functions sets, only its opposite takes back. All are idempotent, and say
    // whether they changed anything; GPUs and machines must be known.
    bool drain(std::span<const std::int32_t> gpus, std::span<const std::int32_t> machines = {});
    bool undrain(std::span<const std::int32_t> gpus, std::span<const std::int32_t> machines = {});
    bool drain(std::int32_t gpu) { return drain(std::span(&gpu, 1)); }
    bool undrain(std::int32_t gpu) { return undrain(std::span(&gpu, 1)); }
    // Holding again changes the reason. There may be 65,535 different ones.
    [[nodiscard]] Fault check_reason(std::string_view reason) const;
    bool hold(std::string_view reason, std::span<const std::int32_t> gpus,
              std::span<const std::int32_t> machines = {});
    bool unhold(std::span<const std::int32_t> gpus, std::span<const std::int32_t> machines = {});
    bool set_unhealthy(std::span<const std::int32_t> gpus, bool unhealthy);
    struct Held {
        std::vector<std::int32_t> gpus;      // ascending
        std::vector<std::int32_t> machines;  // ascending
    };
    // What is held, by reason; as long as nothing changes.
    std::map<std::string_view, Held> held_back() const;
    // The reason with the number that a withdrawal gives, which is not 0.
    const std::string& reason(std::uint16_t number) const { return reasons_[number - std::size_t{1}]; }

    // Transactions nest: rollback(begin()) undoes what happened in between, inner transactions included.
    using Mark = std::size_t;
    Mark begin();
    void commit();
    void rollback(Mark mark) noexcept;

    // The state as bytes, the same for the same state; restore() refuses any it did not write, and those of
    // another number of GPUs: `fault` says why, and there is no state. An open transaction is not part of it,
    // nor is which GPUs are unhealthy and which machines are drained.
    std::string snapshot() const;
    // Host resources and notes are not part of it: see attach().
    static std::optional<ClusterState> restore(std::string_view bytes, std::int32_t num_gpus,
                                               Machines machines, Fault& fault);

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
    struct GpuWithdrawn {
        std::int32_t gpu;
        Withdrawal before;
    };
    struct MachineWithdrawn {
        std::int32_t machine;
        Withdrawal before;
    };
    using Change = std::variant<Allocated, Released, Sliced, GpuWithdrawn, MachineWithdrawn>;

    static bool test(const Bits& bits, std::int32_t gpu);
    static std::vector<std::int32_t> members(const Bits& bits);

    bool is_consistent() const;
    AllocationStatus refusal(std::int32_t gpu, const GpuParts& parts, std::size_t position) const;
    AllocationStatus service_refusal(std::int32_t gpu) const;
    AllocationStatus slice_refusal(std::int32_t gpu, const MigSlice& slice, bool may_reslice) const;
    AllocationResult first_refusal(std::span<const std::int32_t> gpus, const GpuParts& parts);
    bool owners_are_consistent() const;
    bool slices_are_consistent() const;
    bool holds(const Job& job, std::size_t position) const;
    void write_sliced(std::string& out) const;
    std::vector<std::pair<std::int32_t, Entries>> resliced(std::span<const std::int32_t> gpus,
                                                           const GpuParts& parts) const;
    void reserve(std::span<const std::int32_t> gpus, const GpuParts& parts);
    void reserve_log(std::size_t changes, std::size_t touches);
    template <class Edit>
    bool change_service(std::span<const std::int32_t> gpus, std::span<const std::int32_t> machines,
                        const Edit& edit);
    std::uint16_t number_of(std::string_view reason);
    void refresh_free(std::int32_t gpu) noexcept;
    void set_free(std::int32_t gpu, bool free) noexcept;
    void take(const Job& job) noexcept;
    void give_back(const Job& job) noexcept;
    void set_withdrawal(std::int32_t gpu, Withdrawal now) noexcept;
    void touch(const Allocation& allocation) noexcept;
    void log_touched() noexcept;
    static std::size_t touches(const Change& change);
    void record(Change&& change) noexcept;

    void undo(Allocated& change) noexcept;
    void undo(Released& change) noexcept;
    void undo(Sliced& change) noexcept;
    void undo(GpuWithdrawn& change) noexcept;
    void undo(MachineWithdrawn& change) noexcept;

    std::vector<const Job*> owner_;
    GpuShares<Job> shares_;
    GpuSlices<Job> slices_;
    Bits free_;
    std::vector<Withdrawal> withdrawn_;
    Bits withdrawn_gpus_;               // those that are not in service
    std::vector<std::string> reasons_;  // for which something is or was held back
    Bits named_;                        // of the request that is looked at; empty between requests
    Jobs jobs_;
    HostState hosts_;
    std::vector<std::int32_t> first_gpu_;  // of each machine
    std::vector<std::int32_t> touched_;
    ChangeLog changes_;
    std::vector<Change> log_;
    std::size_t logged_touches_ = 0;  // what undoing the whole log would touch
    std::int32_t num_free_ = 0;
    std::int32_t open_transactions_ = 0;
    std::uint64_t next_sequence_ = 0;
};

}  // namespace topoplace
