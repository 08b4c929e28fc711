// The search for automorphisms: colours are refined until they tell vertices apart or an automorphism is
// found.
#include "match/graphs/symmetry.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "graph/index.hpp"
#include "match/graphs/ragged.hpp"

namespace topoplace::match {
namespace {

using Colors = std::vector<std::uint64_t>;

std::uint64_t mix(std::uint64_t x) {  // the finaliser of splitmix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

Colors sorted(Colors colors) {
    std::sort(colors.begin(), colors.end());
    return colors;
}

class UnionFind {
  public:
    explicit UnionFind(std::int32_t size) : parent_(index(size)) {
        std::iota(parent_.begin(), parent_.end(), 0);
    }
    std::int32_t find(std::int32_t v) {
        while (parent_[index(v)] != v) {
            TOPOPLACE_ASSERT(parent_[index(v)] < v);
            parent_[index(v)] = parent_[index(parent_[index(v)])];
            v = parent_[index(v)];
        }
        return v;
    }
    void join(const Permutation& image) {
        for (std::int32_t v = 0; v < static_cast<std::int32_t>(image.size()); ++v) {
            const std::int32_t a = find(v);
            const std::int32_t b = find(image[index(v)]);
            parent_[index(std::max(a, b))] = std::min(a, b);
        }
    }

  private:
    std::vector<std::int32_t> parent_;
};

// Where the meter stops it ends early, and nothing it says is of use.
class AutomorphismSearch {
  public:
    AutomorphismSearch(const ColoredGraph& graph, WorkMeter& meter)
        : graph_(graph), meter_(meter), usual_(most_common_color(graph, meter)) {
        for (std::int32_t u = 0; u < graph.size; ++u) {
            if (meter.pass_time(16 * index(graph.size))) return;
            for (std::int32_t v = 0; v < graph.size; ++v) {
                if (u == v || graph.at(u, v) == usual_) continue;
                unusual_.push(v);
                ++unusual_pairs_;
            }
            unusual_.close_row();
        }
    }

    Colors initial() const {
        Colors colors(index(graph_.size));
        for (std::int32_t v = 0; v < graph_.size; ++v) colors[index(v)] = mix(graph_.at(v, v) + 1U);
        return refine(std::move(colors));
    }

    // Gives v a colour no other vertex has; the same one for the same number of vertices individualised
    // before.
    Colors individualize(Colors colors, std::int32_t v, std::uint64_t individualized) const {
        colors[index(v)] = mix(0x9e3779b97f4a7c15U * (individualized + 1));
        return refine(std::move(colors));
    }

    // An automorphism that takes the left colouring to the right one.
    std::optional<Permutation> find(const Colors& left, const Colors& right,
                                    std::uint64_t individualized) const {
        if (meter_.pass_time(512 * left.size())) return std::nullopt;
        const Colors classes = sorted(left);
        if (classes != sorted(right)) return std::nullopt;
        if (auto image = obvious(left, right)) return image;
        const std::int32_t x = first_in_a_shared_class(left, classes);
        if (x == kAbsent) return std::nullopt;
        const Colors next = individualize(left, x, individualized);
        for (std::int32_t y = 0; y < graph_.size; ++y) {
            if (right[index(y)] != left[index(x)]) continue;
            if (auto found = find(next, individualize(right, y, individualized), individualized + 1))
                return found;
        }
        return std::nullopt;
    }

    // Swapping u and v alone is an automorphism.
    bool twins(std::int32_t u, std::int32_t v) const {
        if (graph_.at(u, u) != graph_.at(v, v)) return false;
        for (std::int32_t x = 0; x < graph_.size; ++x) {
            if (x != u && x != v && graph_.at(u, x) != graph_.at(v, x)) return false;
        }
        return true;
    }

    // An automorphism that fixes these vertices, by the definition.
    bool keeps(const Permutation& image, std::span<const std::int32_t> fixed) const {
        for (std::int32_t u = 0; u < graph_.size; ++u) {
            if (image[index(u)] == u) continue;  // pairs of two such vertices stay as they are
            for (std::int32_t v = 0; v < graph_.size; ++v) {
                if (graph_.at(u, v) != graph_.at(image[index(u)], image[index(v)])) return false;
            }
        }
        return std::all_of(fixed.begin(), fixed.end(), [&](std::int32_t v) { return image[index(v)] == v; });
    }

  private:
    static std::uint32_t most_common_color(const ColoredGraph& graph, WorkMeter& meter) {
        std::map<std::uint32_t, std::int64_t> pairs;
        std::uint32_t color = 0;  // of the last pair
        std::int64_t* slot = nullptr;
        for (std::int32_t u = 0; u < graph.size; ++u) {
            if (meter.pass_time(32 * index(u))) break;
            for (std::int32_t v = 0; v < u; ++v) {
                if (graph.at(u, v) != color || slot == nullptr) {
                    color = graph.at(u, v);
                    slot = &pairs[color];
                }
                ++*slot;
            }
        }
        const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
        const auto most = std::max_element(pairs.begin(), pairs.end(), fewer);
        return most == pairs.end() ? 0 : most->first;
    }

    // A vertex's new colour: its old one, and the colours of the pairs it is in with the old ones of its
    // partners. The usual colour is summed up for all vertices at once, so that a round takes time by the
    // unusual pairs.
    Colors refine(Colors colors) const {
        if (meter_.stopped()) return colors;
        Colors next(colors.size());
        std::size_t classes = count(colors);
        while (classes < colors.size()) {
            if (meter_.pass_time(512 * colors.size() + 32 * unusual_pairs_)) break;
            std::uint64_t usual = 0;
            for (const std::uint64_t color : colors) usual += mix(color + usual_);
            for (std::int32_t v = 0; v < graph_.size; ++v) {
                std::uint64_t seen = usual - mix(colors[index(v)] + usual_);
                for (const std::int32_t u : unusual_[v]) {
                    seen += mix(colors[index(u)] + graph_.at(v, u)) - mix(colors[index(u)] + usual_);
                }
                next[index(v)] = mix(seen + 0x9e3779b97f4a7c15U * mix(colors[index(v)]));
            }
            const std::size_t refined = count(next);
            if (refined <= classes) break;
            classes = refined;
            colors.swap(next);
        }
        return colors;
    }

    static std::size_t count(const Colors& colors) {
        Colors order = sorted(colors);
        return static_cast<std::size_t>(std::unique(order.begin(), order.end()) - order.begin());
    }

    std::int32_t first_in_a_shared_class(const Colors& colors, const Colors& classes) const {
        for (std::int32_t v = 0; v < graph_.size; ++v) {
            const auto range = std::equal_range(classes.begin(), classes.end(), colors[index(v)]);
            if (range.second - range.first > 1) return v;
        }
        return kAbsent;
    }

    // Colour by colour, the vertices in ascending order: often that is all there is to it.
    std::optional<Permutation> obvious(const Colors& left, const Colors& right) const {
        const std::vector<std::int32_t> from = by_color(left);
        const std::vector<std::int32_t> to = by_color(right);
        Permutation image(left.size());
        for (std::size_t i = 0; i < from.size(); ++i) image[index(from[i])] = to[i];
        return is_automorphism(image) ? std::optional(image) : std::nullopt;
    }

    static std::vector<std::int32_t> by_color(const Colors& colors) {
        std::vector<std::int32_t> order(colors.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::int32_t a, std::int32_t b) { return colors[index(a)] < colors[index(b)]; });
        return order;
    }

    // A permutation that takes unusual pairs to such of the same colour has none left for the usual ones.
    bool is_automorphism(const Permutation& image) const {
        for (std::int32_t u = 0; u < graph_.size; ++u) {
            if (graph_.at(u, u) != graph_.at(image[index(u)], image[index(u)])) return false;
            for (const std::int32_t v : unusual_[u]) {
                if (graph_.at(u, v) != graph_.at(image[index(u)], image[index(v)])) return false;
            }
        }
        return true;
    }

    const ColoredGraph& graph_;
    WorkMeter& meter_;
    const std::uint32_t usual_;
    std::size_t unusual_pairs_ = 0;
    Ragged<std::int32_t> unusual_;  // by vertex, those it is joined to by another colour than the usual
};

// Colours once base[0 .. i-1] are individualised; those that tell base[i] apart already are not repeated.
// Unfinished where `meter` stops.
class Prefixes {
  public:
    Prefixes(const AutomorphismSearch& search, const std::vector<std::int32_t>& base, WorkMeter& meter)
        : colors_{search.initial()} {
        for (std::size_t i = 0; i < base.size(); ++i) {
            which_.push_back(colors_.size() - 1);
            const Colors& known = colors_.back();
            if (meter.pass_time(2 * known.size())) return;
            const auto its = known[index(base[i])];
            if (std::count(known.begin(), known.end(), its) > 1)
                colors_.push_back(search.individualize(known, base[i], i));
        }
        which_.push_back(colors_.size() - 1);
    }

