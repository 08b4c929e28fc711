// Branch and bound over side vectors: dense weights, vertices in a fixed order, one run for each number of
// vertices on side 1 where all weigh the same.
//
// Reference: Land and Doig, Econometrica 28 (1960).
#include "partition/exact.hpp"

#include <algorithm>
#include <bit>
#include <concepts>
#include <limits>

#include "graph/index.hpp"

namespace topoplace::partition {
namespace {

using Bits = std::uint32_t;  // a side vector: vertex 0 is the highest of n bits, so that numbers order it
constexpr std::size_t kMost = kMaxExactVertices;

// The best side vector so far, over all runs.
struct Incumbent {
    bool found = false;
    std::int64_t cut = 0;
    Bits bits = 0;
};

// The problem with its vertices in the order in which the search places them.
struct Ordered {
    std::size_t size = 0;
    std::array<std::size_t, kMost> vertex{};                    // at each position
    std::array<std::array<std::int64_t, kMost>, kMost> weight;  // between positions
    std::array<std::int64_t, kMost> vertex_weight{};            // at each position
    std::array<std::int8_t, kMost> fixed{};                     // at each position
    std::array<Bits, kMost + 1> open{};                         // vertices from each position on
    std::int64_t total = 0;                                     // of the edges
    bool uniform = true;                                        // all vertices weigh the same

    Bits bit(std::size_t position) const { return Bits{1} << (size - 1 - vertex[position]); }
};

using Dense = std::array<std::array<std::int64_t, kMost>, kMost>;

// The weights between vertices, without the power of two they share. Returns their total.
std::int64_t fill_dense(Dense& weight, const Graph& graph, WorkMeter& meter) {
    const double scale = *scale_of(graph, meter);  // of too few edges to be stopped
    const auto n = index(graph.num_vertices());
    std::uint64_t all = 0;
    std::int64_t total = 0;
    for (std::size_t v = 0; v < n; ++v) {
        std::fill_n(weight[v].begin(), n, 0);
        const auto neighbors = graph.neighbors(static_cast<std::int32_t>(v));
        const auto weights = graph.weights(static_cast<std::int32_t>(v));
        for (std::size_t i = 0; i < neighbors.size(); ++i) {
            const std::int64_t value = scaled(weights[i], scale);
            weight[v][index(neighbors[i])] = value;
            all |= static_cast<std::uint64_t>(value);
            total += value;
        }
    }
    TOPOPLACE_ASSERT(total % 2 == 0);
    const int shift = all == 0 ? 0 : std::countr_zero(all);
    for (std::size_t v = 0; shift > 0 && v < n; ++v) {
        for (std::size_t u = 0; u < n; ++u) weight[v][u] >>= shift;
    }
    return total >> (shift + 1);
}

// Fixed vertices first, then vertex 0, then always the vertex tied most strongly to those placed.
void choose_order(Ordered& ordered, const Dense& weight, std::span<const std::int8_t> fixed) {
    const std::size_t n = ordered.size;
    std::array<std::int64_t, kMost> tie{};
    for (std::size_t v = 0; v < n; ++v) {
        if (!fixed.empty() && fixed[v] != kFreeVertex) tie[v] = std::numeric_limits<std::int64_t>::max() / 2;
    }
    Bits open = n == 0 ? 0 : static_cast<Bits>((std::uint64_t{1} << n) - 1);
    for (std::size_t position = 0; position < n; ++position) {
        std::size_t next = kMost;
        for (std::size_t v = 0; v < n; ++v) {
            if ((open >> v & 1U) != 0 && (next == kMost || tie[v] > tie[next])) next = v;
        }
        TOPOPLACE_ASSERT(next < n);
        ordered.vertex[position] = next;
        open &= ~(Bits{1} << next);
        for (std::size_t v = 0; v < n; ++v) tie[v] += weight[next][v];
    }
}

void order(Ordered& ordered, const Graph& graph, const BipartitionParams& params, WorkMeter& meter) {
    Dense weight;
    const std::size_t n = ordered.size = index(graph.num_vertices());
    ordered.total = fill_dense(weight, graph, meter);
    choose_order(ordered, weight, params.fixed);
    for (std::size_t i = n; i-- > 0;) {
        const std::size_t v = ordered.vertex[i];
        for (std::size_t j = 0; j < n; ++j) ordered.weight[i][j] = weight[v][ordered.vertex[j]];
        ordered.fixed[i] = params.fixed.empty() ? kFreeVertex : params.fixed[v];
        ordered.vertex_weight[i] = params.vertex_weights.empty() ? 1 : params.vertex_weights[v];
        ordered.uniform = ordered.uniform && ordered.vertex_weight[i] == ordered.vertex_weight[n - 1];
        ordered.open[i] = ordered.open[i + 1] | ordered.bit(i);
    }
}

// Of the same number of zeros after `chosen`, the smallest vector: its `ones` on the last open vertices.
Bits smallest_completion(Bits chosen, Bits open, std::int64_t ones) {
    TOPOPLACE_ASSERT((chosen & open) == 0);
    for (; ones > 0; --ones) {
        chosen |= open & (~open + 1);
        open &= open - 1;
    }
    return chosen;
}

// One run over the side vectors. Value holds every sum of edge weights, Width every position.
template <std::signed_integral Value, std::size_t Width>
class Search {
  public:
    // `base`: taken off every cut, as `baseline` is off every weight. `ones`: how many vertices side 1 gets
    // where that is given, else 0.
    Search(const Ordered& ordered, std::int64_t baseline, std::int64_t base,
           const std::array<std::int64_t, 2>& limits, std::int64_t ones, bool mirrored, WorkMeter& meter,
           Incumbent& incumbent)
        : ordered_(ordered),
          base_(base),
          limits_(limits),
          ones_(ones),
          mirrored_(mirrored),
          meter_(meter),
          incumbent_(incumbent) {
        const std::size_t n = ordered.size;
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = i + 1; j < n; ++j)
                later_[i][j] = static_cast<Value>(ordered.weight[i][j] - baseline);
        }
        TOPOPLACE_ASSERT(n <= Width && baseline >= 0 && ordered.total <= std::numeric_limits<Value>::max());
        if (incumbent.found) best_ = incumbent.cut - base;
    }

