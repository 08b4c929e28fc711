// The mapping kernel against the definition: the proof against all injective maps, the descents, with
// and without refinement, against their promises, on one small problem.
#include <cmath>
#include <limits>
#include <vector>

#include "fuzz.hpp"
#include "oracles/mapping_oracle.hpp"
#include "topoplace/mapping.hpp"

namespace {

namespace mapping = topoplace::mapping;

oracle::MapCase read_case(fuzz::Bytes& bytes) {
    constexpr double kDistance[6] = {1, 1, 20, 0, 2.5, 400};
    const std::int32_t form = bytes.below(4);
    oracle::MapCase c{fuzz::graph(bytes, 5), 1 + bytes.below(7), {}, {}, {}};
    c.distance.assign(std::size_t(c.size * c.size), 0);
    for (std::int32_t v = 0; v < c.size; ++v) {
        for (std::int32_t u = 0; u < v; ++u) {
            const double distance = kDistance[bytes.below(6)];
            c.distance[std::size_t(u * c.size + v)] = c.distance[std::size_t(v * c.size + u)] = distance;
        }
        if (form & 1) c.price.push_back(bytes.below(4));
        if (!(form & 2) || bytes.below(4) > 0) c.free.push_back(v);
    }
    return c;
}

bool verified(const oracle::MapCase& c, const mapping::MapParams& params, const mapping::MapResult& found,
              double cost) {
    return !mapping::verify_mapping(c.source, c.size, c.distance, params, found.target_of, cost);
}

void check_found(const oracle::MapCase& c, const mapping::MapParams& params, const mapping::MapResult& found,
                 double least) {
    REQUIRE(found.found && found.complete && found.cost == c.cost(found.target_of));
    REQUIRE(found.bound <= least && least <= found.cost);
    REQUIRE(found.optimal == (found.cost == found.bound) && (!found.optimal || found.cost == least));
    REQUIRE(verified(c, params, found, found.cost));
    REQUIRE(!verified(c, params, found, found.cost + 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    const oracle::MapCase c = read_case(bytes);
    const auto expected = oracle::best_mapping(c);
    const mapping::Source source(c.source);
    const mapping::Target target(c.size, c.distance);
    mapping::MapParams params;
    params.target_cost = c.price;
    params.free = c.free;
    params.method = mapping::Method::exact;
    const auto proven = mapping::map_graph(source, target, params);
    REQUIRE(proven.found == expected.has_value());
    if (!expected) return 0;
    const double least = c.cost(*expected);
    REQUIRE(proven.optimal && proven.target_of == *expected);
    check_found(c, params, proven, least);
    params.method = mapping::Method::drb;
    params.seed = std::uint64_t(bytes.below(256));
    const std::vector<std::vector<std::int32_t>> regions{c.free, {}, {0}};
    params.regions = regions;
    for (const std::int32_t kicks : {30, 0}) {
        params.kicks = kicks;
        params.proof_nodes = kicks > 0 ? 100 : 0;
        const auto found = mapping::map_graph(source, target, params);
        check_found(c, params, found, least);
        REQUIRE(mapping::map_graph(source, target, params).target_of == found.target_of);
    }
    return 0;
}
