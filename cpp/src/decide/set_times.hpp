// How long a job communicates on sets of one machine's GPUs.
#pragma once

#include <algorithm>
#include <limits>

#include "topoplace/machine_sets.hpp"

namespace topoplace::decide {

inline constexpr double kNever = std::numeric_limits<double>::infinity();
inline constexpr std::uint64_t kMostSets = 13'000;  // that are all compared: those of 8 of 16 GPUs

// Rows of `size` GPUs, one after the other, ascending.
struct Rows {
    std::size_t size = 0;
    std::vector<std::int32_t> gpus{};

    std::size_t count() const { return size == 0 ? 0 : gpus.size() / size; }
    std::span<const std::int32_t> row(std::size_t i) const { return std::span(gpus).subspan(i * size, size); }
    void set_row(std::size_t i, std::span<const std::int32_t> row) {
        std::ranges::copy(row, gpus.begin() + static_cast<std::ptrdiff_t>(i * size));
    }
};

collective::GpuSet set_of(std::span<const std::int32_t> gpus);

class SetTimes {
  public:
    SetTimes(const SetParams& params, WorkMeter& meter);

    // All that the tasks exchange is in rings of all of them, which the library plans.
    bool is_one_ring() const { return is_one_ring_; }
    // Rings of a part of the tasks are planned.
    bool has_inner_rings() const { return has_inner_rings_; }

    // The time of each row, whose GPUs are put in the order of the tasks; infinity also for some rows that
    // take longer than as many `alternatives` by more than the slack.
    std::vector<double> of(Rows& rows);
    // The time of a row with the rings of a part of the tasks; `seconds` without such rings.
    double exact(std::span<const std::int32_t> gpus, double seconds);
    // Puts the GPUs in an order that also suits sends along a ring's edges.
    void order(Rows& rows);
    // Of the task on each GPU.
    double measured(std::span<const std::int32_t> gpus) const;

  private:
    std::vector<double> planned(const Rows& rows);
    std::vector<double> ordered(Rows& rows);
    std::vector<ports::Order> best_orders(const Rows& rows);
    std::vector<double> ordered_once(Rows& rows);
    double carried() const;
    bool are_alone() const;

    const SetParams& params_;
    const traffic::JobCollectives& job_;
    const Machine& machine_;
    WorkMeter& meter_;
    bool is_one_ring_ = false, has_inner_rings_ = false, may_reduce_ = false;
};

}  // namespace topoplace::decide
