// Levels, checked once.
#include "topoplace/gang_levels.hpp"

#include <algorithm>

#include "graph/index.hpp"
#include "job_traffic/checks.hpp"

namespace topoplace::decide {
namespace {

Fault check_uplinks(std::span<const std::int64_t> rows, std::int32_t machines,
                    const ports::PortNetwork& network) {
    if (rows.size() % 2 != 0) return "uplinks is not in rows of two";
    for (std::size_t i = 0; i < rows.size(); i += 2) {
        if (rows[i] < 0 || rows[i] >= machines || (i > 0 && rows[i] < rows[i - 2]))
            return traffic::wrong("uplinks", i, rows[i], "not a machine, ascending");
        if (rows[i + 1] < 0 || rows[i + 1] >= network.num_ports())
            return traffic::wrong("uplinks", i + 1, rows[i + 1], "not a port");
    }
    return std::nullopt;
}

template <class T>
std::vector<T> copied(std::span<const T> values) {
    return {values.begin(), values.end()};
}

}  // namespace

Fault check(const GangLevelParams& level, std::int32_t machines, const ports::PortNetwork& network) {
    const std::size_t count = index(machines);
    if (auto fault = traffic::check_size("codes", level.codes.size(), count)) return fault;
    if (auto fault = traffic::check_size("domains", level.domains.size(), count)) return fault;
    if (auto fault = traffic::check_size("uplink", level.uplink.size(), level.uplink.empty() ? 0 : count))
        return fault;
    for (std::size_t i = 0; i < level.uplink.size(); ++i) {
        const bool is_speed = level.uplink[i] >= 1e-18 && level.uplink[i] <= 1e18;
        if (!is_speed && level.uplink[i] != 0.0)
            return traffic::wrong("uplink", i, level.uplink[i], "neither 0 nor in 1e-18..1e18");
    }
    return check_uplinks(level.uplinks, machines, network);
}

GangLevels::GangLevels(std::span<const GangLevelParams> levels, bool meet_anywhere) : own_class_{0} {
    for (const GangLevelParams& one : levels) {
        levels_.push_back({copied(one.codes), copied(one.domains), copied(one.uplink), copied(one.uplinks),
                           one.is_switched});
        own_class_.push_back(one.is_switched ? 1 : 0);
        for (std::size_t i = 1; i < one.uplinks.size(); i += 2)
            num_ports_ = std::max(num_ports_, one.uplinks[i] + 1);
    }
    own_class_.pop_back();  // that of machines
    bound_class_ = meet_anywhere ? std::vector<std::int32_t>(own_class_.size(), 1) : own_class_;
}

LevelCodes GangLevels::codes() const {
    LevelCodes found;
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) found.emplace_back(levels_[i].codes);
    return found;
}

double GangLevels::others_on_uplinks(std::size_t level, std::int32_t machine, const ports::FlowCounts& others,
                                     double most) const {
    const std::vector<std::int64_t>& rows = levels_[level].uplinks;
    const auto row = [&](std::size_t i) { return rows[2 * i]; };
    std::size_t low = 0, high = rows.size() / 2;
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        (row(middle) < machine ? low : high) = row(middle) < machine ? middle + 1 : middle;
    }
    double sum = 0.0;
    for (; low < rows.size() / 2 && row(low) == machine; ++low) {
        const auto hop = static_cast<ports::Hop>(2 * rows[2 * low + 1]);
        sum += std::max(others.counted(hop, most), others.counted(hop + 1, most));
    }
    return sum;
}

std::vector<std::size_t> GangLevels::beside_no_others(std::size_t level,
                                                      std::span<const std::int32_t> machines,
                                                      const ports::FlowCounts& others, double most) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < machines.size(); ++i) {
        std::size_t one = level;
        while (one < size() && others_on_uplinks(one, machines[i], others, most) == 0.0) ++one;
        if (one >= size()) found.push_back(i);
    }
    return found;
}

}  // namespace topoplace::decide
