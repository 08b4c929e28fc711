// Lists the sets of GPUs, times them, and orders the fastest by what they cost other jobs.
#include "topoplace/machine_sets.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "decide/set_times.hpp"
#include "graph/index.hpp"
#include "job_traffic/checks.hpp"

namespace topoplace::decide {
namespace {

constexpr std::size_t kMostGpus = 64;     // of a machine whose sets are all compared
constexpr std::size_t kMostOptions = 16;  // that are examined once the time of sets is known
constexpr std::size_t kMostAlike = 4;     // on a machine on which all GPUs are alike
constexpr std::int32_t kAllOrders = 4;    // tasks of which `best_orders` tries all orders
constexpr std::int32_t kWholeGpu = 1000;
// What counts, by its place in the order: the time, keys of a set, and what it takes from the free GPUs.
constexpr std::size_t kLost = SetOption::kKeys - 1;

using Keys = std::array<double, SetOption::kKeys>;

class Ranking {
  public:
    Ranking(const SetParams& params, WorkMeter& meter)
        : params_(params), machine_(*params.machine), meter_(meter), times_(params, meter) {
        num_free_ = static_cast<std::size_t>(std::ranges::count(params.free, true));
        for (const Gpus& part : machine_.parts) {
            const bool is_free =
                std::ranges::all_of(part, [&](std::int32_t gpu) { return params_.free[index(gpu)]; });
            if (is_free) whole_.push_back(&part);
        }
        part_of_.assign(machine_.num_gpus(), {});
        for (std::size_t i = 0; i < whole_.size(); ++i) {
            for (const std::int32_t gpu : *whole_[i]) part_of_[index(gpu)].push_back(i);
        }
    }

    SetResult run() {
        Rows rows = listed();
        if (rows.count() == 0) return {};
        std::vector<double> seconds(rows.count(), 0.0);
        if (!machine_.are_alike) {
            seconds = times_.of(rows);
        } else {
            std::ranges::fill(seconds, seconds_of_any(machine_, params_.job, meter_));
        }
        std::vector<SetOption> found = options_of(rows, seconds);
        if (machine_.are_alike && !params_.are_fixed) found.resize(std::min(found.size(), kMostAlike));
        std::erase_if(found, [](const SetOption& one) { return one.seconds == kNever; });
        if (meter_.stopped()) return {{}, false, false};
        sort(found);
        return {std::move(found), are_all_compared(), true};
    }

  private:
    // ---- which sets ----

    Rows listed() const {
        const std::size_t size = index(params_.job.size);
        Rows rows{size, {}};
        for (const Gpus& region : params_.regions) {
            if (!std::ranges::includes(region, params_.required)) continue;
            if (params_.are_fixed) {
                rows.gpus.insert(rows.gpus.end(), region.begin(), region.end());
                continue;
            }
            Gpus others;
            std::ranges::set_difference(region, params_.required, std::back_inserter(others));
            const std::size_t spare = size - params_.required.size();
            if (spare > others.size()) continue;
            if (spare == 0) {
                rows.gpus.insert(rows.gpus.end(), params_.required.begin(), params_.required.end());
            } else if (are_few(region.size())) {
                for (const collective::GpuSet set : collective::sets_of(others, spare)) add(set, rows);
            } else {
                add_near(others, spare, rows);
            }
        }
        return rows;
    }

    bool are_few(std::size_t free) const {
        return !params_.near_only && machine_.num_gpus() <= kMostGpus &&
               collective::num_sets(free, index(params_.job.size)) <= kMostSets;
    }

    void add(collective::GpuSet set, Rows& rows) const {
        for (set |= set_of(params_.required); set != 0; set &= set - 1)
            rows.gpus.push_back(std::countr_zero(set));
    }

