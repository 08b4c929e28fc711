// Subgraph matching by the definition: try every injective map. Slow and plain; shares no code with the
// kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "topoplace/graph.hpp"

namespace oracle {

using Mapping = std::vector<std::int32_t>;

inline bool allowed(const topoplace::Graph& pattern, const topoplace::Graph& target, const Mapping& mapping,
                    bool induced, double min_weight) {
    for (std::size_t a = 0; a < mapping.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) {
            if (mapping[a] == mapping[b]) return false;
            const bool asked = pattern.weight(std::int32_t(a), std::int32_t(b)) > 0;
            const double weight = target.weight(mapping[a], mapping[b]);
            const bool there = weight > 0 && weight >= min_weight;
            if (asked ? !there : (induced && there)) return false;
        }
    }
    return true;
}

// Every mapping, in lexicographic order.
inline std::vector<Mapping> mappings(const topoplace::Graph& pattern, const topoplace::Graph& target,
                                     bool induced = false, double min_weight = 0) {
    std::vector<Mapping> found;
    Mapping prefix;
    auto extend = [&](auto&& self) -> void {
        if (!allowed(pattern, target, prefix, induced, min_weight)) return;
        if (std::int32_t(prefix.size()) == pattern.num_vertices()) {
            found.push_back(prefix);
            return;
        }
        const bool needs_edges = pattern.degree(std::int32_t(prefix.size())) > 0;
        for (std::int32_t v = 0; v < target.num_vertices(); ++v) {
            if (needs_edges && target.degree(v) == 0) continue;
            prefix.push_back(v);
            self(self);
            prefix.pop_back();
        }
    };
    extend(extend);
    return found;
}

inline Mapping sorted(Mapping mapping) {
    std::sort(mapping.begin(), mapping.end());
    return mapping;
}

// The target edges a mapping covers, each as one number, ascending: what tells images apart. A vertex that no
// edge touches counts as well.
inline Mapping image(const topoplace::Graph& pattern, const Mapping& mapping, std::int32_t num_targets) {
    Mapping covered;
    for (std::int32_t a = 0; a < pattern.num_vertices(); ++a) {
        const std::int32_t v = mapping[std::size_t(a)];
        if (pattern.degree(a) == 0) covered.push_back(v * num_targets + v);
        for (const std::int32_t b : pattern.neighbors(a)) {
            const std::int32_t w = mapping[std::size_t(b)];
            if (v < w) covered.push_back(v * num_targets + w);
        }
    }
    return sorted(covered);
}

// The first mapping of each key, in lexicographic order; `all` must be in that order.
template <class Key>
std::vector<Mapping> first_of_each(const std::vector<Mapping>& all, const Key& key) {
    std::map<Mapping, Mapping> first;
    for (const Mapping& mapping : all) first.emplace(key(mapping), mapping);
    std::vector<Mapping> found;
    for (const auto& entry : first) found.push_back(entry.second);
    std::sort(found.begin(), found.end());
    return found;
}

// The best mapping: highest score, then smallest sorted vertices, then smallest mapping. Scores compare with
// <.
template <class Score>
const Mapping* best(const std::vector<Mapping>& all, const Score& score) {
    const Mapping* winner = nullptr;
    for (const Mapping& mapping : all) {
        if (winner == nullptr || score(*winner) < score(mapping) ||
            (!(score(mapping) < score(*winner)) && sorted(mapping) < sorted(*winner))) {
            winner = &mapping;
        }
    }
    return winner;
}

// Weights of the target edges that the pattern's edges fall on, ascending.
inline std::vector<double> used_weights(const topoplace::Graph& pattern, const topoplace::Graph& target,
                                        const Mapping& mapping) {
    std::vector<double> weights;
    for (std::int32_t a = 0; a < pattern.num_vertices(); ++a) {
        for (const std::int32_t b : pattern.neighbors(a)) {
            if (a < b) weights.push_back(target.weight(mapping[std::size_t(a)], mapping[std::size_t(b)]));
        }
    }
    std::sort(weights.begin(), weights.end());
    return weights;
}

}  // namespace oracle