    void run() { descend(0, Ties{}, Ties{}, 0, {}, 0, 0); }

  private:
    // Of each position to one side; those placed keep what they had when they were.
    using Ties = std::array<Value, Width>;

    void descend(std::size_t position, const Ties& to_zero, const Ties& to_one, Value regret,
                 std::array<std::int64_t, 2> held, Bits bits, std::int64_t ones) {
        TOPOPLACE_ASSERT(std::popcount(bits) == ones && regret >= 0);
        TOPOPLACE_ASSERT(held[0] <= limits_[0] && held[1] <= limits_[1]);
        if (position == ordered_.size) {
            record(sum_of_minima(to_zero, to_one) + regret, bits);
            return;
        }
        const int cheaper = to_zero[position] >= to_one[position] ? 0 : 1;
        place(position, cheaper, to_zero, to_one, regret, held, bits, ones);
        const Value more = to_zero[position] - to_one[position];
        place(position, 1 - cheaper, to_zero, to_one, regret + std::max(more, Value(-more)), held, bits,
              ones);
    }

    void place(std::size_t position, int side, const Ties& to_zero, const Ties& to_one, Value regret,
               std::array<std::int64_t, 2> held, Bits bits, std::int64_t ones) {
        const auto at = index(side);
        held[at] += ordered_.vertex_weight[position];
        if (held[at] > limits_[at] || !allowed(position, side)) return;
        if (meter_.stopped() || meter_.visit()) return;
        Ties ties = side == 0 ? to_zero : to_one;
        for (std::size_t j = 0; j < Width; ++j) ties[j] += later_[position][j];
        const Ties& zero = side == 0 ? ties : to_zero;
        const Ties& one = side == 0 ? to_one : ties;
        if (side == 1) {
            bits |= ordered_.bit(position);
            ++ones;
        }
        if (!hopeless(sum_of_minima(zero, one) + regret, position + 1, bits, ones))
            descend(position + 1, zero, one, regret, held, bits, ones);
    }

    bool allowed(std::size_t position, int side) const {
        if (ordered_.fixed[position] != kFreeVertex) return ordered_.fixed[position] == side;
        return !(mirrored_ && position == 0 && side == 1);
    }

    static Value sum_of_minima(const Ties& a, const Ties& b) {
        Value sum = 0;
        for (std::size_t j = 0; j < Width; ++j) sum += std::min(a[j], b[j]);
        return sum;
    }

    bool hopeless(Value bound, std::size_t position, Bits bits, std::int64_t ones) const {
        if (bound != best_) return bound > best_;
        return smallest_completion(bits, ordered_.open[position], ones_ - ones) >= incumbent_.bits;
    }

    // Whatever gets here is better than the incumbent, or its equal and lexicographically smaller.
    void record(Value cut, Bits bits) {
        TOPOPLACE_ASSERT(!incumbent_.found || cut < best_ || (cut == best_ && bits < incumbent_.bits));
        TOPOPLACE_ASSERT(cut + base_ == crossing(bits));
        best_ = cut;
        incumbent_ = {.found = true, .cut = cut + base_, .bits = bits};
    }

