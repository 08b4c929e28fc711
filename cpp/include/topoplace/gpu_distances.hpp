// The distance between any two GPUs of a cluster: inside a machine that of its template, between machines
// that of the first level at which both GPUs have a path.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"

namespace topoplace::decide {

struct DistanceLevel {
    std::span<const std::int32_t> domain{};  // of each machine; -1: none
    std::span<const std::int32_t> rail{};    // of each GPU of a template: only equal ones meet; empty: all do
    std::span<const std::int32_t> port{};    // of each GPU of a template
    std::span<const std::uint8_t> joined{};  // (ports, ports) 1 where two ports have a path
    double distance = 0.0;
};

struct GpuDistancesParams {
    std::span<const std::int32_t> template_of{};  // of each machine; its GPUs follow those of the one before
    std::span<const std::int32_t> sizes{};        // GPUs of each template
    std::vector<std::span<const double>> inside{};  // (GPUs, GPUs) of each template
    std::vector<DistanceLevel> levels{};            // the innermost first
    double beyond = 0.0;                            // of GPUs that meet at no level
};

class GpuDistances {
  public:
    // The first parameter that is out of range.
    [[nodiscard]] static Fault check(const GpuDistancesParams& params);
    // Copies parameters that pass `check`.
    explicit GpuDistances(const GpuDistancesParams& params);

    std::int32_t num_gpus() const { return first_of_.back(); }
    // Infinity for two GPUs without a path.
    double between(std::int32_t u, std::int32_t v) const;

  private:
    struct Place {
        std::size_t machine = 0;
        std::size_t local = 0;  // among the GPUs of all templates
    };
    struct Level {
        std::vector<std::int32_t> domain{}, rail{}, port{};
        std::vector<std::uint8_t> joined{};
        std::size_t ports = 0;
        double distance = 0.0;
    };
    Place place_of(std::int32_t gpu) const;

    std::vector<std::int32_t> template_of_;
    std::vector<std::int32_t> first_of_;  // GPU of each machine, and their number
    std::vector<std::size_t> first_local_;
    std::vector<std::vector<double>> inside_;
    std::vector<Level> levels_;
    double beyond_;
};

}  // namespace topoplace::decide
