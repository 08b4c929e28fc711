// Divisions of a job among machines, by what one machine may have of it.
//
// A job consists of units of equal size, each of which one machine has as a whole. What a machine has tells
// how fast the job can be at the most: by how many units, or by which of its GPUs where these are not all
// alike. For a limit on the seconds of every machine, this is a multiple-choice knapsack: of each machine one
// option or none, together all units, so that the most tasks stay on their GPU, and then that the fewest
// machines are added to those of the job. A dynamic program over machines and units solves it exactly.
//
// The entry point is `divide`; cpp/src/divisions/divide.cpp describes its method. Every product of tasks and
// machines must fit 62 bits.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::divisions {

struct DivideParams {
    std::span<const std::int32_t> units{};  // units x `unit_size`: the tasks of each; every task is in one
    std::int32_t unit_size = 1;
    std::span<const std::int32_t> machine_of{};  // of each GPU
    std::span<const std::uint8_t> usable{};      // of each GPU: may the job use it?
    std::span<const std::int32_t> most{};        // tasks of each machine, no more than it has usable GPUs
    std::span<const std::int32_t> stays{};       // GPU on which each task may stay, -1: none; empty: none may
    std::span<const std::uint8_t> known{};       // of each machine: is it one of the job?
    std::span<const std::int32_t> order{};       // in which units that move get places; empty: ascending
    std::span<const std::int32_t> class_of{};    // of each machine
    // Of each class: the seconds with tasks on each set of a machine's GPUs, as bit masks of the ascending
    // GPUs; empty where only the number of units counts. Sets need units of one task.
    std::span<const std::span<const double>> seconds_of_sets{};
    std::span<const double> seconds_of_count{};  // by number of units, from 0
    std::span<const double> limits{};  // on the seconds of a machine, descending; empty: all that differ
    double below = std::numeric_limits<double>::infinity();  // what those are less than
    bool fastest = false;                                    // only the least limit that can be kept
    std::uint64_t most_steps = 100'000'000;                  // units x options of machines x limits
    StopCondition stop{};
};

struct Division {
    std::int64_t moves = 0;            // tasks that do not stay
    double seconds = 0;                // the limit: no machine takes longer
    std::vector<std::int32_t> gpus{};  // of each task; empty if a faster one has as few moves
};

struct DivideResult {
    std::vector<Division> found{};  // the largest limit first, so that moves do not decrease
    bool too_many = false;          // more than `most_steps`: nothing was searched
    bool complete = true;           // false: the search was stopped before the least limit
    std::uint64_t nodes = 0;
};

// The first argument that is out of range.
Fault check(const DivideParams& params);

// The divisions with the fewest moves for each limit, down to the least that can be kept. The parameters pass
// `check`.
DivideResult divide(const DivideParams& params);

// Checks one division with GPUs by the definition alone: a usable GPU for each task, units whole, no machine
// over its room or slower than the limit, and `moves` tasks that do not stay. It does not check that these
// are the fewest.
Fault verify_division(const DivideParams& params, const Division& division);

}  // namespace topoplace::divisions
