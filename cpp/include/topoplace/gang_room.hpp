// How many tasks of a gang the domains of the offered machines take, and the adapters of domains in which
// rings are planned: what limits how fast any placement on these machines can be.
#pragma once

#include <cstdint>
#include <vector>

#include "topoplace/gang_machines.hpp"

namespace topoplace::decide {

struct GangRoom {
    struct Adapter {
        std::int32_t owner = 0;  // the domain of rings
        double gb_per_s = 0.0;
        double way_out = 0.0;  // GB/s of one of its GPUs, at most
    };
    // The most tasks in each domain: of the whole, of each level from the outermost to the machines.
    std::vector<std::vector<std::int64_t>> tasks{};
    std::vector<std::int64_t> ring_tasks{};  // in each domain of rings
    std::vector<Adapter> adapters{};         // of the offered GPUs
};

// most: tasks on one machine. The other arguments pass their checks.
GangRoom gang_room(const GangMachines& machines, const MachineOffers& offers, const LevelCodes& codes,
                   std::int32_t most);

// Disjoint groups of `size` tasks that fit, each into one domain.
std::int64_t groups_that_fit(const std::vector<std::int64_t>& tasks, std::int64_t size);

// The most GB/s of a ring of `size` tasks over several domains: channels x the slowest of them. way_out: that
// of every adapter, if it is above 0.
double most_of_channels(const GangRoom& room, std::int64_t size, double way_out);

// The most GB/s of all adapters of a domain together.
double most_of_adapters(const GangRoom& room);

}  // namespace topoplace::decide
