// Lists the options of machines, once for each condition of a machine.
#include "divisions/options.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "graph/index.hpp"

namespace topoplace::divisions {

namespace {

constexpr std::uint64_t kStepsOfAMachine = 500;  // of the meter
constexpr std::uint64_t kStepsOfAnOption = 200;

// Where the items of each machine begin in a list by machine, and the number of all.
template <class MachineOf>
std::vector<std::int32_t> firsts(std::size_t machines, std::size_t items, const MachineOf& machine_of) {
    std::vector<std::int32_t> first(machines + 1, 0);
    for (std::size_t i = 0; i < items; ++i) ++first[index(machine_of(i)) + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    return first;
}

}  // namespace

Machines::Machines(const DivideParams& params, WorkMeter& meter)
    : params_(params),
      num_units_(static_cast<std::int32_t>(params.units.size()) / params.unit_size),
      is_kept_(params.machine_of.size(), 0),
      kind_of_(params.most.size(), -1) {
    list_gpus();
    find_homes();
    for (std::int32_t machine = 0; index(machine) < params.most.size(); ++machine) {
        if (params.most[index(machine)] < params.unit_size) continue;
        const std::int32_t known = num_kinds();
        add(machine);
        const std::size_t options = num_kinds() > known ? options_.back().size() : 0;
        if (meter.spend(kStepsOfAMachine + kStepsOfAnOption * options)) return;
    }
}

void Machines::list_gpus() {
    const auto machine_of = params_.machine_of;
    first_gpu_ = firsts(params_.most.size(), machine_of.size(), [&](std::size_t i) { return machine_of[i]; });
    gpus_.resize(machine_of.size());
    std::vector<std::int32_t> next(first_gpu_.begin(), first_gpu_.end() - 1);
    for (std::size_t gpu = 0; gpu < machine_of.size(); ++gpu) {
        gpus_[index(next[index(machine_of[gpu])]++)] = static_cast<std::int32_t>(gpu);
    }
    for (const std::int32_t gpu : params_.stays) {
        if (gpu >= 0) is_kept_[index(gpu)] = 1;
    }
}

void Machines::find_homes() {
    for (std::int32_t unit = 0; !params_.stays.empty() && unit < num_units_; ++unit) {
        const std::int32_t home = home_of(unit);
        if (home >= 0) homes_.push_back({counts_[index(home)].first, counts_[index(home)].second, unit});
    }
    std::sort(homes_.begin(), homes_.end(), [](const Home& a, const Home& b) {
        return std::tuple(a.machine, -a.stay, a.unit) < std::tuple(b.machine, -b.stay, b.unit);
    });
    first_home_ =
        firsts(params_.most.size(), homes_.size(), [&](std::size_t i) { return homes_[i].machine; });
    for (const Home& home : homes_) home_units_.push_back(home.unit);
}

// Counts the tasks of a unit that may stay by machine; returns the place of the first machine with the most,
// -1 for none.
std::int32_t Machines::home_of(std::int32_t unit) {
    counts_.clear();
    for (std::int32_t i = unit * params_.unit_size; i < (unit + 1) * params_.unit_size; ++i) {
        const std::int32_t gpu = params_.stays[index(params_.units[index(i)])];
        if (gpu < 0) continue;
        const std::int32_t machine = params_.machine_of[index(gpu)];
        const auto known = std::find_if(counts_.begin(), counts_.end(),
                                        [&](const auto& one) { return one.first == machine; });
        if (known == counts_.end()) {
            counts_.emplace_back(machine, 1);
        } else {
            ++known->second;
        }
    }
    const auto most = std::max_element(counts_.begin(), counts_.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return counts_.empty() ? -1 : static_cast<std::int32_t>(most - counts_.begin());
}

// The GPUs that have a flag, as bits.
static std::int64_t mask_of(std::span<const std::int32_t> gpus, std::span<const std::uint8_t> flags) {
    std::int64_t mask = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        mask |= static_cast<std::int64_t>(flags[index(gpus[i])] != 0) << i;
    }
    return mask;
}

void Machines::add(std::int32_t machine) {
    const auto of_class = params_.class_of[index(machine)];
    const bool by_sets = !params_.seconds_of_sets[index(of_class)].empty();
    Key key{by_sets ? of_class : -1, most_units(machine)};
    if (by_sets) {
        const auto own = gpus(machine);
        key.insert(key.end(), {mask_of(own, params_.usable), mask_of(own, is_kept_)});
    } else {
        for (auto i = first_home_[index(machine)]; i < first_home_[index(machine) + 1]; ++i) {
            key.push_back(homes_[index(i)].stay);
        }
    }
    const auto [known, is_new] = kinds_.try_emplace(key, num_kinds());
    if (is_new) {
        options_.push_back(
            by_sets ? of_sets(machine, static_cast<std::uint64_t>(key[2]), static_cast<std::uint64_t>(key[3]))
                    : of_counts(key, most_units(machine)));
    }
    kind_of_[index(machine)] = known->second;
    machines_.push_back(machine);
}

std::int32_t Machines::most_units(std::int32_t machine) const {
    return std::min(params_.most[index(machine)] / params_.unit_size, num_units_);
}

std::vector<Option> Machines::of_sets(std::int32_t machine, std::uint64_t usable, std::uint64_t kept) const {
    const auto seconds = params_.seconds_of_sets[index(params_.class_of[index(machine)])];
    const std::int32_t most = most_units(machine);
    std::vector<Option> found;
    for (std::uint64_t set = 1; set < seconds.size(); ++set) {
        if ((set & ~usable) != 0 || std::popcount(set) > most) continue;
        found.push_back(
            {std::popcount(set), std::popcount(set & kept), seconds[static_cast<std::size_t>(set)], set});
    }
    std::sort(found.begin(), found.end(), [](const Option& a, const Option& b) {
        return std::tuple(a.units, -a.stay, a.seconds, a.gpus) <
               std::tuple(b.units, -b.stay, b.seconds, b.gpus);
    });
    return found;
}

// home: a key, with the tasks that stay of each unit from its third entry on.
std::vector<Option> Machines::of_counts(const Key& home, std::int32_t most) const {
    std::vector<Option> found;
    std::int32_t stay = 0;
    for (std::int32_t units = 1; units <= most; ++units) {
        if (index(units) + 1 < home.size()) stay += static_cast<std::int32_t>(home[index(units) + 1]);
        found.push_back({units, stay, params_.seconds_of_count[index(units)], 0});
    }
    return found;
}

std::span<const std::int32_t> Machines::gpus(std::int32_t machine) const {
    const auto first = index(first_gpu_[index(machine)]);
    return std::span(gpus_).subspan(first, index(first_gpu_[index(machine) + 1]) - first);
}

std::span<const std::int32_t> Machines::units_at_home(std::int32_t machine) const {
    const auto first = index(first_home_[index(machine)]);
    return std::span(home_units_).subspan(first, index(first_home_[index(machine) + 1]) - first);
}

}  // namespace topoplace::divisions
