// The automorphism group of a small coloured graph, as a chain of stabilisers.
//
// Definitions. Fix an order b_0, b_1, ... of the vertices (the base). G_i is the group of automorphisms that
// fix b_0 .. b_{i-1}. orbit(i) is the set of images of b_i under G_i; the group's order is the product of the
// orbits' sizes (orbit-stabiliser theorem). Asking f(b_i) to come first among f(orbit(i)), for every i, keeps
// exactly one mapping f of each class of mappings that differ by an automorphism only (Grochow and Kellis
// 2007).
//
// Algorithm. Levels are built from the deepest up, so that every generator found so far fixes the prefix; a
// candidate image is tried only when the generators do not join it to b_i yet. A try individualises and
// refines colours (1-dimensional Weisfeiler-Leman) on both sides, and the mapping it ends in is checked edge
// by edge.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/index.hpp"
#include "topoplace/stop_condition.hpp"

namespace topoplace::match {

struct ColoredGraph {
    std::int32_t size = 0;
    std::vector<std::uint32_t> color;  // size x size, symmetric; the diagonal colours the vertices

    std::uint32_t at(std::int32_t u, std::int32_t v) const {
        return color[index(u) * index(size) + index(v)];
    }
};

using Permutation = std::vector<std::int32_t>;

struct StabilizerChain {
    std::vector<std::int32_t> base;
    std::vector<std::vector<std::int32_t>> orbit;  // of base[i] under G_i, ascending
    std::vector<Permutation> generators;
    double order = 1;  // of the whole group; exact up to 2^53
};

// None where `meter` stops.
std::optional<StabilizerChain> stabilizer_chain(const ColoredGraph& graph,
                                                const std::vector<std::int32_t>& base, WorkMeter& meter);

// The class of every vertex under the group the permutations generate, named by its smallest member.
std::vector<std::int32_t> orbits_of(std::int32_t size, const std::vector<Permutation>& generators);

}  // namespace topoplace::match
