// One limit after the other, or a binary search for the least. In a division with GPUs, the tasks that stay
// are those that the dynamic program counts.
#include <algorithm>
#include <functional>

#include "divisions/options.hpp"
#include "divisions/program.hpp"
#include "divisions/seats.hpp"
#include "graph/index.hpp"

namespace topoplace::divisions {

namespace {

constexpr double kClose = (1 + 1e-9) - 1;  // relative difference of limits that count as one

// Those that are given, or the distinct seconds that machines take, the most first.
std::vector<double> limits_of(const DivideParams& params, const Machines& machines) {
    if (!params.limits.empty()) return {params.limits.begin(), params.limits.end()};
    std::vector<double> seconds;
    for (std::int32_t kind = 0; kind < machines.num_kinds(); ++kind) {
        for (const Option& option : machines.options(kind)) {
            if (option.seconds < params.below) seconds.push_back(option.seconds);
        }
    }
    std::sort(seconds.begin(), seconds.end(), std::greater<>());
    seconds.erase(std::unique(seconds.begin(), seconds.end()), seconds.end());
    std::vector<double> limits;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
        if (i == 0 || seconds[i - 1] - seconds[i] > kClose * seconds[i]) limits.push_back(seconds[i]);
    }
    return limits;
}

class Search {
  public:
    explicit Search(const DivideParams& params)
        : params_(params),
          meter_(params.stop),
          machines_(params, meter_),
          limits_(limits_of(params, machines_)) {}

    DivideResult run() {
        result_.too_many = steps() > static_cast<double>(params_.most_steps);
        if (!result_.too_many && !meter_.stopped() && !limits_.empty()) {
            Program program(params_, machines_, meter_);
            if (params_.fastest) {
                find_fastest(program);
            } else {
                find_all(program);
            }
        }
        result_.complete = !meter_.stopped();
        result_.nodes = meter_.nodes();
        return std::move(result_);
    }

  private:
    double steps() const {
        double options = 0;
        for (const std::int32_t machine : machines_.with_options()) {
            options += static_cast<double>(machines_.options(machines_.kind_of(machine)).size());
        }
        const auto units = params_.units.size() / index(params_.unit_size);
        return options * static_cast<double>(units) * static_cast<double>(limits_.size());
    }

    void find_all(Program& program) {
        Parts last;
        for (const double limit : limits_) {
            auto parts = program.solve(limit);
            if (!parts) break;
            if (!result_.found.empty() && parts->moves > last.moves) seat(last);
            last = std::move(*parts);
            result_.found.push_back({last.moves, limit, {}});
        }
        if (!result_.found.empty()) seat(last);
    }

    void find_fastest(Program& program) {
        Parts last;
        for (std::size_t low = 0, high = limits_.size(); low < high && !meter_.stopped();) {
            const std::size_t middle = (low + high) / 2;
            if (auto parts = program.solve(limits_[middle])) {
                last = std::move(*parts);
                result_.found.assign(1, {last.moves, limits_[middle], {}});
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (!result_.found.empty()) seat(last);
    }

    void seat(const Parts& parts) { result_.found.back().gpus = seats(params_, machines_, parts.parts); }

    const DivideParams& params_;
    WorkMeter meter_;
    Machines machines_;
    std::vector<double> limits_;
    DivideResult result_;
};

}  // namespace

DivideResult divide(const DivideParams& params) { return Search(params).run(); }

}  // namespace topoplace::divisions
