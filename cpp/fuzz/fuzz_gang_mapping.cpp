// The gang mapping against every placement of a small gang; then, of a larger one, against its verifier, and
// from starts that it may not leave.
#include <algorithm>
#include <vector>

#include "fuzz.hpp"
#include "oracles/gang_cases.hpp"
#include "topoplace/gang_mapping.hpp"
#include "topoplace/random.hpp"

namespace {

namespace gang_mapping = topoplace::gang_mapping;
using gang_mapping::GangParams;
using gang_mapping::GangResult;
using oracle::GangCase;
constexpr double kEqual = 1 + 1e-9;

bool is_right(const GangParams& params, const GangResult& found) {
    return !gang_mapping::verify_gang(params, found.vertex_of, found.seconds, found.port_seconds);
}

// Of at most 4 tasks and 6 places, all placements are compared.
void try_small(fuzz::Bytes& bytes) {
    const auto fabric = oracle::random_fabric(bytes, 1 + bytes.below(4), 1 + bytes.below(3));
    const GangCase c = oracle::random_gang(bytes, fabric, 6, 4);
    GangParams params = c.params();
    params.work = 1 << 18;
    const GangResult found = gang_mapping::map_gang(params);
    const oracle::AllPlacements all(c);
    REQUIRE(found.complete && found.found == (all.count > 0));
    if (!found.found) return;
    REQUIRE(is_right(params, found));
    REQUIRE(found.seconds <= all.best.seconds * kEqual && all.best.seconds <= found.seconds * kEqual);
    REQUIRE(found.port_seconds <= all.best.port_seconds * kEqual);
}

// Items are where there is room, none at home alone.
void confine(fuzz::Bytes& bytes, GangCase& c) {
    std::vector<std::int32_t> left = c.tree.room;
    for (std::int32_t item = 0; item < c.tree.items; ++item) {
        std::size_t leaf = 0;
        while (left[leaf] == 0) ++leaf;
        --left[leaf];
        c.tree.start.push_back(static_cast<std::int32_t>(leaf));
        c.tree.confined.push_back(bytes.below(3));
    }
}

void try_large(fuzz::Bytes& bytes) {
    const auto fabric = oracle::random_fabric(bytes, 1 + bytes.below(10), 1 + bytes.below(4));
    GangCase c = oracle::random_gang(bytes, fabric, 30, 24);
    GangParams params = c.params();
    params.work = 3000;
    const GangResult found = gang_mapping::map_gang(params);
    if (!found.found) return;
    REQUIRE(found.complete && is_right(params, found));
    REQUIRE(gang_mapping::map_gang(params).vertex_of == found.vertex_of);
    params.items.stop.max_nodes = std::uint64_t(bytes.below(8));
    const GangResult stopped = gang_mapping::map_gang(params);
    REQUIRE(stopped.found && is_right(params, stopped));
    confine(bytes, c);
    params = c.params();
    params.work = 0;
    const GangResult first = gang_mapping::map_gang(params);
    params.work = 3000;
    const GangResult kept = gang_mapping::map_gang(params);
    REQUIRE(is_right(params, first) && is_right(params, kept));
    REQUIRE(kept.seconds <= first.seconds * kEqual);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    try_small(bytes);
    // As many bytes as a large case may need, drawn by a seed of all of the input.
    std::uint64_t seed = size;
    for (std::size_t i = 0; i < size; ++i) seed = topoplace::Random(seed + data[i]).next();
    topoplace::Random random(seed);
    std::vector<std::uint8_t> more;
    while (more.size() < 3000) more.push_back(static_cast<std::uint8_t>(random.below(256)));
    fuzz::Bytes many(more.data(), more.size());
    try_large(many);
    return 0;
}
