// Gang search: the GPUs of a gang among those that machines offer.
//
// The machines of one region after the other are mapped as a tree of domains (gang_mapping.hpp). Then each
// machine's tasks are placed by the rule for one machine (machine_sets.hpp), if that takes no longer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "topoplace/gang_bounds.hpp"
#include "topoplace/gang_levels.hpp"
#include "topoplace/gang_mapping.hpp"
#include "topoplace/machine_sets.hpp"
#include "topoplace/mutex.hpp"
#include "topoplace/together.hpp"

namespace topoplace::decide {

struct GangTopologyParams {
    const GangLimits* limits = nullptr;
    const traffic::CollectiveNetwork* network = nullptr;
    std::span<const double> adapter_speed{};  // of each machine: mean GB/s of adapter per GPU
    std::span<const double> nvlink_speed{};   // the same of NVLinks into switches
};

// What is known of a topology before any gang asks.
class GangTopology {
  public:
    [[nodiscard]] static Fault check(const GangTopologyParams& params);
    // What the parameters point to has to outlive it.
    explicit GangTopology(const GangTopologyParams& params);

    const GangLimits& limits;
    const GangMachines& machines;
    const traffic::CollectiveNetwork& network;
    const std::vector<double> adapter_speed, nvlink_speed;

    // The GPUs that were found best for a part of a gang, as long as few are kept. Any thread may ask.
    bool known(const std::string& key, Gpus& found) const;
    void keep(const std::string& key, const Gpus& found) const;

  private:
    static constexpr std::size_t kMostKept = 1 << 14;

    mutable Mutex mutex_;
    mutable std::unordered_map<std::string, Gpus> kept_;
};

struct GangSearchParams {
    const GangTopology* topology = nullptr;
    const GangLevels* levels = nullptr;
    MachineOffers offers{};
    std::span<const std::uint8_t> free{};  // (offers, `free_bytes`) GPUs that are free on each machine
    std::size_t free_bytes = 1;

    traffic::JobCollectives job{};
    std::span<const double> edges{};  // (e, 3) two tasks, the lower one first, and GB between them; sorted
    std::int32_t most = 1;            // tasks on one machine
    Units units{};                    // are mapped as a whole
    bool machine_groups = false;      // some group of tasks has to be within one machine

    std::span<const std::int32_t> start{};  // of each task: the machine from which to search; empty: unknown
    bool may_leave = true;                  // these machines freely; else what follows binds the search
    bool is_balanced = false;               // each machine has as many tasks as before
    std::vector<Together> together{};       // tasks that do not leave the domain in which all of them start
    std::vector<std::size_t> whole{};       // levels at which one domain must have all tasks

    const ports::FlowCounts* others = nullptr;
    double slack = 0.01;     // times that differ by no more count as equal
    bool near_only = false;  // as in SetParams
    double share = 1.0;      // of the usual work
    StopCondition stop{};
};

struct GangFound {
    bool found = false;                // false: there is no room
    std::vector<std::int32_t> gpus{};  // of each task
    double seconds = 0.0;              // beside the others
    double least = 0.0;                // no placement on the offered machines takes less

    bool is_proven() const;
};

// The second if it is faster by more than the slack, or there is no first.
GangFound faster(GangFound best, GangFound other, double slack);

// What is out of range.
[[nodiscard]] Fault check(const GangSearchParams& params);

// A search that is stopped has one mapping at least, of a half of the time that is left at most. The
// parameters pass `check`.
GangFound search_gang(const GangSearchParams& params);

}  // namespace topoplace::decide