    // The sets of the GPUs nearest to each free one, and those that follow each other in the near order.
    void add_near(Gpus free, std::size_t size, Rows& rows) const {
        std::ranges::stable_sort(free, {}, [&](std::int32_t gpu) { return machine_.near[index(gpu)]; });
        std::set<Gpus> found;
        const auto keep = [&](Gpus gpus) {
            gpus.insert(gpus.end(), params_.required.begin(), params_.required.end());
            std::ranges::sort(gpus);
            found.insert(std::move(gpus));
        };
        const auto width = static_cast<std::ptrdiff_t>(size);
        for (auto first = free.begin(); free.end() - first >= width; ++first) keep({first, first + width});
        for (const std::int32_t gpu : free) {
            if (meter_.look_at_clock()) return;
            Gpus nearest = free;
            std::ranges::stable_sort(nearest, {},
                                     [&](std::int32_t other) { return machine_.distance(gpu, other); });
            nearest.resize(size);
            keep(std::move(nearest));
        }
        for (const Gpus& gpus : found) rows.gpus.insert(rows.gpus.end(), gpus.begin(), gpus.end());
    }

    bool are_all_compared() const {
        const bool few_orders = params_.job.size <= kAllOrders && !times_.has_inner_rings();
        const bool all_orders = !params_.job.communicates || times_.is_one_ring() || few_orders;
        return all_orders && std::ranges::all_of(params_.regions, [&](const Gpus& region) {
                   return params_.are_fixed || are_few(region.size());
               });
    }

    // ---- what counts ----

    std::vector<SetOption> options_of(const Rows& rows, const std::vector<double>& seconds) {
        Rows chosen{rows.size, {}};
        std::vector<SetOption> found;
        for (const std::size_t i : best_of(rows, seconds)) {
            const auto row = rows.row(i);
            chosen.gpus.insert(chosen.gpus.end(), row.begin(), row.end());
            found.push_back({{}, keys_[i], machine_.are_alike ? seconds[i] : times_.exact(row, seconds[i])});
        }
        add_losses(chosen, found);
        times_.order(chosen);
        for (std::size_t i = 0; i < found.size(); ++i) {
            const auto row = chosen.row(i);
            found[i].gpus.assign(row.begin(), row.end());
            found[i].order[0] = grade(found[i].seconds, params_.slack);
        }
        return found;
    }

    // The best rows by time, keys and GPUs, the best first.
    std::vector<std::size_t> best_of(const Rows& rows, const std::vector<double>& seconds) {
        std::vector<double> grades(rows.count());
        std::ranges::transform(seconds, grades.begin(),
                               [this](double one) { return grade(one, params_.slack); });
        const std::size_t most = std::min(rows.count(), kMostOptions);
        std::vector<double> sorted = grades;
        std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(most - 1));
        const double slowest = sorted[most - 1];
        std::vector<std::size_t> found;
        keys_.resize(rows.count());
        for (std::size_t i = 0; i < rows.count(); ++i) {
            if (grades[i] > slowest) continue;
            found.push_back(i);
            keys_[i] = keys_of(rows.row(i), grades[i]);
        }
        const auto is_before = [&](std::size_t a, std::size_t b) {
            if (keys_[a] != keys_[b]) return keys_[a] < keys_[b];
            return std::ranges::lexicographical_compare(rows.row(a), rows.row(b));
        };
        std::ranges::partial_sort(found, found.begin() + static_cast<std::ptrdiff_t>(most), is_before);
        found.resize(most);
        return found;
    }

    Keys keys_of(std::span<const std::int32_t> gpus, double graded) const {
        const auto [farthest, distances, apart] = nearness(gpus);
        const auto [whole, left] = shares(gpus);
        const bool opens = num_free_ == machine_.num_gpus() && gpus.size() < num_free_;
        const double counts = params_.job.communicates ? 1.0 : 0.0;
        double slow = 0.0;
        for (const std::int32_t gpu : gpus) slow += machine_.degraded[index(gpu)];
        return {graded,
                counts * farthest,
                counts * distances,
                counts * apart,
                whole,
                left,
                opens ? 1.0 : 0.0,
                static_cast<double>(num_free_),
                static_cast<double>(broken_parts(gpus)),
                slow,
                farthest,
                distances,
                apart,
                0.0};
    }