    const Colors& operator[](std::size_t i) const { return colors_[which_[i]]; }
    // No other vertex has the colour of base[i].
    bool tells_apart(std::size_t i) const { return which_[i] == which_[i + 1]; }

  private:
    std::vector<Colors> colors_;
    std::vector<std::size_t> which_;
};

Permutation transposition(std::int32_t size, std::int32_t u, std::int32_t v) {
    Permutation image(index(size));
    std::iota(image.begin(), image.end(), 0);
    std::swap(image[index(u)], image[index(v)]);
    return image;
}

// Finds generators that join base[i] to the others of its orbit. False where `meter` stops.
bool join_orbit(std::size_t i, const AutomorphismSearch& search, const Prefixes& prefix, UnionFind& classes,
                StabilizerChain& chain, WorkMeter& meter) {
    const auto& base = chain.base;
    const std::int32_t b = base[i];
    const Colors& before = prefix[i];
    if (meter.pass_time(64 * base.size())) return false;
    std::vector<std::int32_t> refuted;
    for (const std::int32_t v : std::span(base).subspan(i + 1)) {
        if (before[index(v)] != before[index(b)] || classes.find(v) == classes.find(b)) continue;
        const auto same = [&](std::int32_t w) { return classes.find(w) == classes.find(v); };
        if (std::any_of(refuted.begin(), refuted.end(), same)) continue;
        std::optional<Permutation> image =
            search.twins(b, v) ? transposition(static_cast<std::int32_t>(before.size()), b, v)
                               : search.find(prefix[i + 1], search.individualize(before, v, i), i + 1);
        if (meter.stopped()) return false;
        if (!image) {
            refuted.push_back(v);
            continue;
        }
        TOPOPLACE_ASSERT(search.keeps(*image, std::span(base).first(i)) && (*image)[index(b)] == v);
        classes.join(*image);
        chain.generators.push_back(std::move(*image));
    }
    return true;
}

}  // namespace

std::optional<StabilizerChain> stabilizer_chain(const ColoredGraph& graph,
                                                const std::vector<std::int32_t>& base, WorkMeter& meter) {
    const AutomorphismSearch search(graph, meter);
    if (meter.stopped()) return std::nullopt;
    const Prefixes prefix(search, base, meter);
    if (meter.stopped()) return std::nullopt;

    StabilizerChain chain{base, std::vector<std::vector<std::int32_t>>(base.size()), {}, 1};
    UnionFind classes(graph.size);
    for (std::size_t i = base.size(); i-- > 0;) {
        const std::int32_t b = base[i];
        if (prefix.tells_apart(i)) {
            chain.orbit[i].push_back(b);
            continue;
        }
        if (!join_orbit(i, search, prefix, classes, chain, meter)) return std::nullopt;
        for (std::int32_t v = 0; v < graph.size; ++v) {
            if (classes.find(v) == classes.find(b)) chain.orbit[i].push_back(v);
        }
        TOPOPLACE_ASSERT(std::binary_search(chain.orbit[i].begin(), chain.orbit[i].end(), b));
        chain.order *= static_cast<double>(chain.orbit[i].size());
    }
    return chain;
}

std::vector<std::int32_t> orbits_of(std::int32_t size, const std::vector<Permutation>& generators) {
    UnionFind classes(size);
    for (const Permutation& image : generators) classes.join(image);
    std::vector<std::int32_t> name(index(size));
    for (std::int32_t v = 0; v < size; ++v) name[index(v)] = classes.find(v);
    return name;
}

}  // namespace topoplace::match
