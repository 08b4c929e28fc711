// Divisions of a gang by what each machine can have of it: how long it takes then is known from the limits of
// machines (gang_bounds.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/divisions.hpp"
#include "topoplace/gang_bounds.hpp"

namespace topoplace::decide {

class GangDivision {
  public:
    // params: without GPUs' machines, classes and seconds. The limits are of these units.
    [[nodiscard]] static Fault check(const MachineLimits& limits, const divisions::DivideParams& params);
    GangDivision(const MachineLimits& limits, const divisions::DivideParams& params);
    GangDivision(const GangDivision&) = delete;  // the parameters refer to it
    GangDivision& operator=(const GangDivision&) = delete;

    // With what the limits say, for `divide`, which has to check them.
    const divisions::DivideParams& params() const { return params_; }

  private:
    divisions::DivideParams params_;
    std::vector<std::int32_t> machine_of_{};
    std::vector<std::vector<double>> of_sets_{};  // of each class
    std::vector<std::span<const double>> sets_{};
    std::vector<double> of_counts_{};
};

}  // namespace topoplace::decide
