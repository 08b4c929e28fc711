// The decision about a small gang against every assignment: GPUs of their own, no faster than any, and a
// bound that holds for all.
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
    const auto found = topoplace::decide::place_gang(params).best;
    std::int32_t room = 0;
    for (const std::int32_t one : c.sizes) room += std::min(one, c.most);
    REQUIRE(found.found == (room >= params.groups.num_tasks));
    if (!found.found) return 0;
    REQUIRE(std::set<std::int32_t>(found.gpus.begin(), found.gpus.end()).size() == c.size());
    const double seconds = c.seconds(found.gpus), best = oracle::AllAssignments(c).best;
    REQUIRE(seconds <= found.seconds * kEqual && found.seconds <= seconds * kEqual);
    REQUIRE(best <= seconds * kEqual && found.least <= best * kEqual);
    return 0;
}
