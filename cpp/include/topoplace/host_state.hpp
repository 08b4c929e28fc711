// The CPUs, memory and drives of a cluster's machines, and how much of them is free.
//
// Every change is all or nothing. Without capacities nothing runs short, and only processes are counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

    // capacity: one entry a machine, or none for no limits. Throws std::invalid_argument for another number
    // of entries, or an amount below 0.
    HostState(std::int32_t num_machines, std::vector<Amounts> capacity);

    std::int32_t num_machines() const { return static_cast<std::int32_t>(num_processes_.size()); }
    std::span<const Amounts> free() const { return free_; }  // as many as there are capacities
    std::span<const std::int64_t> num_processes() const { return num_processes_; }
    bool is_drained(std::int32_t machine) const { return drained_[static_cast<std::size_t>(machine)] != 0; }

    // Takes what a job needs; changes nothing and returns false where a machine is unknown, drained or short.
    bool take(const HostNeeds& needs);
    // Returns what take() took.
    void give_back(const HostNeeds& needs);
    // Puts back what a rollback took away: it was free when it was taken, whatever was drained since.
    void take_again(const HostNeeds& needs);
    // Sets whether a machine accepts new processes, and returns whether that changed anything.
    bool set_drained(std::int32_t machine, bool drained);

  private:
    bool accepts(std::int32_t machine) const;
    bool add(std::int32_t machine, const Amounts& amounts, std::int64_t sign);
    bool add_all(const HostNeeds& needs, std::int64_t sign);

    std::vector<Amounts> free_;
    std::vector<std::int64_t> num_processes_;
    std::vector<std::uint8_t> drained_;
};

}  // namespace topoplace