    // By the definition: the weight of the pairs on different sides.
    std::int64_t crossing(Bits bits) const {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < ordered_.size; ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                const bool apart = ((bits & ordered_.bit(i)) == 0) != ((bits & ordered_.bit(j)) == 0);
                sum += apart ? ordered_.weight[i][j] : 0;
            }
        }
        return sum;
    }

    const Ordered& ordered_;
    std::int64_t base_;
    std::array<std::int64_t, 2> limits_;
    std::int64_t ones_;
    bool mirrored_;
    WorkMeter& meter_;
    Incumbent& incumbent_;
    std::int64_t best_ = std::numeric_limits<std::int64_t>::max();
    std::array<Ties, Width> later_{};  // to the positions after each one
};

template <std::signed_integral Value>
void search(const Ordered& ordered, std::int64_t baseline, std::int64_t base,
            const std::array<std::int64_t, 2>& limits, std::int64_t ones, bool mirrored, WorkMeter& meter,
            Incumbent& incumbent) {
    const auto run = [&]<std::size_t Width>() {
        Search<Value, Width>(ordered, baseline, base, limits, ones, mirrored, meter, incumbent).run();
    };
    if (ordered.size <= 8) {
        run.template operator()<8>();
    } else if (ordered.size <= 16) {
        run.template operator()<16>();
    } else {
        run.template operator()<24>();
    }
}

std::int64_t lightest_pair(const Ordered& ordered) {
    std::int64_t lightest = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < ordered.size; ++i) {
        for (std::size_t j = i + 1; j < ordered.size; ++j)
            lightest = std::min(lightest, ordered.weight[i][j]);
    }
    return ordered.size < 2 ? 0 : lightest;
}

// Vertices that all weigh the same: a run for each number of them that side 1 may get.
template <std::signed_integral Value>
void search_by_count(const Ordered& ordered, const std::array<std::int64_t, 2>& limits, bool mirrored,
                     WorkMeter& meter, Incumbent& incumbent) {
    const auto n = static_cast<std::int64_t>(ordered.size);
    const std::int64_t each = ordered.vertex_weight[0];
    const std::int64_t least = std::max<std::int64_t>(0, n - limits[0] / each);
    const std::int64_t most = std::min(n, limits[1] / each);
    const std::int64_t baseline = lightest_pair(ordered);
    for (std::int64_t ones = least; ones <= most; ++ones) {
        search<Value>(ordered, baseline, baseline * ones * (n - ones), {(n - ones) * each, ones * each}, ones,
                      mirrored, meter, incumbent);
    }
}

template <std::signed_integral Value>
void search_all(const Ordered& ordered, const std::array<std::int64_t, 2>& limits, bool mirrored,
                WorkMeter& meter, Incumbent& incumbent) {
    if (ordered.uniform && ordered.size > 0 && ordered.vertex_weight[0] > 0) {
        search_by_count<Value>(ordered, limits, mirrored, meter, incumbent);
    } else {
        search<Value>(ordered, 0, 0, limits, 0, mirrored, meter, incumbent);
    }
}

}  // namespace

void prove(const Graph& graph, const BipartitionParams& params, const std::array<std::int64_t, 2>& limits,
           BipartitionResult& result) {
    WorkMeter meter(params.stop);
    Ordered ordered;
    order(ordered, graph, params, meter);
    const bool any_fixed = std::any_of(params.fixed.begin(), params.fixed.end(),
                                       [](std::int8_t side) { return side != kFreeVertex; });
    const bool mirrored = !any_fixed && limits[0] == limits[1];
    Incumbent best;
    if (ordered.total < std::int64_t{1} << 30) {
        search_all<std::int32_t>(ordered, limits, mirrored, meter, best);
    } else {
        search_all<std::int64_t>(ordered, limits, mirrored, meter, best);
    }
    result.nodes = meter.nodes();
    result.complete = !meter.stopped();
    result.optimal = result.complete && best.found;
    if (best.found) {
        result.status = result.optimal ? BipartitionStatus::optimal : BipartitionStatus::feasible;
    } else {
        result.status = result.complete ? BipartitionStatus::infeasible : BipartitionStatus::not_found;
    }
    if (best.found) {
        for (std::size_t v = 0; v < ordered.size; ++v) {
            result.side.push_back(static_cast<std::int8_t>(best.bits >> (ordered.size - 1 - v) & 1U));
        }
    }
}

}  // namespace topoplace::partition
