// The collectives of a job in batches: runs of one kind and number of tasks in a phase.
#pragma once

#include <algorithm>
#include <vector>

#include "topoplace/job_traffic.hpp"

namespace topoplace::decide {

struct Batch {
    traffic::Kind kind = traffic::Kind::kSends;
    std::size_t size = 0;                   // tasks of each collective
    std::span<const std::int32_t> tasks{};  // collective after collective
    std::span<const double> gigabytes{};    // of each collective

    std::size_t count() const { return gigabytes.size(); }
    std::span<const std::int32_t> row(std::size_t i) const { return tasks.subspan(i * size, size); }
    bool is_ring() const { return traffic::is_ring(kind); }
    // Its rings leave each machine in channels; a chain does not return to the first.
    bool is_in_channels() const { return is_ring() && kind != traffic::Kind::kChain; }
    double least() const { return *std::ranges::min_element(gigabytes); }
    double most() const { return *std::ranges::max_element(gigabytes); }
};

using Phase = std::vector<Batch>;

// Without `batch_ends`, each collective is a batch of its own.
std::vector<Phase> phases_of(const traffic::JobCollectives& job);

// No task is in two collectives of the batch.
bool are_apart(const Batch& batch, std::size_t num_tasks);

// Calls `take` with the positions, among a collective's tasks, of both ends of each pair that communicates.
template <class Take>
void each_pair(traffic::Kind kind, std::size_t size, const Take& take) {
    if (kind == traffic::Kind::kPairs) {
        for (std::size_t i = 0; i < size; ++i) {
            for (std::size_t j = i + 1; j < size; ++j) take(i, j);
        }
        return;
    }
    for (std::size_t i = 0; i + 1 < size; ++i) take(i, i + 1);
    if (kind == traffic::Kind::kReduce || kind == traffic::Kind::kRing) take(size - 1, std::size_t{0});
}

}  // namespace topoplace::decide
