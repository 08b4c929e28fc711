// The decision about a small gang against every assignment: GPUs of their own, groups in one domain, no
// faster than any, and a bound that holds for all.
#include <algorithm>
#include <numeric>
#include <set>

#include "fuzz.hpp"
#include "oracles/gang_clusters.hpp"
#include "topoplace/gang_decision.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr double kEqual = 1 + 1e-6;
    fuzz::Bytes bytes(data, size);
    const oracle::OfferCase c = oracle::random_case(bytes, 8, 5);
    topoplace::decide::GangDecisionParams params{.search = c.params()};
    params.search.units = {};
    params.groups.num_tasks = static_cast<std::int32_t>(c.size());
    params.groups.are_stated = bytes.below(2) == 0;
    params.compact = bytes.below(3);
    REQUIRE(!check(params));
    std::vector<std::int32_t> tasks(c.size());
    std::iota(tasks.begin(), tasks.end(), 0);
    const topoplace::decide::GangLevels& levels = *params.search.levels;
    params.bound.tree = &levels;
    for (std::size_t level = 0; level < levels.size(); ++level) params.bound.level_of.push_back(level);
    if (c.size() > 1 && bytes.below(2) == 0) {
        const auto level = static_cast<std::size_t>(bytes.below(static_cast<std::int32_t>(levels.size())));
        const auto some = std::span(tasks).first(
            2 + static_cast<std::size_t>(bytes.below(static_cast<std::int32_t>(c.size()) - 1)));
        const bool is_required = bytes.below(2) == 0;
        (is_required ? params.bound.required : params.bound.preferred).push_back({level, some});
        auto& groups = level + 1 == levels.size() ? params.groups.on_machine : params.groups.in_domain;
        if (is_required) groups.emplace_back(some);
    }
    REQUIRE(!check(params));
    const auto found = topoplace::decide::place_gang(params);
    std::int32_t room = 0;
    for (const std::int32_t one : c.sizes) room += std::min(one, c.most);
    if (params.bound.required.empty()) REQUIRE(found.found == (room >= params.groups.num_tasks));
    REQUIRE(!topoplace::decide::can_place_gang(params) || found.found);
    if (!found.found) return 0;
    REQUIRE(std::set<std::int32_t>(found.gpus.begin(), found.gpus.end()).size() == c.size());
    const double seconds = c.seconds(found.gpus), best = oracle::AllAssignments(c).best;
    REQUIRE(seconds <= found.seconds * kEqual && found.seconds <= seconds * kEqual);
    REQUIRE(best <= seconds * kEqual && found.least <= best * kEqual);
    for (const auto& one : params.bound.required) {
        std::set<std::int64_t> domains;
        for (const std::int32_t task : one.tasks) {
            const std::int32_t machine = c.machine_of(found.gpus[static_cast<std::size_t>(task)]);
            domains.insert(levels[one.level].domains[static_cast<std::size_t>(machine)]);
        }
        REQUIRE(domains.size() == 1);
    }
    return 0;
}
