// The dynamic program over machines and units for one limit on the seconds of a machine.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "divisions/options.hpp"

namespace topoplace::divisions {

// What a machine has.
struct Part {
    std::int32_t machine = 0;
    std::int32_t units = 0;
    std::uint64_t gpus = 0;  // as a bit mask of the machine's; 0: any
};

struct Parts {
    std::int64_t moves = 0;
    std::vector<Part> parts{};  // the machines ascending
};

class Program {
  public:
    Program(const DivideParams& params, const Machines& machines, WorkMeter& meter);

    // The division with the fewest moves in which no machine takes longer, and of those the one with the
    // fewest new machines; none if there is no division, or the meter has stopped.
    std::optional<Parts> solve(double limit);

  private:
    void keep_within(double limit);
    bool add(std::size_t place);
    void add_option(const Option& option, std::int64_t gain);
    Parts parts() const;

    const Machines& machines_;
    std::span<const std::uint8_t> known_;
    WorkMeter& meter_;
    std::size_t num_units_;
    std::int64_t num_tasks_;
    std::int64_t scale_;                       // of a task that stays, so that it outweighs all new machines
    std::vector<std::vector<Option>> within_;  // of each kind, the best option for each number of units
    std::vector<std::int64_t> best_;    // by number of units: tasks that stay, scaled, less new machines
    std::vector<std::int64_t> found_;   // the same with one more machine
    std::vector<std::uint16_t> picks_;  // by machine and number of units: the units of its option
    std::uint16_t* row_ = nullptr;      // of the machine that is added
};

}  // namespace topoplace::divisions
