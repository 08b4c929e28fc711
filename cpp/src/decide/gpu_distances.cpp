// Two look-ups of a machine, then one level after the other.
#include "topoplace/gpu_distances.hpp"

#include <algorithm>
#include <cmath>

#include "graph/index.hpp"
#include "job_traffic/checks.hpp"

namespace topoplace::decide {
namespace {

Fault check_level(const DistanceLevel& level, std::size_t machines, std::size_t locals) {
    const auto ports = static_cast<std::size_t>(std::sqrt(static_cast<double>(level.joined.size())) + 0.5);
    if (auto fault = traffic::check_size("domain", level.domain.size(), machines)) return fault;
    if (!level.rail.empty()) {
        if (auto fault = traffic::check_size("rail", level.rail.size(), locals)) return fault;
    }
    if (auto fault = traffic::check_size("port", level.port.size(), locals)) return fault;
    if (auto fault = traffic::check_size("joined", level.joined.size(), ports * ports)) return fault;
    return traffic::check_range("port", level.port, 0, ports);
}

}  // namespace

Fault GpuDistances::check(const GpuDistancesParams& params) {
    if (auto fault = traffic::check_range("template_of", params.template_of, 0, params.sizes.size()))
        return fault;
    if (auto fault = traffic::check_size("inside", params.inside.size(), params.sizes.size())) return fault;
    std::size_t locals = 0;
    for (std::size_t i = 0; i < params.sizes.size(); ++i) {
        if (params.sizes[i] < 0) return traffic::wrong("sizes", i, params.sizes[i], "below 0");
        const std::size_t size = index(params.sizes[i]);
        if (auto fault = traffic::check_size("inside", params.inside[i].size(), size * size)) return fault;
        locals += size;
    }
    std::int64_t gpus = 0;
    for (const std::int32_t one : params.template_of) gpus += params.sizes[index(one)];
    if (gpus > INT32_MAX) return "template_of has more than 2147483647 GPUs";
    for (const DistanceLevel& level : params.levels) {
        if (auto fault = check_level(level, params.template_of.size(), locals)) return fault;
    }
    return std::nullopt;
}

GpuDistances::GpuDistances(const GpuDistancesParams& params)
    : template_of_(params.template_of.begin(), params.template_of.end()),
      first_of_{0},
      beyond_(params.beyond) {
    for (const std::int32_t one : template_of_)
        first_of_.push_back(first_of_.back() + params.sizes[index(one)]);
    std::size_t locals = 0;
    for (std::size_t i = 0; i < params.sizes.size(); ++i) {
        first_local_.push_back(locals);
        locals += index(params.sizes[i]);
        inside_.emplace_back(params.inside[i].begin(), params.inside[i].end());
    }
    for (const DistanceLevel& level : params.levels) {
        levels_.push_back(
            {.domain = {level.domain.begin(), level.domain.end()},
             .rail = {level.rail.begin(), level.rail.end()},
             .port = {level.port.begin(), level.port.end()},
             .joined = {level.joined.begin(), level.joined.end()},
             .ports = static_cast<std::size_t>(std::sqrt(static_cast<double>(level.joined.size())) + 0.5),
             .distance = level.distance});
    }
}

GpuDistances::Place GpuDistances::place_of(std::int32_t gpu) const {
    const auto after = std::ranges::upper_bound(first_of_, gpu);
    const auto machine = static_cast<std::size_t>(after - first_of_.begin()) - 1;
    return {machine, first_local_[index(template_of_[machine])] + index(gpu - first_of_[machine])};
}

double GpuDistances::between(std::int32_t u, std::int32_t v) const {
    const Place here = place_of(u), there = place_of(v);
    if (here.machine == there.machine) {
        const std::size_t of = index(template_of_[here.machine]);
        const std::size_t size = index(first_of_[here.machine + 1] - first_of_[here.machine]);
        return inside_[of][(here.local - first_local_[of]) * size + there.local - first_local_[of]];
    }
    for (const Level& level : levels_) {
        const std::int32_t domain = level.domain[here.machine];
        if (domain < 0 || domain != level.domain[there.machine]) continue;
        if (!level.rail.empty() && level.rail[here.local] != level.rail[there.local]) continue;
        if (level.joined[index(level.port[here.local]) * level.ports + index(level.port[there.local])] != 0)
            return level.distance;
    }
    return beyond_;
}

}  // namespace topoplace::decide
