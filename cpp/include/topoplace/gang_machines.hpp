// The machines of a topology as a gang sees them, and what they offer to it: the GPUs of each, and the
// adapters by which these send to other machines.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"

namespace topoplace::decide {

struct GangMachinesParams {
    std::span<const std::int64_t> gpu_ends{};  // of each machine: its GPUs and those of machines before it
    std::span<const std::int32_t> gpus{};      // machine after machine, by their numbers there
    std::span<const std::int32_t> domain{};    // of each GPU: those of equal numbers are joined by rings
    std::span<const std::int32_t> adapter{};   // of each GPU: a port; -1 without one
    std::span<const double> way_out{};         // of each GPU: GB/s into the network
    std::span<const double> gb_per_s{};        // of each port
};

// The first parameter that is out of range.
Fault check(const GangMachinesParams& params);

class GangMachines {
  public:
    // Copies parameters that pass `check`.
    explicit GangMachines(const GangMachinesParams& params);

    struct Gpu {
        std::int32_t domain = 0;
        std::int32_t adapter = -1;
        double way_out = 0.0;   // GB/s
        double gb_per_s = 0.0;  // of the adapter
    };

    std::int32_t size() const { return static_cast<std::int32_t>(ends_.size()) - 1; }
    std::span<const std::int32_t> gpus_of(std::int32_t machine) const {
        const auto begin = ends_[static_cast<std::size_t>(machine)];
        return {gpus_.data() + begin, ends_[static_cast<std::size_t>(machine) + 1] - begin};
    }
    const Gpu& gpu(std::int32_t number) const { return described_[static_cast<std::size_t>(number)]; }

  private:
    std::vector<std::size_t> ends_;  // and 0 before them
    std::vector<std::int32_t> gpus_;
    std::vector<Gpu> described_;
};

// Machines of one kind offer the same GPUs.
struct MachineOffers {
    std::span<const std::int32_t> machines{};  // different ones
    std::span<const std::int32_t> kind_of{};   // of each of these
    std::span<const std::int32_t> sizes{};     // of each of these: the most tasks, each on one of its GPUs
    std::span<const std::uint8_t> usable{};    // (kinds, bytes) GPUs by their numbers on the machine, as bits
    std::size_t bytes = 1;                     // of each kind

    // Calls `take` with the number on its machine of each GPU that a kind offers, ascending.
    template <class Take>
    void each_usable(std::int32_t kind, const Take& take) const {
        const auto bits = usable.subspan(static_cast<std::size_t>(kind) * bytes, bytes);
        for (std::size_t i = 0; i < 8 * bytes; ++i) {
            if ((bits[i / 8] >> (i % 8) & 1U) != 0) take(i);
        }
    }
};

// The first thing out of range.
Fault check(const MachineOffers& offers, const GangMachines& machines);

// The domain of each machine, for each level around machines, the outermost first.
using LevelCodes = std::vector<std::span<const std::int64_t>>;

Fault check(const LevelCodes& codes, const GangMachines& machines);

}  // namespace topoplace::decide
