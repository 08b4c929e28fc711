#include <algorithm>
#include <cstdlib>
#include <vector>

#include "instructions/counted.hpp"
#include "topoplace/distribution.hpp"
#include "topoplace/mapping.hpp"
#include "topoplace/partition.hpp"
#include "work/work.hpp"

namespace mapping = topoplace::mapping;
namespace partition = topoplace::partition;

namespace {

// Machines of eight in racks of four: 1 within a machine, 3 within a rack, 6 between racks.
mapping::Target racks(std::int32_t machines) {
    std::vector<double> distance;
    for (std::int32_t u = 0; u < 8 * machines; ++u) {
        for (std::int32_t v = 0; v < 8 * machines; ++v)
            distance.push_back(u == v ? 0 : u / 8 == v / 8 ? 1 : u / 32 == v / 32 ? 3 : 6);
    }
    return {8 * machines, distance};
}

}  // namespace

TEST(proven_halves_of_a_dense_graph) {
    work::Random random(3);
    const work::Graph graph = work::random_graph(random, 20, 60, 6);
    counted([&] { CHECK(partition::bipartition(graph, {}).optimal); });
}

TEST(halves_of_a_mesh) {
    const work::Graph graph = work::grid(40, 40);
    counted([&] { CHECK(partition::bipartition(graph, {.imbalance = 0.03, .starts = 4}).cut < 60); });
}

TEST(tasks_mapped_by_halves) {
    const mapping::Source source(work::grid(4, 6));
    const mapping::Target target = racks(8);
    counted([&] { CHECK(mapping::map_graph(source, target, {.proof_nodes = 0}).found); });
}

TEST(tasks_mapped_with_a_proof) {
    const mapping::Source source(work::grid(2, 5));
    std::vector<double> distance;  // a mesh of 4 by 4
    for (std::int32_t u = 0; u < 16; ++u) {
        for (std::int32_t v = 0; v < 16; ++v)
            distance.push_back(std::abs(u / 4 - v / 4) + std::abs(u % 4 - v % 4));
    }
    const mapping::Target target(16, distance);
    counted([&] { CHECK(mapping::map_graph(source, target, {.method = mapping::Method::exact}).optimal); });
}

TEST(tasks_distributed_over_machines) {
    const mapping::Source source(work::grid(8, 12));
    const std::vector<std::int32_t> room(14, 8);
    std::vector<double> distance;
    for (std::int32_t u = 0; u < 14; ++u) {
        for (std::int32_t v = 0; v < 14; ++v) distance.push_back(u == v ? 0 : u / 4 == v / 4 ? 3 : 6);
    }
    counted(
        [&] { CHECK(mapping::distribute(source, {.room = room, .distance = distance, .starts = 1}).found); });
}
