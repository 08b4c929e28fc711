// What each machine may have of a job. Machines in the same condition share their options.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "topoplace/divisions.hpp"

namespace topoplace::divisions {

struct Option {
    std::int32_t units = 0;
    std::int32_t stay = 0;   // tasks that need not move
    double seconds = 0;      // at the least
    std::uint64_t gpus = 0;  // as a bit mask of the machine's; 0: any
};

class Machines {
  public:
    // Incomplete if the meter stops.
    Machines(const DivideParams& params, WorkMeter& meter);

    // Those that may have units, ascending.
    std::span<const std::int32_t> with_options() const { return machines_; }
    std::int32_t kind_of(std::int32_t machine) const { return kind_of_[static_cast<std::size_t>(machine)]; }
    std::int32_t num_kinds() const { return static_cast<std::int32_t>(options_.size()); }
    // By units, then those with which the most tasks stay, the fastest and the first GPUs.
    std::span<const Option> options(std::int32_t kind) const {
        return options_[static_cast<std::size_t>(kind)];
    }
    std::span<const std::int32_t> gpus(std::int32_t machine) const;
    // The units with the most of their tasks on this machine; those with more of them first.
    std::span<const std::int32_t> units_at_home(std::int32_t machine) const;

  private:
    using Key = std::vector<std::int64_t>;

    void list_gpus();
    void find_homes();
    std::int32_t home_of(std::int32_t unit);
    void add(std::int32_t machine);
    std::vector<Option> of_sets(std::int32_t machine, std::uint64_t usable, std::uint64_t kept) const;
    std::vector<Option> of_counts(const Key& home, std::int32_t most) const;
    std::int32_t most_units(std::int32_t machine) const;

    struct Home {
        std::int32_t machine = 0;
        std::int32_t stay = 0;  // how many tasks
        std::int32_t unit = 0;
    };

    const DivideParams& params_;
    std::int32_t num_units_;
    std::vector<std::int32_t> gpus_;       // by machine
    std::vector<std::int32_t> first_gpu_;  // of each machine, and their number
    std::vector<std::uint8_t> is_kept_;    // of each GPU: may a task stay there?
    std::vector<Home> homes_;              // by machine
    std::vector<std::int32_t> home_units_;
    std::vector<std::int32_t> first_home_;
    std::vector<std::int32_t> machines_;
    std::vector<std::int32_t> kind_of_;
    std::vector<std::vector<Option>> options_;
    std::map<Key, std::int32_t> kinds_;
    std::vector<std::pair<std::int32_t, std::int32_t>>
        counts_;  // scratch: machines and their tasks of a unit
};

}  // namespace topoplace::divisions
