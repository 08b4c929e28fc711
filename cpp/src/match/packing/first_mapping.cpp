// Questions for the mapping kernel, whose answers start branch and bound.
#include "match/packing/first_mapping.hpp"

#include "topoplace/mapping.hpp"

namespace topoplace::match {
namespace {

constexpr std::uint64_t kStepsPerPair = 64;  // of a pattern vertex and a free one, as measured

}  // namespace

std::vector<std::int32_t> first_mapping(const Pattern::Impl& pattern, const Target::Impl& target,
                                        std::span<const std::int32_t> free, std::uint64_t seed,
                                        WorkMeter& meter) {
    const mapping::Target* distances = target.distances(meter);
    if (distances == nullptr || meter.stopped()) return {};
    mapping::MapParams params;
    params.free = free;
    params.proof_nodes = 0;
    params.seed = seed;
    params.stop = meter.deadline();
    const mapping::MapResult found = mapping::map_graph(pattern.source(), *distances, params);
    meter.spend(kStepsPerPair * index(pattern.size()) * free.size());
    return found.found ? found.target_of : std::vector<std::int32_t>{};
}

}  // namespace topoplace::match
