// Offers of free GPUs, made once for each condition of machines.
#include "topoplace/free_offers.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::decide {
namespace {

using Words = MachineConditions::Words;

Words common(const Words& one, const Words& other) {
    Words both(std::min(one.size(), other.size()), 0);
    for (std::size_t i = 0; i < both.size(); ++i) both[i] = one[i] & other[i];
    return both;
}

// The usable GPUs of each kind of machines; kind_of: the kind of each condition.
std::vector<Words> kinds_of(const MachineConditions& conditions, std::span<const Words> suitable,
                            std::span<std::int32_t> kind_of) {
    std::vector<Words> kinds;
    for (std::int32_t number = 0; number < conditions.num_conditions(); ++number) {
        if (conditions.machines(number).empty()) continue;
        const MachineConditions::Condition& one = conditions.condition(number);
        kind_of[index(number)] = static_cast<std::int32_t>(kinds.size());
        kinds.push_back(common(one.free, suitable[index(one.machine_template)]));
    }
    return kinds;
}

// Of each kind the bytes of its GPUs, as few as the last of them needs.
void keep_usable(const std::vector<Words>& kinds, KeptOffers& offers) {
    for (const Words& usable : kinds) {
        for (std::size_t i = 0; i < usable.size(); ++i) {
            const auto bits = static_cast<std::size_t>(std::bit_width(usable[i]));
            if (bits > 0) offers.bytes = std::max(offers.bytes, 8 * i + (bits + 7) / 8);
        }
    }
    offers.usable.assign(kinds.size() * offers.bytes, 0);
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        for (std::size_t i = 0; i < std::min(offers.bytes, 8 * kinds[kind].size()); ++i) {
            const std::uint64_t byte = kinds[kind][i / 8] >> (8 * (i % 8)) & 0xFFU;
            offers.usable[kind * offers.bytes + i] = static_cast<std::uint8_t>(byte);
        }
    }
}

std::int32_t size_of(const Words& usable, std::int32_t most) {
    std::int32_t count = 0;
    for (const std::uint64_t word : usable) count += std::popcount(word);
    return std::min(count, most);
}

// The tasks for which the CPUs and memory of a machine suffice.
class HostLimits {
  public:
    HostLimits(const MachineConditions& conditions, const HostDemand* job)
        : hosts_(conditions.state().hosts()), job_(hosts_.free().empty() ? nullptr : job) {}

    bool limit() const { return job_ != nullptr; }
    std::int32_t most(std::int32_t machine) const {
        return hosts_.accepts(machine) ? hosted(machine, false) : 0;
    }
    bool is_exact(std::int32_t machine, std::size_t gpus) const {
        const auto all = static_cast<std::int32_t>(gpus);
        return std::min(hosted(machine, false), all) == std::min(hosted(machine, true), all);
    }

  private:
    std::int32_t hosted(std::int32_t machine, bool at_best) const {
        const HostState::Amounts& free = hosts_.free()[index(machine)];
        return static_cast<std::int32_t>(tasks_hosted(*job_, {free[0], free[1]}, at_best));
    }

    const HostState& hosts_;
    const HostDemand* job_;
};

}  // namespace

Fault check_suitable(const MachineConditions& conditions, std::span<const Words> suitable,
                     std::int32_t most) {
    if (most < 1) return "most = " + std::to_string(most) + ": below 1";
    if (suitable.size() == index(conditions.num_templates())) return std::nullopt;
    return "suitable names GPUs of " + std::to_string(suitable.size()) + " templates, there are " +
           std::to_string(conditions.num_templates());
}

KeptOffers free_offers(MachineConditions& conditions, std::span<const Words> suitable, std::int32_t most,
                       const HostDemand* hosts) {
    TOPOPLACE_ASSERT(!check_suitable(conditions, suitable, most));
    conditions.refresh();
    std::vector<std::int32_t> kind_of(index(conditions.num_conditions()), kAbsent), sizes;
    const std::vector<Words> kinds = kinds_of(conditions, suitable, kind_of);
    for (const Words& usable : kinds) sizes.push_back(size_of(usable, most));
    KeptOffers offers;
    const HostLimits limits(conditions, hosts);
    for (std::int32_t machine = 0; machine < conditions.num_machines(); ++machine) {
        const std::int32_t kind = kind_of[index(conditions.condition_of(machine))];
        std::int32_t size = sizes[index(kind)];
        if (limits.limit()) {
            size = std::min(size, limits.most(machine));
            offers.has_exact_room &= limits.is_exact(machine, conditions.gpus_of(machine).size());
        }
        if (size == 0) continue;
        offers.machines.push_back(machine);
        offers.kind_of.push_back(kind);
        offers.sizes.push_back(size);
    }
    keep_usable(kinds, offers);
    return offers;
}

std::vector<std::uint8_t> free_gpus(MachineConditions& conditions, std::span<const std::int32_t> machines,
                                    std::size_t& bytes) {
    conditions.refresh();
    const auto free_of = [&](std::int32_t machine) -> const Words& {
        return conditions.condition(conditions.condition_of(machine)).free;
    };
    std::size_t words = 1;
    for (const std::int32_t machine : machines) words = std::max(words, free_of(machine).size());
    bytes = 8 * words;
    std::vector<std::uint8_t> found(machines.size() * bytes, 0);
    for (std::size_t i = 0; i < machines.size(); ++i) {
        const Words& own = free_of(machines[i]);
        for (std::size_t byte = 0; byte < 8 * own.size(); ++byte)
            found[i * bytes + byte] = static_cast<std::uint8_t>(own[byte / 8] >> (byte % 8 * 8));
    }
    return found;
}

}  // namespace topoplace::decide
