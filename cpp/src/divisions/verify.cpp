// The check of a division by the definition alone; shares no code with the search.
#include <string>

#include "topoplace/divisions.hpp"

namespace topoplace::divisions {

namespace {

constexpr double kRounding = 1 + 2e-9;

struct Has {
    std::int32_t tasks = 0;
    std::uint64_t gpus = 0;  // as a bit mask, up to 64
};

class Verifier {
  public:
    Verifier(const DivideParams& params, const Division& division)
        : params_(params), division_(division), has_(params.most.size()) {}

    Fault verify() {
        if (division_.gpus.size() != params_.units.size()) return "not a GPU for each task";
        if (Fault fault = verify_gpus()) return fault;
        if (Fault fault = verify_units()) return fault;
        for (std::size_t machine = 0; machine < has_.size(); ++machine) {
            if (Fault fault = verify_machine(machine)) return fault;
        }
        return {};
    }

  private:
    Fault verify_gpus() {
        std::vector<std::uint64_t> place(params_.machine_of.size());  // of each GPU on its machine
        std::vector<std::uint64_t> seen(params_.most.size(), 0);
        for (std::size_t gpu = 0; gpu < place.size(); ++gpu) {
            place[gpu] = seen[static_cast<std::size_t>(params_.machine_of[gpu])]++;
        }
        std::vector<bool> taken(place.size());
        std::int64_t moves = 0;
        for (std::size_t task = 0; task < division_.gpus.size(); ++task) {
            const auto gpu = static_cast<std::size_t>(division_.gpus[task]);
            const std::string name = "task " + std::to_string(task);
            if (division_.gpus[task] < 0 || gpu >= place.size()) return name + " has no GPU";
            if (params_.usable[gpu] == 0) return name + " has a GPU that the job may not use";
            if (taken[gpu]) return name + " has the GPU of another task";
            taken[gpu] = true;
            Has& has = has_[static_cast<std::size_t>(params_.machine_of[gpu])];
            ++has.tasks;
            if (place[gpu] < 64) has.gpus |= std::uint64_t{1} << place[gpu];
            if (params_.stays.empty() || params_.stays[task] != division_.gpus[task]) ++moves;
        }
        if (moves != division_.moves) return std::to_string(moves) + " tasks move";
        return {};
    }

    Fault verify_units() const {
        const auto size = static_cast<std::size_t>(params_.unit_size);
        for (std::size_t i = 0; i < params_.units.size(); ++i) {
            if (machine_of(i) != machine_of(i - i % size)) {
                return "unit " + std::to_string(i / size) + " is on several machines";
            }
        }
        return {};
    }

    // Of the task at this place of `units`.
    std::int32_t machine_of(std::size_t place) const {
        const auto task = static_cast<std::size_t>(params_.units[place]);
        return params_.machine_of[static_cast<std::size_t>(division_.gpus[task])];
    }

    Fault verify_machine(std::size_t machine) const {
        const Has& has = has_[machine];
        if (has.tasks == 0) return {};
        const std::string name = "machine " + std::to_string(machine);
        if (has.tasks > params_.most[machine]) return name + " has too many tasks";
        const auto sets = params_.seconds_of_sets[static_cast<std::size_t>(params_.class_of[machine])];
        const double seconds =
            sets.empty() ? params_.seconds_of_count[static_cast<std::size_t>(has.tasks / params_.unit_size)]
                         : sets[static_cast<std::size_t>(has.gpus)];
        if (seconds > division_.seconds * kRounding) return name + " takes longer than the limit";
        return {};
    }

    const DivideParams& params_;
    const Division& division_;
    std::vector<Has> has_;
};

}  // namespace

Fault verify_division(const DivideParams& params, const Division& division) {
    return Verifier(params, division).verify();
}

}  // namespace topoplace::divisions
