// Adds one machine after the other, and then goes back along what was picked.
#include "divisions/program.hpp"

#include <algorithm>

#include "graph/index.hpp"

namespace topoplace::divisions {

namespace {

constexpr double kEqual = 1 + 1e-9;
constexpr std::int64_t kNone = -(std::int64_t{1} << 62);
constexpr std::uint64_t kStepsOfAUnit = 8;  // of the meter

}  // namespace

Program::Program(const DivideParams& params, const Machines& machines, WorkMeter& meter)
    : machines_(machines),
      known_(params.known),
      meter_(meter),
      num_units_(params.units.size() / index(params.unit_size)),
      num_tasks_(static_cast<std::int64_t>(params.units.size())),
      scale_(static_cast<std::int64_t>(params.most.size()) + 1),
      within_(index(machines.num_kinds())),
      picks_(machines.with_options().size() * (num_units_ + 1)) {}

std::optional<Parts> Program::solve(double limit) {
    keep_within(limit);
    best_.assign(num_units_ + 1, kNone);
    best_[0] = 0;
    for (std::size_t place = 0; place < machines_.with_options().size(); ++place) {
        if (!add(place)) return {};
    }
    if (best_[num_units_] <= -scale_) return {};
    return parts();
}

void Program::keep_within(double limit) {
    for (std::int32_t kind = 0; kind < machines_.num_kinds(); ++kind) {
        auto& kept = within_[index(kind)];
        kept.clear();
        for (const Option& option : machines_.options(kind)) {
            const bool is_first = kept.empty() || kept.back().units != option.units;
            if (is_first && option.seconds <= limit * kEqual) kept.push_back(option);
        }
    }
}

// Returns false if the meter has stopped.
bool Program::add(std::size_t place) {
    const std::int32_t machine = machines_.with_options()[place];
    const auto& options = within_[index(machines_.kind_of(machine))];
    found_ = best_;
    row_ = picks_.data() + place * (num_units_ + 1);
    std::fill_n(row_, num_units_ + 1, std::uint16_t{0});
    const std::int64_t is_new = known_[index(machine)] != 0 ? 0 : 1;
    for (const Option& option : options) add_option(option, option.stay * scale_ - is_new);
    std::swap(best_, found_);
    return !meter_.spend(kStepsOfAUnit * (1 + options.size()) * (num_units_ + 1));
}

void Program::add_option(const Option& option, std::int64_t gain) {
    const std::size_t units = index(option.units);
    for (std::size_t total = units; total <= num_units_; ++total) {
        const std::int64_t tried = best_[total - units] + gain;
        const bool is_better = tried > found_[total];
        found_[total] = is_better ? tried : found_[total];
        row_[total] = is_better ? static_cast<std::uint16_t>(units) : row_[total];
    }
}

Parts Program::parts() const {
    const std::int64_t best = best_[num_units_];
    const std::int64_t stay = best > 0 ? (best + scale_ - 1) / scale_ : 0;
    Parts found{.moves = num_tasks_ - stay};
    std::size_t left = num_units_;
    for (std::size_t place = machines_.with_options().size(); place-- > 0;) {
        const std::int32_t units = picks_[place * (num_units_ + 1) + left];
        if (units == 0) continue;
        const std::int32_t machine = machines_.with_options()[place];
        const auto& options = within_[index(machines_.kind_of(machine))];
        const auto option = std::find_if(options.begin(), options.end(),
                                         [&](const Option& one) { return one.units == units; });
        found.parts.push_back({machine, units, option->gpus});
        left -= index(units);
    }
    std::reverse(found.parts.begin(), found.parts.end());
    return found;
}

}  // namespace topoplace::divisions
