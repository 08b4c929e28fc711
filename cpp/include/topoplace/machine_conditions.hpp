// Groups machines in equal condition: of one template, with the same free GPUs and, as far as a rule looks at
// them, the same jobs, shares and free CPUs.
//
// Every condition that some machine was ever in has a number, so that what a rule says of one machine is
// known for all others in its condition. Otherwise amounts of CPUs and memory are no part of a condition:
// they are compared machine by machine. A change of the cluster costs O(log machines) for each machine it
// touches, and is looked at by the next query.
//
// Not synchronised: one thread at a time, the same as changes the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "topoplace/change_log.hpp"
#include "topoplace/cluster_state.hpp"
#include "topoplace/fault.hpp"

namespace topoplace {

// The machines of a cluster. GPUs have local numbers 0..n-1 on their machine, in the order given here.
struct MachineLayout {
    std::vector<std::vector<std::int32_t>> gpus_of;    // the GPUs of each machine
    std::vector<std::int32_t> template_of;             // the template of each machine
    std::vector<std::vector<std::int32_t>> socket_of;  // of each template: the socket of each GPU, from 0
};

// What tells machines of one template apart, besides their free GPUs.
struct Sight {
    bool jobs = true;        // each job on the machine: its kind, its number of GPUs there, and their sockets
    bool gpu_use = false;    // whether a job holds a GPU of the machine
    bool processes = false;  // whether a job runs a process on it
    bool machine = false;    // its number: no two machines share a condition
    bool shares = false;     // how much is left of each GPU, and into which slices it is cut
    bool cpus = false;       // how many CPUs are free
};

// The CPUs and memory that a job needs on a machine; below 0 if it needs no process there.
struct HostAmounts {
    std::int64_t cpus = -1;
    std::int64_t megabytes = -1;
};

class MachineConditions {
  public:
    using Words = std::vector<std::uint64_t>;  // a set of small numbers, 64 a word

    struct JobHere {
        std::int64_t kind = 0;  // as the caller numbered it; see ClusterState::Allocation
        std::int64_t num_gpus = 0;
        Words sockets;

        auto operator<=>(const JobHere&) const = default;
    };
    struct SliceHere {
        std::int32_t gpu = 0;  // local number
        MigSlice slice;
        bool is_held = false;

        auto operator<=>(const SliceHere&) const = default;
    };
    struct Condition {
        std::int32_t machine_template = 0;
        std::int32_t machine = -1;       // only where no two machines share a condition
        bool is_used = false;            // by jobs or processes, as far as the rule sees them
        Words free;                      // local numbers
        std::vector<JobHere> jobs;       // ascending; empty unless the rule sees jobs
        std::vector<std::int32_t> left;  // thousandths of each GPU; empty unless the rule sees shares
        std::vector<SliceHere> slices;   // of GPUs in service, ascending; empty unless the rule sees shares
        std::int64_t cpus = 0;           // free thousandths of a CPU; 0 unless the rule sees CPUs

        bool operator==(const Condition&) const = default;
    };

    // A GPU of the state that is not on exactly one machine, or a machine whose template has not a socket for
    // each of its GPUs.
    [[nodiscard]] static Fault check(const MachineLayout& layout, std::int32_t num_gpus);
    // The state must outlive this object.
    MachineConditions(const ClusterState& state, MachineLayout layout, Sight sight);

    std::int32_t num_machines() const { return static_cast<std::int32_t>(layout_.gpus_of.size()); }
    std::int32_t num_templates() const { return static_cast<std::int32_t>(layout_.socket_of.size()); }
    const ClusterState& state() const { return *state_; }
    const Sight& sight() const { return sight_; }

    // Looks at the changes of the state since the last call; what follows is as of then.
    void refresh();

    // Conditions are numbered from 0. `generation` increases when all are renumbered.
    std::uint64_t generation() const { return generation_; }
    std::int32_t num_conditions() const { return static_cast<std::int32_t>(conditions_.size()); }
    const Condition& condition(std::int32_t number) const {
        return *conditions_[static_cast<std::size_t>(number)];
    }
    std::int32_t condition_of(std::int32_t machine) const {
        return condition_of_[static_cast<std::size_t>(machine)];
    }
    // By their local numbers.
    const std::vector<std::int32_t>& gpus_of(std::int32_t machine) const {
        return layout_.gpus_of[static_cast<std::size_t>(machine)];
    }
    std::int32_t machine_of(std::int32_t gpu) const { return machine_of_[static_cast<std::size_t>(gpu)]; }
    const std::set<std::int32_t>& machines(std::int32_t number) const {
        return machines_[static_cast<std::size_t>(number)];
    }
    // The lowest machine in a condition; kAbsent where there is none.
    std::int32_t lowest(std::int32_t number) const { return lowest_[static_cast<std::size_t>(number)]; }
    // The conditions that came to have machines, or ceased to, in the order of these changes.
    const ChangeLog& occupied() const { return occupied_; }
    // Whether a machine has at least these CPUs and memory free; amounts below 0 are not looked at.
    bool has(std::int32_t machine, const HostAmounts& needs) const {
        return needs.cpus < 0 || has_free(machine, needs);
    }
    // The lowest machine in a condition with at least these CPUs and memory free; kAbsent where none has.
    std::int32_t first_machine(std::int32_t number, const HostAmounts& needs) const;

  private:
    struct Hash {
        std::size_t operator()(const Condition& condition) const;
    };

    Condition read(std::int32_t machine) const;
    std::int64_t free_cpus(std::int32_t machine) const;
    bool has_free(std::int32_t machine, const HostAmounts& needs) const;
    std::vector<SliceHere> slices_of(std::span<const std::int32_t> gpus) const;
    void move(std::int32_t machine);
    void leave(std::int32_t machine);
    void renumber();

    const ClusterState* state_;
    MachineLayout layout_;
    Sight sight_;
    std::vector<std::int32_t> machine_of_;  // by GPU
    std::vector<std::int32_t> local_of_;    // by GPU
    std::unordered_map<Condition, std::int32_t, Hash> number_of_;
    std::vector<const Condition*> conditions_;  // keys of number_of_
    std::vector<std::set<std::int32_t>> machines_;
    std::vector<std::int32_t> lowest_;  // of each condition's machines
    std::vector<std::int32_t> condition_of_;
    ChangeLog occupied_;
    std::uint64_t seen_ = 0;
    std::uint64_t generation_ = 0;
};

}  // namespace topoplace