    // The largest distance of two GPUs, the sum of all, and the number of pairs on different sockets.
    std::array<double, 3> nearness(std::span<const std::int32_t> gpus) const {
        std::int32_t farthest = 0, distances = 0, apart = 0;
        for (std::size_t i = 0; i < gpus.size(); ++i) {
            for (std::size_t j = i + 1; j < gpus.size(); ++j) {
                const std::int32_t distance = machine_.distance(gpus[i], gpus[j]);
                farthest = std::max(farthest, distance);
                distances += 2 * distance;
                apart += machine_.socket[index(gpus[i])] == machine_.socket[index(gpus[j])] ? 0 : 2;
            }
        }
        return {static_cast<double>(farthest), static_cast<double>(distances), static_cast<double>(apart)};
    }

    // How many of the GPUs are whole, and the thousandths left of all of them, as smaller is better.
    std::pair<double, double> shares(std::span<const std::int32_t> gpus) const {
        if (!params_.job.takes_parts) return {0.0, 0.0};
        double whole = 0.0, left = 0.0;
        for (const std::int32_t gpu : gpus) {
            whole += params_.left[index(gpu)] == kWholeGpu ? 1.0 : 0.0;
            left += params_.left[index(gpu)];
        }
        const double sign = params_.job.takes_fullest ? -1.0 : 1.0;
        return {sign * whole, sign * left};
    }

    // The parts, free until now, of which some GPUs are taken and others not.
    std::size_t broken_parts(std::span<const std::int32_t> gpus) const {
        taken_.assign(whole_.size(), 0);
        for (const std::int32_t gpu : gpus) {
            for (const std::size_t part : part_of_[index(gpu)]) ++taken_[part];
        }
        std::size_t broken = 0;
        for (std::size_t i = 0; i < whole_.size(); ++i) {
            broken += taken_[i] > 0 && taken_[i] < whole_[i]->size() ? 1 : 0;
        }
        return broken;
    }

    // What rings of the free GPUs lose, for those sets that tie with the first.
    void add_losses(const Rows& rows, std::vector<SetOption>& found) {
        const Keys first = found.front().order;
        const auto is_tied = [&first](const SetOption& one) { return one.order == first; };
        if (machine_.rated == nullptr || std::ranges::count_if(found, is_tied) < 2) return;
        const collective::GpuSet free = free_set();
        const double all = machine_.rated->left(free, 0);
        for (std::size_t i = 0; i < found.size(); ++i) {
            if (meter_.look_at_clock()) return;
            if (is_tied(found[i]))
                found[i].order[kLost] = all - machine_.rated->left(free, set_of(rows.row(i)));
        }
    }

    collective::GpuSet free_set() const {
        collective::GpuSet free = 0;
        for (std::size_t gpu = 0; gpu < params_.free.size(); ++gpu)
            free |= collective::GpuSet{params_.free[gpu]} << gpu;
        return free;
    }

    static void sort(std::vector<SetOption>& found) {
        const auto ascending = [](Gpus gpus) {
            std::ranges::sort(gpus);
            return gpus;
        };
        std::ranges::stable_sort(found, [&](const SetOption& a, const SetOption& b) {
            if (a.order != b.order) return a.order < b.order;
            const Gpus ours = ascending(a.gpus), theirs = ascending(b.gpus);
            return ours != theirs ? ours < theirs : a.gpus < b.gpus;
        });
    }

