// Condition sets: the best set of a machine's GPUs for a job, found once for each condition of machines.
//
// For jobs that get whole GPUs. The conditions of machines see no jobs, so that equal free GPUs of equal
// machines are one condition.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "topoplace/machine_conditions.hpp"
#include "topoplace/machine_sets.hpp"

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

    // Increases when all conditions are renumbered.
    std::uint64_t generation() const { return conditions_.generation(); }
    // What to ask `rank_sets` about a condition; nothing where the job has no room.
    std::optional<SetParams> asked(std::int32_t condition) const;
    // Keeps the best option that was found of a condition.
    void keep(std::int32_t condition, const SetResult& result);
    // What is kept; null where nothing is.
    const Best* best(std::int32_t condition) const;

  private:
    static constexpr std::size_t kLeastKept = 256;  // conditions without machines

    void forget();

    MachineConditions& conditions_;
    ConditionSetsParams params_;
    std::unordered_map<std::int32_t, Best> kept_{};
    std::uint64_t generation_ = 0;
    std::size_t most_kept_ = kLeastKept;
};

}  // namespace topoplace::decide
