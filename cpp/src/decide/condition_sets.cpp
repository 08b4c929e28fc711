// The sets of GPUs of machines, condition by condition.
#include "topoplace/condition_sets.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "graph/index.hpp"
#include "job_traffic/checks.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::decide {
namespace {

using Words = MachineConditions::Words;

bool has(const Words& words, std::size_t bit) {
    return bit / 64 < words.size() && (words[bit / 64] >> (bit % 64) & 1U) != 0;
}

// The parts of regions that a job of this size may get.
std::vector<Gpus> regions_with_room(const TemplateParams& own, const Gpus& usable, std::size_t size) {
    if (own.regions.empty() && !own.are_fixed) return {usable};
    std::vector<Gpus> found;
    for (const Gpus& region : own.regions) {
        Gpus part;
        std::ranges::set_intersection(region, usable, std::back_inserter(part));
        const bool has_room =
            own.are_fixed ? part.size() == region.size() && part.size() == size : part.size() >= size;
        if (has_room) found.push_back(std::move(part));
    }
    return found;
}

}  // namespace

Fault check(const ConditionSetsParams& params, const MachineConditions& conditions) {
    const auto& templates = params.templates;
    if (auto fault = traffic::check_size("templates", templates.size(), index(conditions.num_templates())))
        return fault;
    for (const TemplateParams& own : templates) {
        if (own.machine == nullptr) return "machine is missing";
        for (const Gpus& region : own.regions) {
            if (auto fault = traffic::check_range("regions", region, 0, own.machine->num_gpus()))
                return fault;
            if (!std::ranges::is_sorted(region)) return "regions has one that does not ascend";
        }
    }
    if (params.job.takes_parts && !conditions.sight().shares) return "conditions do not see shares of GPUs";
    if (params.share < 1) return "share = " + std::to_string(params.share) + ": below 1";
    if (params.job.size < 1) return "size = " + std::to_string(params.job.size) + ": below 1";
    if (params.alternatives == 0) return "alternatives = 0: below 1";
    if (auto fault = check_slack(params.slack)) return fault;
    return traffic::check(params.job.collectives, index(params.job.size));
}

ConditionSets::ConditionSets(MachineConditions& conditions, ConditionSetsParams params)
    : conditions_(conditions), params_(std::move(params)), generation_(conditions.generation()) {
    TOPOPLACE_ASSERT(!check(params_, conditions));
}

std::optional<SetParams> ConditionSets::asked(std::int32_t number) const {
    const MachineConditions::Condition& condition = conditions_.condition(number);
    const TemplateParams& own = params_.templates[index(condition.machine_template)];
    SetParams found;
    found.free.resize(own.machine->num_gpus());
    Gpus usable;
    for (std::size_t gpu = 0; gpu < found.free.size(); ++gpu) {
        found.free[gpu] = has(condition.free, gpu);
        const bool has_room =
            params_.job.takes_parts ? condition.left[gpu] >= params_.share : found.free[gpu];
        if (has_room && has(own.suitable, gpu)) usable.push_back(static_cast<std::int32_t>(gpu));
    }
    if (params_.job.takes_parts) found.left = condition.left;
    const std::size_t size = index(params_.job.size);
    if (usable.size() < size) return std::nullopt;
    found.regions = regions_with_room(own, usable, size);
    found.machine = own.machine;
    found.job = params_.job;
    found.are_fixed = own.are_fixed;
    found.slack = params_.slack;
    found.alternatives = params_.alternatives;
    found.near_only = params_.near_only;
    return found;
}

// The best options of some conditions, up to the first for which there is no time; empty ones without room.
std::vector<SetResult> ConditionSets::found_of(std::span<const std::int32_t> conditions,
                                               OrdersOfMachines& known, const StopCondition& stop,
                                               const OtherThreads& others) const {
    std::vector<std::optional<SetParams>> each;
    for (const std::int32_t condition : conditions) each.push_back(asked(condition));
    std::vector<SetResult> found;
    const WhileOthersGoOn meanwhile(others);
    for (auto& params : each) {
        if (!params) {
            found.emplace_back();
            continue;
        }
        if (stop.time_is_up()) break;
        KnownOrders& orders = known[params->machine];
        if (orders.size() > kMostKnown) orders.clear();
        params->known = &orders;
        params->stop = stop;
        found.push_back(rank_sets(*params));
        if (found.back().complete) continue;
        found.pop_back();
        break;
    }
    return found;
}

bool ConditionSets::rank(MachineRanking& ranking, const StopCondition& stop, const OtherThreads& others) {
    OrdersOfMachines known;
    for (auto unknown = ranking.unknown(); !unknown.empty(); unknown = ranking.unknown()) {
        unknown.resize(std::min(unknown.size(), kAskedAtOnce));
        const std::uint64_t generation = conditions_.generation();
        const std::vector<SetResult> found = found_of(unknown, known, stop, others);
        if (generation != conditions_.generation()) continue;  // another thread has come between
        for (std::size_t i = 0; i < found.size(); ++i) {
            keep(unknown[i], found[i]);
            const Best* const best = kept(unknown[i]);
            if (best == nullptr) continue;  // its machines have changed meanwhile
            std::optional<MachineRanking::Key> key;
            if (best->option) key.emplace(best->option->order.begin(), best->option->order.end());
            ranking.set(unknown[i], std::move(key));
        }
        if (found.size() < unknown.size() || (stop.interrupted != nullptr && stop.interrupted()))
            return false;
    }
    return true;
}

void ConditionSets::keep(std::int32_t condition, const SetResult& result) {
    if (generation_ != conditions_.generation()) kept_.clear();
    generation_ = conditions_.generation();
    Best& best = kept_[condition];
    best.all_compared = result.all_compared;
    best.option.reset();
    if (!result.options.empty()) best.option = result.options.front();
    if (kept_.size() > most_kept_) forget();
}

const ConditionSets::Best* ConditionSets::kept(std::int32_t condition) const {
    if (generation_ != conditions_.generation()) return nullptr;
    const auto known = kept_.find(condition);
    return known == kept_.end() ? nullptr : &known->second;
}

const ConditionSets::Best* ConditionSets::best(std::int32_t condition, const StopCondition& stop,
                                               const OtherThreads& others) {
    if (const Best* const known = kept(condition)) return known;
    OrdersOfMachines known;
    const std::uint64_t generation = conditions_.generation();
    const std::vector<SetResult> found = found_of(std::span(&condition, 1), known, stop, others);
    if (found.empty() || generation != conditions_.generation()) return nullptr;
    keep(condition, found.front());
    return kept(condition);
}

// Drops what is kept of conditions without machines.
void ConditionSets::forget() {
    std::erase_if(kept_, [&](const auto& one) { return conditions_.machines(one.first).empty(); });
    most_kept_ = 2 * kept_.size() + kLeastKept;
}

}  // namespace topoplace::decide
