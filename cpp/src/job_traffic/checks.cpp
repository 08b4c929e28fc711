// Checks of what the tasks of a job exchange.
#include "job_traffic/checks.hpp"

#include <algorithm>
#include <cmath>

#include "graph/index.hpp"

namespace topoplace::traffic {
namespace {

constexpr double kMostGigabytes = 1e18;

bool is_amount(double gigabytes) { return gigabytes >= 0.0 && gigabytes <= kMostGigabytes; }

// What a collective's tasks get differs for all of them or for none.
Fault check_received(const JobCollectives& job, std::size_t collective) {
    const auto begin = static_cast<std::size_t>(job.begin_of(collective));
    const auto end = static_cast<std::size_t>(job.ends[collective]);
    const bool differ = job.received[begin] >= 0.0;
    for (std::size_t i = begin; i < end; ++i) {
        if (differ ? is_amount(job.received[i]) : job.received[i] == -1.0) continue;
        return wrong("received", i, job.received[i],
                     "neither in 0..1e18 for all tasks of a collective nor -1");
    }
    return std::nullopt;
}

Fault check_collective(const JobCollectives& job, std::size_t i) {
    if (job.kinds[i] > static_cast<std::uint8_t>(Kind::kSends)) {
        return wrong("kinds", i, int{job.kinds[i]}, "there is no such kind");
    }
    if (job.size_of(i) < 2) return wrong("ends", i, job.ends[i], "a collective of fewer than two");
    if (!is_amount(job.gigabytes[i])) return wrong("gigabytes", i, job.gigabytes[i], "not in 0..1e18");
    return job.received.empty() ? std::nullopt : check_received(job, i);
}

// No task is in one collective twice.
Fault check_tasks(const JobCollectives& job, std::size_t num_tasks) {
    std::vector<std::size_t> last(num_tasks, job.kinds.size());
    std::size_t collective = 0;
    for (std::size_t i = 0; i < job.tasks.size(); ++i) {
        while (static_cast<std::int64_t>(i) >= job.ends[collective]) ++collective;
        std::size_t& known = last[index(job.tasks[i])];
        if (known == collective) return wrong("tasks", i, job.tasks[i], "twice in one collective");
        known = collective;
    }
    return std::nullopt;
}

// All collectives of a batch are of one kind, number of tasks and phase.
Fault check_batches(const JobCollectives& job) {
    if (job.batch_ends.empty()) return std::nullopt;
    if (auto fault = check_ends("batch_ends", job.batch_ends, job.kinds.size())) return fault;
    std::size_t next = 0, phase = 0;
    for (std::size_t i = 0; i < job.batch_ends.size(); ++i) {
        const std::size_t first = next, end = static_cast<std::size_t>(job.batch_ends[i]);
        while (phase < job.phase_ends.size() && job.phase_ends[phase] <= static_cast<std::int64_t>(first))
            ++phase;
        const auto is_alike = [&](std::size_t one) {
            return job.kinds[one] == job.kinds[first] && job.size_of(one) == job.size_of(first);
        };
        for (; next < end && is_alike(next); ++next) {
        }
        if (first == end || next < end || static_cast<std::int64_t>(end) > job.phase_ends[phase])
            return wrong("batch_ends", i, job.batch_ends[i], "no run of collectives that are alike");
    }
    return std::nullopt;
}

}  // namespace

Fault check_size(const char* name, std::size_t size, std::size_t expected) {
    if (size == expected) return std::nullopt;
    return std::string(name) + " has " + std::to_string(size) + " entries, not " + std::to_string(expected);
}

Fault check_range(const char* name, std::span<const std::int32_t> values, std::int32_t low, std::size_t end) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] < low || (values[i] >= 0 && index(values[i]) >= end)) {
            return wrong(name, i, values[i], "out of range");
        }
    }
    return std::nullopt;
}

Fault check_once(const char* name, std::span<const std::int32_t> numbers, std::size_t count) {
    if (auto fault = check_range(name, numbers, 0, count)) return fault;
    std::vector<std::uint8_t> seen(count, 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (seen[index(numbers[i])] != 0) return wrong(name, i, numbers[i], "listed twice");
        seen[index(numbers[i])] = 1;
    }
    return std::nullopt;
}

Fault check_ends(const char* name, std::span<const std::int64_t> ends, std::size_t count) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends[i] < last) return wrong(name, i, ends[i], "descends");
        last = ends[i];
    }
    if (static_cast<std::size_t>(last) == count) return std::nullopt;
    return std::string(name) + " ends at " + std::to_string(last) + " of " + std::to_string(count);
}

Fault check(const JobCollectives& job, std::size_t num_tasks) {
    if (auto fault = check_ends("phase_ends", job.phase_ends, job.kinds.size())) return fault;
    if (auto fault = check_size("ends", job.ends.size(), job.kinds.size())) return fault;
    if (auto fault = check_ends("ends", job.ends, job.tasks.size())) return fault;
    if (auto fault = check_size("gigabytes", job.gigabytes.size(), job.kinds.size())) return fault;
    const std::size_t received = job.received.empty() ? 0 : job.tasks.size();
    if (auto fault = check_size("received", job.received.size(), received)) return fault;
    if (auto fault = check_range("tasks", job.tasks, 0, num_tasks)) return fault;
    for (std::size_t i = 0; i < job.kinds.size(); ++i) {
        if (auto fault = check_collective(job, i)) return fault;
    }
    if (auto fault = check_batches(job)) return fault;
    return check_tasks(job, num_tasks);
}

Fault check_edges(std::span<const double> edges, std::size_t tasks) {
    if (edges.size() % 3 != 0) return "edges is not in rows of three";
    for (std::size_t i = 0; i < edges.size(); i += 3) {
        const double a = edges[i], b = edges[i + 1], gigabytes = edges[i + 2];
        const bool are_tasks =
            a >= 0 && a < b && b < static_cast<double>(tasks) && std::floor(a) == a && std::floor(b) == b;
        if (!are_tasks) return wrong("edges", i, a, "not two tasks in order");
        if (!(gigabytes >= 0.0 && gigabytes <= 1e18))
            return wrong("edges", i + 2, gigabytes, "not in 0..1e18");
    }
    return std::nullopt;
}

}  // namespace topoplace::traffic
