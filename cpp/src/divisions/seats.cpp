// Units that may stay do, others follow each other from machine to machine; then tasks get GPUs in this way.
#include "divisions/seats.hpp"

#include <numeric>

#include "graph/index.hpp"

namespace topoplace::divisions {

namespace {

class Seating {
  public:
    Seating(const DivideParams& params, const Machines& machines, std::span<const Part> parts)
        : params_(params),
          machines_(machines),
          parts_(parts),
          is_free_(params.machine_of.size(), 0),
          home_(params.units.size() / index(params.unit_size), kAbsent),
          next_(params.most.size(), 0),
          gpus_(params.units.size(), kAbsent) {}

    std::vector<std::int32_t> seat() {
        for (const Part& part : parts_) free_gpus(part);
        for (const Part& part : parts_) keep_units(part);
        move_units();
        keep_tasks();
        move_tasks();
        return std::move(gpus_);
    }

  private:
    void free_gpus(const Part& part) {
        const auto own = machines_.gpus(part.machine);
        for (std::size_t i = 0; i < own.size(); ++i) {
            const bool is_allowed =
                part.gpus != 0 ? (part.gpus >> i & 1U) != 0 : params_.usable[index(own[i])] != 0;
            is_free_[index(own[i])] = is_allowed ? 1 : 0;
        }
    }

    // A machine keeps the first units that may stay there; of chosen GPUs, those whose GPU is one of them.
    void keep_units(const Part& part) {
        std::int32_t left = part.units;
        for (const std::int32_t unit : machines_.units_at_home(part.machine)) {
            if (left == 0) break;
            if (part.gpus != 0 && is_free_[index(stays(index(unit)))] == 0) continue;
            home_[index(unit)] = part.machine;
            --left;
        }
        places_.insert(places_.end(), index(left), part.machine);
    }

    void move_units() {
        std::vector<std::int32_t> order(params_.order.begin(), params_.order.end());
        if (order.empty()) {
            order.resize(home_.size());
            std::iota(order.begin(), order.end(), 0);
        }
        auto place = places_.begin();
        for (const std::int32_t unit : order) {
            if (home_[index(unit)] == kAbsent) home_[index(unit)] = *place++;
        }
    }

    void keep_tasks() {
        for (std::size_t i = 0; !params_.stays.empty() && i < params_.units.size(); ++i) {
            const std::int32_t gpu = stays(i);
            const std::int32_t home = home_[i / index(params_.unit_size)];
            if (gpu < 0 || params_.machine_of[index(gpu)] != home || is_free_[index(gpu)] == 0) continue;
            gpus_[index(params_.units[i])] = gpu;
            is_free_[index(gpu)] = 0;
        }
    }

    void move_tasks() {
        for (std::size_t i = 0; i < params_.units.size(); ++i) {
            std::int32_t& gpu = gpus_[index(params_.units[i])];
            if (gpu == kAbsent) gpu = next_free(home_[i / index(params_.unit_size)]);
        }
    }

    std::int32_t next_free(std::int32_t machine) {
        const auto own = machines_.gpus(machine);
        std::size_t& next = next_[index(machine)];
        while (is_free_[index(own[next])] == 0) ++next;
        return own[next++];
    }

    // The GPU on which the task at this place of `units` may stay.
    std::int32_t stays(std::size_t place) const { return params_.stays[index(params_.units[place])]; }

    const DivideParams& params_;
    const Machines& machines_;
    std::span<const Part> parts_;
    std::vector<std::uint8_t> is_free_;
    std::vector<std::int32_t> home_;    // the machine of each unit
    std::vector<std::int32_t> places_;  // the machines of the units that move
    std::vector<std::size_t> next_;     // of each machine, the first of its GPUs that may be free
    std::vector<std::int32_t> gpus_;
};

}  // namespace

std::vector<std::int32_t> seats(const DivideParams& params, const Machines& machines,
                                std::span<const Part> parts) {
    return Seating(params, machines, parts).seat();
}

}  // namespace topoplace::divisions
