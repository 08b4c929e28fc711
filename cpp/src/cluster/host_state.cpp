// Taking and giving back the CPUs, memory and drives of machines.
#include "topoplace/host_state.hpp"

#include <algorithm>
#include <utility>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace {

Fault HostState::check(std::int32_t num_machines, std::span<const Amounts> capacity) {
    if (!capacity.empty() && capacity.size() != index(num_machines))
        return "capacity: one entry a machine is needed, or none";
    for (const Amounts& amounts : capacity) {
        if (*std::min_element(amounts.begin(), amounts.end()) < 0) return "capacity: an amount is below 0";
    }
    return std::nullopt;
}

HostState::HostState(std::int32_t num_machines, std::vector<Amounts> capacity)
    : free_(std::move(capacity)), num_processes_(index(num_machines)), withdrawn_(index(num_machines)) {
    TOPOPLACE_ASSERT(!check(num_machines, free_));
}

bool HostState::has(const HostNeeds& needs, bool runs) {
    if (needs.empty()) return true;
    const auto accepted = [this, runs](std::int32_t machine) {
        return runs ? machine >= 0 && machine < num_machines() : accepts(machine);
    };
    const bool all_accept =
        std::all_of(needs.processes.begin(), needs.processes.end(),
                    [&](const HostNeeds::Process& process) { return accepted(process.machine); }) &&
        std::all_of(needs.drives.begin(), needs.drives.end(), accepted);
    if (!all_accept) return false;
    const bool enough = add_all(needs, -1);
    add_all(needs, 1);
    return enough;
}

void HostState::take(const HostNeeds& needs) noexcept {
    [[maybe_unused]] const bool enough = add_all(needs, -1);
    TOPOPLACE_ASSERT(enough);
}

void HostState::give_back(const HostNeeds& needs) noexcept { add_all(needs, 1); }

void HostState::set_withdrawal(std::int32_t machine, Withdrawal now) noexcept {
    TOPOPLACE_ASSERT(machine >= 0 && machine < num_machines());
    withdrawn_[index(machine)] = now;
}

bool HostState::accepts(std::int32_t machine) const {
    return machine >= 0 && machine < num_machines() && withdrawal(machine).in_service();
}

// Adds the amounts `sign` times to what is free, and returns whether nothing is below 0 afterwards.
bool HostState::add(std::int32_t machine, const Amounts& amounts, std::int64_t sign) noexcept {
    if (free_.empty()) return true;
    Amounts& free = free_[index(machine)];
    for (std::size_t column = 0; column < free.size(); ++column) free[column] += sign * amounts[column];
    return *std::min_element(free.begin(), free.end()) >= 0;
}

bool HostState::add_all(const HostNeeds& needs, std::int64_t sign) noexcept {
    bool enough = true;
    for (const HostNeeds::Process& process : needs.processes) {
        enough = add(process.machine, {process.cpus, process.megabytes, 0}, sign) && enough;
        num_processes_[index(process.machine)] -= sign;
    }
    for (const std::int32_t machine : needs.drives) enough = add(machine, {0, 0, 1}, sign) && enough;
    return enough;
}

}  // namespace topoplace
