// The CPUs, memory and drives of a cluster's machines, and how much of them is free.
//
// Every change is all or nothing. Without capacities nothing runs short, and only processes are counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/withdrawal.hpp"

namespace topoplace {

// What one job takes besides GPUs.
struct HostNeeds {
    struct Process {
        std::int32_t machine = 0;
        std::int64_t cpus = 0;
        std::int64_t megabytes = 0;
    };

    std::vector<Process> processes;
    std::vector<std::int32_t> drives;  // the machine of each

    bool empty() const { return processes.empty() && drives.empty(); }
};

class HostState {
  public:
    // The amounts of a machine: CPUs, MB of memory, drives.
    using Amounts = std::array<std::int64_t, 3>;

    // capacity: one entry a machine, or none for no limits; no amount is below 0.
    [[nodiscard]] static Fault check(std::int32_t num_machines, std::span<const Amounts> capacity);
    HostState(std::int32_t num_machines, std::vector<Amounts> capacity);

    std::int32_t num_machines() const { return static_cast<std::int32_t>(num_processes_.size()); }
    std::span<const Amounts> free() const { return free_; }  // as many as there are capacities
    std::span<const std::int64_t> num_processes() const { return num_processes_; }
    // Why a machine accepts no new processes.
    const Withdrawal& withdrawal(std::int32_t machine) const {
        return withdrawn_[static_cast<std::size_t>(machine)];
    }
    // False also for a machine that it does not know.
    bool accepts(std::int32_t machine) const;
    // Whether a job can get what it needs; false where a machine is unknown or short, or is withdrawn and the
    // job does not run there already.
    bool has(const HostNeeds& needs, bool runs);

    // Takes what a job needs: there must be enough, though machines may be withdrawn when a rollback takes
    // it.
    void take(const HostNeeds& needs) noexcept;
    // Returns what take() took.
    void give_back(const HostNeeds& needs) noexcept;
    void set_withdrawal(std::int32_t machine, Withdrawal now) noexcept;

  private:
    bool add(std::int32_t machine, const Amounts& amounts, std::int64_t sign) noexcept;
    bool add_all(const HostNeeds& needs, std::int64_t sign) noexcept;

    std::vector<Amounts> free_;
    std::vector<std::int64_t> num_processes_;
    std::vector<Withdrawal> withdrawn_;
};

}  // namespace topoplace
