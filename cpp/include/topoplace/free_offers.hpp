// What machines offer to a job that gets whole GPUs: the free ones of those that suit it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/gang_machines.hpp"
#include "topoplace/host_demand.hpp"
#include "topoplace/machine_conditions.hpp"

namespace topoplace::decide {

// Offers with arrays of their own.
struct KeptOffers {
    std::vector<std::int32_t> machines{}, kind_of{}, sizes{};
    std::vector<std::uint8_t> usable{};
    std::size_t bytes = 1;
    bool has_exact_room = true;  // no machine has CPUs and memory for more tasks than it is said to have

    MachineOffers view() const { return {machines, kind_of, sizes, usable, bytes}; }
};

// suitable: of each template, GPUs by their numbers on the machine, as bits.
[[nodiscard]] Fault check_suitable(const MachineConditions& conditions,
                                   std::span<const MachineConditions::Words> suitable, std::int32_t most);

// The machines with such a GPU, ascending; machines in one condition are of one kind. most: tasks on one
// machine. hosts: the CPUs and memory that limit these further; null for a job that needs none.
KeptOffers free_offers(MachineConditions& conditions, std::span<const MachineConditions::Words> suitable,
                       std::int32_t most, const HostDemand* hosts = nullptr);

// (machines, `bytes`) the free GPUs of each of these machines, as bits.
std::vector<std::uint8_t> free_gpus(MachineConditions& conditions, std::span<const std::int32_t> machines,
                                    std::size_t& bytes);

}  // namespace topoplace::decide
