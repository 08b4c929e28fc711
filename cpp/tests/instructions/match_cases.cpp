#include <vector>

#include "check.hpp"
#include "first_vertices.hpp"
#include "instructions/counted.hpp"
#include "topoplace/match.hpp"
#include "work/match_targets.hpp"

namespace match = topoplace::match;
using match::Objective;

namespace {

// Points of a ring with chords: every vertex has six neighbours, near and far.
work::Graph ring_with_chords(std::int32_t size) {
    work::Random random(6);
    std::vector<work::Edge> edges;
    for (std::int32_t v = 0; v < size; ++v) {
        edges.push_back({v, (v + 1) % size, double(1 + random.below(50))});
        edges.push_back({v, (v + 7) % size, double(1 + random.below(50))});
        edges.push_back({v, (v + size / 3) % size, double(1 + random.below(50))});
    }
    return {size, edges};
}

}  // namespace

TEST(best_rings_on_a_busy_machine) {
    const match::Target target(work::linked_machines(2));
    const match::Pattern pattern(work::ring(4));
    std::vector<std::vector<std::int32_t>> states;
    work::Random random(7);
    for (int state = 0; state < 60; ++state) {
        states.emplace_back();
        for (std::int32_t v = 0; v < 16; ++v) {
            if (random.below(2) == 0 || v < 4) states.back().push_back(v);
        }
    }
    counted([&] {
        for (const auto& free : states)
            CHECK(match::best_subgraph(pattern, target, free, Objective::sum, {}).optimal);
    });
}

TEST(best_tree_on_a_crowded_cluster) {
    const match::Target target(work::linked_machines(8));
    const match::Pattern pattern(work::tree(12));
    const auto free = work::part_of(64, 60);
    counted([&] { CHECK(match::best_subgraph(pattern, target, free, Objective::sum, {}).optimal); });
}

TEST(best_bottleneck_on_a_crowded_cluster) {
    const match::Target target(work::measured_machines(8));
    const match::Pattern pattern(work::ring(16));
    const auto free = work::part_of(64, 50);
    counted([&] { CHECK(match::best_subgraph(pattern, target, free, Objective::bottleneck, {}).optimal); });
}

TEST(best_ring_in_a_sparse_graph) {
    const match::Target target(ring_with_chords(2000), match::Layout::sparse);
    const match::Pattern pattern(work::ring(6));
    const auto free = first_vertices(2000);
    counted([&] { CHECK(match::best_subgraph(pattern, target, free, Objective::sum, {}).optimal); });
}

TEST(best_rings_by_counts_of_links) {
    const match::Target target(work::linked_machines(2));
    const match::Pattern pattern(work::ring(5));
    std::vector<std::uint8_t> classes(16 * 16);
    for (std::int32_t u = 0; u < 16; ++u) {
        for (std::int32_t v = 0; v < 16; ++v) {
            const double weight = u == v ? 0 : target.graph().weight(u, v);
            classes[std::size_t(u * 16 + v)] = weight >= 50 ? 2 : weight >= 25 ? 1 : 0;
        }
    }
    const auto counts = match::LinkCountScore::count_vectors(5, 3);
    std::vector<double> scores;
    for (std::size_t row = 0; row < counts.size(); row += 3)
        scores.push_back(5.0 * counts[row + 2] + 2.0 * counts[row + 1] - counts[row]);
    const match::LinkCountScore score(target, classes, 3, 5, scores);
    counted([&] {
        for (std::int32_t first = 12; first <= 16; ++first)
            CHECK(match::best_subgraph(pattern, target, first_vertices(first), score, {}).optimal);
    });
}

TEST(best_remainder_of_a_machine) {
    const match::Target target(work::linked_machines(2));
    const match::Pattern pattern(work::tree(5));
    const auto free = first_vertices(16);
    counted([&] { CHECK(match::best_remainder(pattern, target, free, {}).optimal); });
}

TEST(counting_rings_in_a_mesh) {
    const match::Target target(work::grid(8, 8));
    const match::Pattern pattern(work::ring(12));
    counted([&] { CHECK(match::count_subgraphs(pattern, target, {}).count > 0); });
}

TEST(listing_images_of_trees) {
    const match::Target target(work::grid(8, 8));
    const match::Pattern pattern(work::tree(6));
    counted([&] {
        CHECK(match::enumerate_subgraphs(pattern, target, {.distinct = match::Distinct::images}).complete);
    });
}
