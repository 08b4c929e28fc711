// Condition sets: the best set of a machine's GPUs for a job, found once for each condition of machines.
//
// For jobs that get whole GPUs, or shares of them. The conditions of machines see no jobs, so that equal free
// GPUs of equal machines are one condition.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "topoplace/machine_conditions.hpp"
#include "topoplace/machine_ranking.hpp"
#include "topoplace/machine_sets.hpp"
#include "topoplace/other_threads.hpp"

namespace topoplace::decide {

// The machines of a template, and the GPUs of these that a job may get.
struct TemplateParams {
    const Machine* machine = nullptr;
    MachineConditions::Words suitable{};  // GPUs that suit the job
    std::vector<Gpus> regions{};          // one of them has the whole job; none: it may get any GPUs
    bool are_fixed = false;               // the job gets a whole region
};

struct ConditionSetsParams {
    std::vector<TemplateParams> templates{};
    JobParams job{};
    std::int32_t share = 1;  // thousandths of a GPU that each task of a job that takes parts needs
    double slack = 0.01;
    std::size_t alternatives = 1;  // as in SetParams
    bool near_only = false;
};

// The first parameter that is out of range.
[[nodiscard]] Fault check(const ConditionSetsParams& params, const MachineConditions& conditions);

class ConditionSets {
  public:
    // The parameters pass `check`; the conditions, machines and collectives have to outlive it.
    ConditionSets(MachineConditions& conditions, ConditionSetsParams params);

    struct Best {
        std::optional<SetOption> option{};  // none where the job has no room
        bool all_compared = false;          // as in SetResult
    };

    const ConditionSetsParams& params() const { return params_; }
    MachineConditions& conditions() const { return conditions_; }

    // Sets the keys that a ranking of these conditions lacks. False if it is stopped; what is found before is
    // kept. Others may change the state meanwhile.
    bool rank(MachineRanking& ranking, const StopCondition& stop, const OtherThreads& others);
    // The best option of a condition, found now if it is not kept; null if that is stopped, or others have
    // changed the state.
    const Best* best(std::int32_t condition, const StopCondition& stop, const OtherThreads& others);
    // What to ask `rank_sets` about a condition; nothing where the job has no room.
    std::optional<SetParams> asked(std::int32_t condition) const;

  private:
    static constexpr std::size_t kLeastKept = 256;   // conditions without machines
    static constexpr std::size_t kAskedAtOnce = 32;  // conditions between two looks at interrupts
    static constexpr std::size_t kMostKnown = 1U
                                              << 14;  // orders of tasks that are kept for further conditions

    using OrdersOfMachines = std::unordered_map<const Machine*, KnownOrders>;

    std::vector<SetResult> found_of(std::span<const std::int32_t> conditions, OrdersOfMachines& known,
                                    const StopCondition& stop, const OtherThreads& others) const;
    void keep(std::int32_t condition, const SetResult& result);
    const Best* kept(std::int32_t condition) const;
    void forget();

    MachineConditions& conditions_;
    ConditionSetsParams params_;
    std::unordered_map<std::int32_t, Best> kept_{};
    std::uint64_t generation_ = 0;
    std::size_t most_kept_ = kLeastKept;
};

}  // namespace topoplace::decide
