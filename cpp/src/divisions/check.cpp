// Checks of the arguments of a division.
#include <algorithm>
#include <cmath>
#include <string>

#include "graph/index.hpp"
#include "topoplace/divisions.hpp"

namespace topoplace::divisions {

namespace {

constexpr std::int32_t kMostUnitsOfAMachine = 65'535;
constexpr std::size_t kMostGpusInSets = 20;

template <class Value>
std::string shown(const char* name, std::size_t i, Value value) {
    return std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(value);
}

Fault check_size(const char* name, std::size_t size, std::size_t expected) {
    if (size == expected) return {};
    return std::string(name) + " has " + std::to_string(size) + " entries, not " + std::to_string(expected);
}

Fault check_range(const char* name, std::span<const std::int32_t> numbers, std::int32_t low,
                  std::size_t end) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] < low || (numbers[i] >= 0 && index(numbers[i]) >= end)) {
            return shown(name, i, numbers[i]) + " is not in " + std::to_string(low) + ".." +
                   std::to_string(static_cast<std::int64_t>(end) - 1);
        }
    }
    return {};
}

// Each number from 0 on below `end` at most once; -1 does not count.
Fault check_once(const char* name, std::span<const std::int32_t> numbers, std::int32_t low, std::size_t end) {
    if (const Fault fault = check_range(name, numbers, low, end)) return fault;
    std::vector<std::uint8_t> seen(end, 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] < 0) continue;
        if (seen[index(numbers[i])] != 0) return shown(name, i, numbers[i]) + " is listed twice";
        seen[index(numbers[i])] = 1;
    }
    return {};
}

Fault check_units(const DivideParams& params) {
    const std::size_t tasks = params.units.size();
    if (params.unit_size < 1 || tasks % index(params.unit_size) != 0) {
        return "units has " + std::to_string(tasks) + " tasks, which are no units of " +
               std::to_string(params.unit_size);
    }
    if (const Fault fault = check_once("units", params.units, 0, tasks)) return fault;
    if (!params.stays.empty()) {
        if (const Fault fault = check_size("stays", params.stays.size(), tasks)) return fault;
    }
    if (params.order.empty()) return {};
    const std::size_t units = tasks / index(params.unit_size);
    if (const Fault fault = check_size("order", params.order.size(), units)) return fault;
    return check_once("order", params.order, 0, units);
}

Fault check_gpus(const DivideParams& params) {
    const std::size_t gpus = params.machine_of.size();
    if (const Fault fault = check_size("usable", params.usable.size(), gpus)) return fault;
    if (const Fault fault = check_range("machine_of", params.machine_of, 0, params.most.size())) return fault;
    if (const Fault fault = check_once("stays", params.stays, -1, gpus)) return fault;
    for (std::size_t i = 0; i < params.stays.size(); ++i) {
        if (params.stays[i] >= 0 && params.usable[index(params.stays[i])] == 0) {
            return shown("stays", i, params.stays[i]) + " is a GPU that the job may not use";
        }
    }
    return {};
}

Fault check_seconds(const char* name, std::span<const double> seconds) {
    for (std::size_t i = 0; i < seconds.size(); ++i) {
        if (!(seconds[i] >= 0)) return shown(name, i, seconds[i]) + " is negative or no number";
    }
    return {};
}

Fault check_limits(std::span<const double> limits) {
    if (const Fault fault = check_seconds("limits", limits)) return fault;
    for (std::size_t i = 1; i < limits.size(); ++i) {
        if (!(limits[i] < limits[i - 1]))
            return shown("limits", i, limits[i]) + " is not less than the one before";
    }
    return {};
}

// GPUs of each machine, and those of them that the job may use.
struct Counts {
    explicit Counts(const DivideParams& params) : all(params.most.size(), 0), usable(all) {
        for (std::size_t gpu = 0; gpu < params.machine_of.size(); ++gpu) {
            const std::size_t machine = index(params.machine_of[gpu]);
            ++all[machine];
            usable[machine] += params.usable[gpu] != 0 ? 1 : 0;
        }
    }

    std::vector<std::int32_t> all;
    std::vector<std::int32_t> usable;
};

// Sets where a class has them, and else a time for each number of units.
Fault check_machine(const DivideParams& params, std::size_t machine, std::int32_t gpus) {
    const auto sets = params.seconds_of_sets[index(params.class_of[machine])];
    const std::int32_t most = params.most[machine] / params.unit_size;
    if (most == 0) return {};
    const std::string where = "machine " + std::to_string(machine);
    if (!sets.empty()) {
        const bool fits = index(gpus) <= kMostGpusInSets && sets.size() == std::size_t{1} << gpus;
        if (params.unit_size != 1) return where + " has sets of GPUs, but units are of several tasks";
        return fits ? Fault{} : where + " has " + std::to_string(gpus) + " GPUs, but its class other sets";
    }
    const auto units = std::min(index(most), params.units.size() / index(params.unit_size));
    if (most > kMostUnitsOfAMachine) return where + " may have more than 65535 units";
    if (units < params.seconds_of_count.size()) return {};
    return where + " may have " + std::to_string(units) + " units, but seconds_of_count ends before";
}

Fault check_machines(const DivideParams& params) {
    const std::size_t machines = params.most.size();
    if (const Fault fault = check_size("known", params.known.size(), machines)) return fault;
    if (const Fault fault = check_size("class_of", params.class_of.size(), machines)) return fault;
    if (const Fault fault = check_range("class_of", params.class_of, 0, params.seconds_of_sets.size())) {
        return fault;
    }
    const Counts counts(params);
    for (std::size_t i = 0; i < machines; ++i) {
        if (params.most[i] < 0 || params.most[i] > counts.usable[i]) {
            return shown("most", i, params.most[i]) + " is not in 0.." + std::to_string(counts.usable[i]);
        }
        if (const Fault fault = check_machine(params, i, counts.all[i])) return fault;
    }
    return {};
}

}  // namespace

Fault check(const DivideParams& params) {
    if (const Fault fault = check_units(params)) return fault;
    if (const Fault fault = check_gpus(params)) return fault;
    if (const Fault fault = check_machines(params)) return fault;
    if (std::isnan(params.below)) return "below is no number";
    if (const Fault fault = check_limits(params.limits)) return fault;
    if (const Fault fault = check_seconds("seconds_of_count", params.seconds_of_count)) return fault;
    for (const auto seconds : params.seconds_of_sets) {
        if (const Fault fault = check_seconds("seconds_of_sets", seconds)) return fault;
    }
    return {};
}

}  // namespace topoplace::divisions
