// The MIG slices into which GPUs are cut: what each takes of its GPU, and which job holds it.
//
// A sliced GPU runs jobs in its slices only. Slices stay when their jobs leave, until they are exchanged.
// What was reserved for a GPU is kept, so that taking back a change needs no memory.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "topoplace/assert.hpp"

namespace topoplace {

// A part of a GPU that NVIDIA calls a GPU instance. Slices of one GPU have no bit of `parts` in common.
struct MigSlice {
    static constexpr std::uint32_t kMemory = 0xff;
    static constexpr std::uint32_t kAll = 0x1ff;

    std::uint32_t parts = 0;    // bit i: the i-th eighth of the memory; bit 8: the media engines
    std::uint32_t compute = 0;  // compute slices

    std::int32_t eighths() const { return std::popcount(parts & kMemory); }
    auto operator<=>(const MigSlice&) const = default;
};

template <class Job>
class GpuSlices {
  public:
    struct Entry {
        MigSlice slice;
        const Job* job = nullptr;  // which holds it; nullptr where it is idle
    };
    using Entries = std::vector<Entry>;  // of one GPU, ascending by slice

    bool is_sliced(std::int32_t gpu) const { return num_sliced_ > 0 && !of(gpu).empty(); }
    std::size_t num_sliced() const { return num_sliced_; }
    const Entries& of(std::int32_t gpu) const {
        static const Entries none;
        const auto found = sliced_.find(gpu);
        return found == sliced_.end() ? none : found->second;
    }
    // Of all GPUs that were ever sliced; without entries for those that are whole now.
    const std::unordered_map<std::int32_t, Entries>& all() const { return sliced_; }

    bool is_idle(std::int32_t gpu) const {
        const Entries& its = of(gpu);
        return std::all_of(its.begin(), its.end(), [](const Entry& one) { return one.job == nullptr; });
    }
    // Whether no job holds a part of the GPU that the slice needs.
    bool fits(std::int32_t gpu, const MigSlice& slice) const {
        const Entries& its = of(gpu);
        return std::none_of(its.begin(), its.end(), [&slice](const Entry& one) {
            return one.job != nullptr && (one.slice.parts & slice.parts) != 0;
        });
    }
    bool has_idle(std::int32_t gpu, const MigSlice& slice) const {
        const Entries& its = of(gpu);
        return std::any_of(its.begin(), its.end(),
                           [&slice](const Entry& one) { return one.job == nullptr && one.slice == slice; });
    }

    // Makes room for this many slices of a GPU; until then, exchange() and hold() need no memory.
    void reserve(std::int32_t gpu, std::size_t slices) { sliced_[gpu].reserve(slices); }

    // Replaces all slices of a GPU, for which there is room, and gives back what they were in the same place;
    // without any, the GPU is whole.
    void exchange(std::int32_t gpu, Entries& entries) noexcept {
        std::sort(entries.begin(), entries.end(), before);
        Entries& its = room_of(gpu);
        num_sliced_ += entries.empty() ? 0 : 1;
        num_sliced_ -= its.empty() ? 0 : 1;
        its.swap(entries);
    }

    // The slice must fit, and there must be room. Idle slices in its way are given up; an idle one that
    // equals it is taken.
    void hold(std::int32_t gpu, const MigSlice& slice, const Job* job) noexcept {
        TOPOPLACE_ASSERT(fits(gpu, slice));
        Entries& its = room_of(gpu);
        num_sliced_ += its.empty() ? 1 : 0;
        std::erase_if(its, [&slice](const Entry& one) { return (one.slice.parts & slice.parts) != 0; });
        TOPOPLACE_ASSERT(its.size() < its.capacity());
        const Entry taken{slice, job};
        its.insert(std::upper_bound(its.begin(), its.end(), taken, before), taken);
    }

    // The job must hold a slice of the GPU, which is idle then.
    void release(std::int32_t gpu, const Job* job) noexcept {
        const auto found = sliced_.find(gpu);
        TOPOPLACE_ASSERT(found != sliced_.end());
        const auto its = std::find_if(found->second.begin(), found->second.end(),
                                      [job](const Entry& one) { return one.job == job; });
        TOPOPLACE_ASSERT(its != found->second.end());
        its->job = nullptr;
    }

    // The same slices, all idle.
    GpuSlices all_idle() const {
        GpuSlices copy = *this;
        for (auto& [_, entries] : copy.sliced_) {
            for (Entry& one : entries) one.job = nullptr;
        }
        return copy;
    }

  private:
    static bool before(const Entry& a, const Entry& b) { return a.slice < b.slice; }
    Entries& room_of(std::int32_t gpu) noexcept {
        const auto found = sliced_.find(gpu);
        TOPOPLACE_ASSERT(found != sliced_.end());
        return found->second;
    }

    std::unordered_map<std::int32_t, Entries> sliced_;
    std::size_t num_sliced_ = 0;
};

}  // namespace topoplace