    const SetParams& params_;
    const Machine& machine_;
    WorkMeter& meter_;
    SetTimes times_;
    std::size_t num_free_ = 0;
    std::vector<const Gpus*> whole_{};                 // parts that are free
    std::vector<std::vector<std::size_t>> part_of_{};  // those of each GPU
    std::vector<Keys> keys_{};                         // of each row that may be chosen
    mutable std::vector<std::size_t> taken_{};
};

bool reduces_in(const traffic::CollectiveNetwork& network, std::size_t num_gpus) {
    for (std::size_t gpu = 0; gpu < num_gpus; ++gpu) {
        if (network.vertex(static_cast<std::int32_t>(gpu)).reduced > 0.0) return true;
    }
    return false;
}

// GPUs of a machine of so many, ascending.
Fault check_ascending(const char* name, const Gpus& gpus, std::size_t num_gpus) {
    if (auto fault = traffic::check_range(name, gpus, 0, num_gpus)) return fault;
    for (std::size_t i = 1; i < gpus.size(); ++i) {
        if (gpus[i] <= gpus[i - 1]) return traffic::wrong(name, i, gpus[i], "does not ascend");
    }
    return std::nullopt;
}

// The sets that may be listed.
Fault check_sets(const SetParams& params, std::size_t num_gpus) {
    const std::size_t size = index(params.job.size);
    for (const Gpus& region : params.regions) {
        if (auto fault = check_ascending("regions", region, num_gpus)) return fault;
        const std::size_t expected = params.are_fixed ? size : region.size();
        if (auto fault = traffic::check_size("regions", region.size(), expected)) return fault;
    }
    if (auto fault = check_ascending("required", params.required, num_gpus)) return fault;
    if (params.required.size() <= size) return std::nullopt;
    return "required has " + std::to_string(params.required.size()) + " GPUs of a job of " +
           std::to_string(size);
}

}  // namespace

Fault check(const MachineParams& params) {
    const std::size_t n = params.socket.size();
    if (auto fault = traffic::check_size("far", params.far.size(), n * n)) return fault;
    if (auto fault = traffic::check_size("near", params.near.size(), n)) return fault;
    if (auto fault = traffic::check_size("degraded", params.degraded.size(), n)) return fault;
    for (const Gpus& part : params.parts) {
        if (part.empty()) return "parts has one without GPUs";
        if (auto fault = check_ascending("parts", part, n)) return fault;
    }
    const std::size_t rated = params.rated == nullptr ? n : index(params.rated->num_gpus());
    if (auto fault = traffic::check_size("rated", rated, n)) return fault;
    if (params.network == nullptr) return "network is missing";
    return traffic::check_size("network", index(params.network->ports().num_vertices()), n);
}

Machine::Machine(const MachineParams& params)
    : far(params.far.begin(), params.far.end()),
      socket(params.socket.begin(), params.socket.end()),
      near(params.near.begin(), params.near.end()),
      degraded(params.degraded.begin(), params.degraded.end()),
      parts(params.parts),
      are_alike(params.are_alike),
      rated(params.rated),
      network(*params.network),
      reduces(reduces_in(*params.network, params.socket.size())) {}

double grade(double seconds, double slack) {
    return seconds > 0.0 ? std::nearbyint(std::log(seconds) / std::log1p(slack)) : -1e9;
}

Fault check_slack(double slack) {
    if (slack > 0.0 && std::isfinite(slack)) return std::nullopt;
    return "slack = " + std::to_string(slack) + ": not above 0, or not finite";
}

Fault check(const JobParams& job, std::size_t num_gpus) {
    if (job.size < 0 || index(job.size) > num_gpus)
        return "size = " + std::to_string(job.size) + ": not in 0.." + std::to_string(num_gpus);
    return traffic::check(job.collectives, index(job.size));
}

Fault check(const SetParams& params) {
    if (params.machine == nullptr) return "machine is missing";
    const std::size_t n = params.machine->num_gpus();
    if (auto fault = check(params.job, n)) return fault;
    if (auto fault = check_sets(params, n)) return fault;
    if (auto fault = traffic::check_size("free", params.free.size(), n)) return fault;
    const bool has_left = params.job.takes_parts || !params.left.empty();
    if (auto fault = traffic::check_size("left", params.left.size(), has_left ? n : 0)) return fault;
    if (params.alternatives == 0) return "alternatives = 0: below 1";
    return check_slack(params.slack);
}

SetResult rank_sets(const SetParams& params) {
    WorkMeter meter(params.stop);
    return Ranking(params, meter).run();
}

}  // namespace topoplace::decide
