// The GPUs that several jobs share, and how much of each is left, in thousandths.
//
// A GPU is shared from the first job that takes less than all of it until the last of them leaves. What was
// reserved for a GPU is kept, so that taking back a change needs no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "topoplace/assert.hpp"

namespace topoplace {

inline constexpr std::int32_t kWholeGpu = 1000;  // thousandths

template <class Job>
class GpuShares {
  public:
    struct Holder {
        const Job* job = nullptr;
        std::int32_t share = 0;
    };

    explicit GpuShares(std::int32_t num_gpus) : left_(static_cast<std::size_t>(num_gpus), kWholeGpu) {}

    bool is_shared(std::int32_t gpu) const { return left(gpu) < kWholeGpu; }
    // What the jobs that share the GPU leave of it.
    std::int32_t left(std::int32_t gpu) const { return left_[static_cast<std::size_t>(gpu)]; }
    // In no particular order.
    std::span<const Holder> holders(std::int32_t gpu) const {
        const auto found = holders_.find(gpu);
        return found == holders_.end() ? std::span<const Holder>() : found->second;
    }
    // Of all GPUs that were ever shared; without holders for those that are not any more.
    const std::unordered_map<std::int32_t, std::vector<Holder>>& all() const { return holders_; }
    std::size_t num_shared() const { return num_shared_; }

    // Makes room for one more holder of a GPU; until then, add() needs no memory.
    void reserve(std::int32_t gpu) {
        std::vector<Holder>& its = holders_[gpu];
        if (its.size() == its.capacity()) its.reserve(2 * its.size() + 1);
    }

    // There must be as much left, and room.
    void add(std::int32_t gpu, const Job* job, std::int32_t share) noexcept {
        TOPOPLACE_ASSERT(share > 0 && share < kWholeGpu && share <= left(gpu));
        const auto found = holders_.find(gpu);
        TOPOPLACE_ASSERT(found != holders_.end() && found->second.size() < found->second.capacity());
        left_[static_cast<std::size_t>(gpu)] -= static_cast<std::int16_t>(share);
        num_shared_ += found->second.empty() ? 1 : 0;
        found->second.push_back({job, share});
    }

    // The job must hold a share of the GPU.
    void remove(std::int32_t gpu, const Job* job) noexcept {
        const auto found = holders_.find(gpu);
        TOPOPLACE_ASSERT(found != holders_.end());
        std::vector<Holder>& its = found->second;
        std::size_t at = 0;
        while (its[at].job != job) ++at;
        left_[static_cast<std::size_t>(gpu)] += static_cast<std::int16_t>(its[at].share);
        its[at] = its.back();
        its.pop_back();
        num_shared_ -= its.empty() ? 1 : 0;
    }

  private:
    std::vector<std::int16_t> left_;
    std::unordered_map<std::int32_t, std::vector<Holder>> holders_;
    std::size_t num_shared_ = 0;
};

}  // namespace topoplace
