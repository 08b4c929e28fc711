// Rated sets: what the rings among sets of a machine's GPUs carry, and what the GPUs that stay free still
// can.
//
// A set has a bit for each GPU. What is left among free GPUs is the sum, over set sizes from two on, of the
// GB/s of the fastest set of this size. Sizes end before the machine has more than 4,096 sets: of machines of
// up to 12 GPUs all sizes count, of 64 GPUs pairs alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/made_once.hpp"
#include "topoplace/ring_rates.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::collective {

using GpuSet = std::uint64_t;

struct RatedSetsParams {
    const RingRates* rates = nullptr;
    bool are_alike = false;  // sets of equal size carry the same
    // GB/s that a GPU can send to each other one, (n, n), and to all that is no GPU, (n), at most.
    std::span<const double> to_gpus{};
    std::span<const double> to_others{};
};

class RatedSets {
  public:
    // The rates have to outlive it. Any thread may ask.
    explicit RatedSets(const RatedSetsParams& params);

    std::int32_t num_gpus() const { return num_gpus_; }
    bool are_alike() const { return are_alike_; }

    // GB/s of the rings of a set; 0 for one GPU.
    double gb_per_s(GpuSet set) const;
    // GB/s that no rings of a set exceed: the least that one of its GPUs can send to the others, or to what
    // is no GPU.
    double bound(GpuSet set) const;

    // GB/s of each set; -1 for those that a search which is stopped does not rate.
    std::vector<double> rated(std::span<const GpuSet> sets, WorkMeter& meter) const;
    // GB/s of the `count` fastest sets, and of all others with at least the share `share` of the slowest of
    // these. Slower sets, not all of which are rated, have -1. A search that is stopped rates no further set.
    std::vector<double> leading(std::span<const GpuSet> sets, std::size_t count, double share,
                                WorkMeter& meter) const;
    // The same for the sets whose GB/s are in the step of the fastest; steps are 10 % wide.
    std::vector<double> fastest(std::span<const GpuSet> sets, WorkMeter& meter) const;

    // GB/s left among the GPUs of `free` that are not in `taken`.
    double left(GpuSet free, GpuSet taken) const;

  private:
    struct Listed {
        GpuSet set = 0;
        double gb_per_s = 0.0;
        std::int32_t size = 0;
    };

    template <class Floor>
    std::vector<double> rated_down(std::span<const GpuSet> sets, std::size_t count, const Floor& floor_of,
                                   WorkMeter& meter) const;
    std::vector<Listed> list() const;

    const RingRates* rates_;
    std::int32_t num_gpus_;
    bool are_alike_;
    std::vector<double> to_gpus_, to_others_;
    mutable MadeOnce<std::vector<Listed>> listed_;
};

// Sets of `size` of these ascending GPUs, in the order of their GPU lists.
std::vector<GpuSet> sets_of(std::span<const std::int32_t> gpus, std::size_t size);

// The number of these sets; 2^62 where there are more.
std::uint64_t num_sets(std::size_t gpus, std::size_t size);

}  // namespace topoplace::collective
