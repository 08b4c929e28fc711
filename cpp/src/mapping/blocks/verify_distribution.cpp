// Checks a distribution by the definition alone; shares no code with the searches.
#include <algorithm>
#include <cmath>

#include "graph/index.hpp"
#include "topoplace/distribution.hpp"

namespace topoplace::mapping {

Fault verify_distribution(const Graph& source, const DistributeParams& params,
                          std::span<const std::int32_t> block_of, double cost) {
    const std::size_t blocks = params.room.size();
    if (std::ssize(block_of) != source.num_vertices()) return "not one block for each task";
    std::vector<std::int64_t> tasks(blocks, 0);
    double sum = 0;
    double most = 0;
    for (const double distance : params.distance) most = std::max(most, distance);
    double dearest = 0;
    for (std::int32_t a = 0; a < source.num_vertices(); ++a) {
        const std::int32_t block = block_of[index(a)];
        if (block < 0 || index(block) >= blocks) return "a block that is not there";
        if (++tasks[index(block)] > params.room[index(block)]) return "a block with more tasks than room";
        for (std::size_t i = 0; i < source.neighbors(a).size(); ++i) {
            const std::int32_t b = source.neighbors(a)[i];
            if (b > a) continue;
            sum += source.weights(a)[i] * params.distance[index(block) * blocks + index(block_of[index(b)])];
            dearest += source.weights(a)[i] * most;
        }
    }
    if (std::abs(sum - cost) > 1e-9 * dearest) return "the cost is another one";
    return std::nullopt;
}

}  // namespace topoplace::mapping
