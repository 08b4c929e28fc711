// Bounds for a job that fits one machine: on any one, or on several.
#include <algorithm>
#include <bit>
#include <numeric>

#include "decide/bounded_gang.hpp"
#include "decide/set_times.hpp"
#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

constexpr std::int32_t kMostDivided = 10;  // tasks of a job of which all divisions into two are compared

// Any two tasks exchange something, with each other or by way of others.
bool is_joined(const std::vector<Phase>& phases, std::int32_t num_tasks) {
    std::vector<std::int32_t> root(index(num_tasks));
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](std::int32_t task) {
        while (root[index(task)] != task) task = root[index(task)] = root[index(root[index(task)])];
        return task;
    };
    std::int32_t parts = num_tasks;
    for (const Phase& phase : phases) {
        for (const Batch& batch : phase) {
            for (std::size_t i = 0; i < batch.tasks.size(); ++i) {
                const std::int32_t one = find(batch.tasks[i - i % batch.size]), other = find(batch.tasks[i]);
                if (one != other) --parts;
                root[index(other)] = one;
            }
        }
    }
    return parts == 1;
}

// The least seconds if a collective, whichever, is on several machines: by adapters, or by NVLinks.
double least_of_one_divided(const GangLimits& limits, const Batch& batch) {
    const auto most = static_cast<double>(batch.size / 2);
    double fastest = 0.0;
    for (const GangLimitsParams::Entry& one : limits.entries)
        fastest =
            std::max(fastest, batch.is_ring() ? std::min(most * one.of_gpu, one.of_machine) : one.of_gpu);
    return batch.is_ring() ? batch.least() / fastest : batch.least() / 2 / fastest;
}

// The least seconds if two tasks that exchange something are on different machines; 0 if none need to.
double least_over_machines(const GangLimits& limits, const JobParams& job) {
    const std::vector<Phase> phases = phases_of(job.collectives);
    if (limits.join_machines || !is_joined(phases, job.size)) return 0.0;
    double least = kNever;
    for (const Phase& phase : phases) {
        for (const Batch& batch : phase) least = std::min(least, least_of_one_divided(limits, batch));
    }
    return least;
}

// Collectives with bits for tasks.
struct Masked {
    traffic::Kind kind = traffic::Kind::kSends;
    double gigabytes = 0.0;
    std::span<const std::int32_t> tasks{};
    std::uint32_t bits = 0;

    bool crosses(std::uint32_t part) const { return (part & bits) != 0 && (part & bits) != bits; }
    // Pairs that communicate of which one task is in the part.
    std::int64_t apart(std::uint32_t part) const {
        std::int64_t found = 0;
        each_pair(kind, tasks.size(), [&](std::size_t here, std::size_t there) {
            found += ((part >> tasks[here]) ^ (part >> tasks[there])) & 1U;
        });
        return found;
    }
};

std::vector<std::vector<Masked>> masked(const traffic::JobCollectives& job) {
    std::vector<std::vector<Masked>> found;
    for (const Phase& phase : phases_of(job)) {
        auto& own = found.emplace_back();
        for (const Batch& batch : phase) {
            for (std::size_t i = 0; i < batch.count(); ++i) {
                Masked& one = own.emplace_back(Masked{batch.kind, batch.gigabytes[i], batch.row(i)});
                for (const std::int32_t task : one.tasks) one.bits |= std::uint32_t{1} << task;
            }
        }
    }
    return found;
}

// GB of a phase that cross a division into two.
double gb_across(const std::vector<Masked>& phase, std::uint32_t part) {
    double of_rings = 0.0, of_others = 0.0;
    for (const Masked& one : phase) {
        if (!one.crosses(part)) continue;
        if (traffic::is_ring(one.kind)) {
            of_rings = std::max(of_rings, one.gigabytes);
        } else {
            of_others += static_cast<double>(one.apart(part)) * one.gigabytes / 2;
        }
    }
    return std::max(of_rings, of_others);
}

}  // namespace

double least_seconds_of_one(const GangLimits& limits, const JobParams& job, WorkMeter& meter,
                            const Machine* known, double seconds) {
    double least = known == nullptr ? kNever : seconds;
    for (const Machine* one : limits.machines) {
        if (one != known && one->num_gpus() >= index(job.size))
            least = std::min(least, seconds_of_any(*one, job, meter));
    }
    if (limits.class_of.size() > 1) least = std::min(least, least_over_machines(limits, job));
    return least * kRoundedDown;
}

double least_if_split(const GangLimits& limits, const JobParams& job) {
    const bool is_alone = limits.class_of.size() == 1 || !job.communicates || !limits.has_adapters;
    if (is_alone || job.size < 2 || job.size > kMostDivided || limits.are_alike()) return kNever;
    const double fastest = limits.join_machines
                               ? limits.most_of_a_gpu
                               : std::max(limits.entries[0].of_gpu, limits.entries[1].of_gpu);
    const std::vector<std::vector<Masked>> phases = masked(job.collectives);
    double least = kNever;
    // All adapters of the smaller part carry what crosses.
    for (std::uint32_t part = 1; part < std::uint32_t{1} << (job.size - 1); ++part) {
        const std::int32_t size = std::popcount(part);
        const double ports = std::min(size, job.size - size) * fastest;
        double seconds = 0.0;
        for (const auto& phase : phases) seconds += gb_across(phase, part) / ports;
        least = std::min(least, seconds);
    }
    return least * kRoundedDown;
}

}  // namespace topoplace::decide
