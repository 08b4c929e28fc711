// Rings inside domains, channels between them, and the flows of other collectives.
#include "job_traffic/flow_maker.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "graph/index.hpp"

namespace topoplace::traffic {

FlowMaker::FlowMaker(const CollectiveNetwork& network, const JobCollectives& job, bool planned)
    : network_(network), job_(job), planned_(planned), part_of_(index(network.num_domains()), kNone) {}

void FlowMaker::make(std::size_t collective, std::span<const std::int32_t> vertex_of, Made& made) {
    const auto kind = static_cast<Kind>(job_.kinds[collective]);
    const double gigabytes = job_.gigabytes[collective];
    vertices_.clear();
    for (std::int64_t i = job_.begin_of(collective); i < job_.ends[collective]; ++i) {
        vertices_.push_back(vertex_of[index(job_.tasks[static_cast<std::size_t>(i)])]);
    }
    if (kind == Kind::kPairs) {
        add_pairs(collective, vertices_, made);
    } else if (kind == Kind::kSends) {
        add_in_order(vertices_, false, gigabytes / 2, gigabytes / 2, made);
    } else if (planned_) {
        add_planned(kind, vertices_, gigabytes, made);
    } else {
        add_in_order(vertices_, kind != Kind::kChain, gigabytes, 0.0, made);
    }
}

void FlowMaker::add_pairs(std::size_t collective, std::span<const std::int32_t> vertices, Made& made) const {
    const auto begin = static_cast<std::size_t>(job_.begin_of(collective));
    const bool differ = !job_.received.empty() && job_.received[begin] >= 0.0;
    const double half = job_.gigabytes[collective] / 2;
    for (std::size_t i = 0; i < vertices.size(); ++i) {
        for (std::size_t j = i + 1; j < vertices.size(); ++j) {
            const double there = differ ? job_.received[begin + j] : half;
            const double back = differ ? job_.received[begin + i] : half;
            made.flows.push_back({vertices[i], vertices[j], there, back});
        }
    }
}

// Between vertices that follow each other.
void FlowMaker::add_in_order(std::span<const std::int32_t> vertices, bool closed, double there, double back,
                             Made& made) const {
    for (std::size_t i = 0; i + 1 < vertices.size(); ++i) {
        made.flows.push_back({vertices[i], vertices[i + 1], there, back});
    }
    if (closed) made.flows.push_back({vertices.back(), vertices.front(), there, back});
}

void FlowMaker::add_planned(Kind kind, std::span<const std::int32_t> vertices, double gigabytes, Made& made) {
    const std::size_t first = made.flows.size();
    const JobFlows::Rings rings = made.rings;
    split(vertices);
    if (add_parts(kind, gigabytes, made)) return;
    made.flows.resize(first);
    made.rings = rings;
    add_in_order(vertices, kind != Kind::kChain, gigabytes, 0.0, made);
}

// Rings inside the parts, and channels between them. False without adapters, or where a ring has no path.
bool FlowMaker::add_parts(Kind kind, double gigabytes, Made& made) {
    if (num_parts_ == 1) return add_inside(kind, parts_[0], gigabytes, 0, made);
    if (!have_adapters()) return false;
    std::size_t channels = std::numeric_limits<std::size_t>::max();
    for (std::size_t i = 0; i < num_parts_; ++i) {
        list_adapters(parts_[i]);
        channels = std::min(channels, parts_[i].adapters.size());
    }
    for (std::size_t i = 0; i < num_parts_; ++i) {
        const bool is_ring = parts_[i].vertices.size() > 1;
        if (is_ring && !add_inside(kind, parts_[i], gigabytes, channels, made)) return false;
    }
    const double share = gigabytes / static_cast<double>(channels);
    for (std::size_t i = 0; i + (kind == Kind::kChain ? 1 : 0) < num_parts_; ++i) {
        add_step(parts_[i], parts_[(i + 1) % num_parts_], channels, share, made);
    }
    return true;
}

// Sorts the vertices into parts, in the order in which they first name a domain.
void FlowMaker::split(std::span<const std::int32_t> vertices) {
    num_parts_ = 0;
    for (const std::int32_t vertex : vertices) {
        std::int32_t& part = part_of_[index(network_.vertex(vertex).domain)];
        if (part == kNone) {
            part = static_cast<std::int32_t>(num_parts_++);
            if (parts_.size() < num_parts_) parts_.emplace_back();
            parts_[index(part)].vertices.clear();
        }
        parts_[index(part)].vertices.push_back(vertex);
    }
    for (std::size_t i = 0; i < num_parts_; ++i) {
        part_of_[index(network_.vertex(parts_[i].vertices.front()).domain)] = kNone;
    }
}

bool FlowMaker::have_adapters() const {
    return std::ranges::all_of(vertices_,
                               [&](std::int32_t one) { return network_.vertex(one).adapter != kNone; });
}

void FlowMaker::list_adapters(Part& part) const {
    part.adapters.clear();
    for (const std::int32_t vertex : part.vertices) {
        const Vertex& own = network_.vertex(vertex);
        const auto known = std::ranges::find(part.adapters, own.adapter, &Adapter::number);
        if (known == part.adapters.end()) {
            part.adapters.push_back({own.rail, own.machine, own.adapter, vertex, vertex});
        }
    }
    std::ranges::sort(part.adapters, {},
                      [](const Adapter& one) { return std::tuple(one.rail, one.machine, one.number); });
}

// One flow for each channel: between adapters of equal rail first, then between those that are left.
void FlowMaker::add_step(const Part& one, const Part& next, std::size_t channels, double share, Made& made) {
    const auto add = [&](const Adapter& here, const Adapter& there) {
        made.flows.push_back({here.out, there.in, share, 0.0});
    };
    const std::size_t ours = one.adapters.size(), theirs = next.adapters.size();
    taken_.assign(ours + theirs, 0);
    std::size_t left = channels;
    for (std::size_t i = 0, j = 0; i < ours && j < theirs && left > 0;) {
        const std::int32_t here = one.adapters[i].rail, there = next.adapters[j].rail;
        if (here == there) {
            add(one.adapters[i], next.adapters[j]);
            taken_[i] = taken_[ours + j] = 1;
            --left;
        }
        if (here <= there) ++i;
        if (there <= here) ++j;
    }
    for (std::size_t i = 0, j = 0; left > 0; ++i, ++j, --left) {
        while (taken_[i] != 0) ++i;
        while (taken_[ours + j] != 0) ++j;
        add(one.adapters[i], next.adapters[j]);
    }
}

FlowMaker::Joined FlowMaker::joined(Kind kind, std::span<const std::int32_t> vertices) {
    Joined found;
    if (through_switches(kind, vertices, found)) return found;
    const Vertex& first = network_.vertex(vertices.front());
    const collective::RingRates* rates = network_.rates_of(first.machine);
    bool has_links = false, shares = first.switches != kNone, is_one_machine = true;
    sorted_.clear();
    for (const std::int32_t one : vertices) {
        const Vertex& own = network_.vertex(one);
        has_links = has_links || own.has_links;
        shares = shares && own.switches == first.switches;
        is_one_machine = is_one_machine && own.machine == first.machine;
        sorted_.push_back(own.local);
    }
    std::ranges::sort(sorted_);
    found.gb_per_s = rates == nullptr || !is_one_machine ? 0.0 : rate_of(*rates);
    found.by_ports = (!has_links && !shares) || found.gb_per_s <= 0.0;
    return found;
}

// Of rings among the sorted vertices of a machine.
double FlowMaker::rate_of(const collective::RingRates& rates) {
    std::uint64_t key = 0;
    for (const std::int32_t one : sorted_) key |= std::uint64_t{1} << index(one);
    auto& known = rates_[&rates];
    const auto found = known.find(key);
    if (found != known.end()) return found->second;
    ++num_sets_;
    return known.emplace(key, rates.gb_per_s(sorted_)).first->second;
}

// Whether all vertices share switches whose rings are known.
bool FlowMaker::through_switches(Kind kind, std::span<const std::int32_t> vertices, Joined& found) const {
    const Vertex& first = network_.vertex(vertices.front());
    double switched = first.switched, reduced = first.reduced, most = first.most_reduced;
    for (const std::int32_t one : vertices) {
        const Vertex& own = network_.vertex(one);
        if (own.switches != first.switches) return false;
        switched = std::min(switched, own.switched);
        reduced = std::min(reduced, own.reduced);
        most = std::min(most, own.most_reduced);
    }
    if (first.switches == kNone || switched <= 0.0) return false;
    found.gb_per_s = switched;
    if (kind != Kind::kReduce || reduced <= 0.0) return true;
    const double by_switches = reduced_bandwidth(static_cast<std::int64_t>(vertices.size()), reduced, most);
    found.by_switches = by_switches > switched;
    found.gb_per_s = std::max(switched, by_switches);
    return true;
}

// Rings among the vertices of a part, which also run in `channels` to other parts, or 0. False where the
// vertices have no path in this order.
bool FlowMaker::add_inside(Kind kind, Part& part, double gigabytes, std::size_t channels, Made& made) {
    const Joined found = joined(kind, part.vertices);
    const double seconds = found.gb_per_s > 0.0 ? gigabytes / found.gb_per_s : 0.0;
    if (seconds > made.rings.seconds) {
        made.rings.seconds = seconds;
        made.rings.vertex = part.vertices.front();
        made.rings.by_switches = found.by_switches;
    }
    if (!found.by_ports) return true;
    std::ranges::sort(part.vertices, {}, [&](std::int32_t one) {
        const Vertex& own = network_.vertex(one);
        return std::tuple(own.machine, own.near);
    });
    if (channels > 0) {
        for (Adapter& adapter : part.adapters) {
            const auto is_at = [&](std::int32_t one) {
                return network_.vertex(one).adapter == adapter.number;
            };
            adapter.in = *std::ranges::find_if(part.vertices, is_at);
            adapter.out = *std::find_if(part.vertices.rbegin(), part.vertices.rend(), is_at);
        }
    }
    return add_ring_by_ports(part, gigabytes, channels, seconds, made);
}

// A channel leaves the ring where it goes out, and so does not pass from there to the next vertex.
bool FlowMaker::add_ring_by_ports(const Part& part, double gigabytes, std::size_t channels, double planned,
                                  Made& made) {
    const std::size_t first = made.flows.size(), count = part.vertices.size();
    for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t here = part.vertices[i];
        double passed = gigabytes;
        for (std::size_t channel = 0; channel < channels; ++channel) {
            if (part.adapters[channel].out == here) passed -= gigabytes / static_cast<double>(channels);
        }
        made.flows.push_back({here, part.vertices[(i + 1) % count], std::max(0.0, passed), 0.0});
    }
    const std::span<Flow> ring = std::span(made.flows).subspan(first);
    const double alone = seconds_alone(ring);
    if (!std::isfinite(alone)) return false;
    if (planned > 0.0 && alone > planned) {
        for (Flow& flow : ring) flow.there *= planned / alone;
    }
    return true;
}

// Infinity where a flow has no path.
double FlowMaker::seconds_alone(std::span<const Flow> flows) {
    loads_.clear();
    for (const Flow& flow : flows) {
        hops_.clear();
        if (flow.there <= 0.0) continue;
        if (!network_.ports().route(flow.from, flow.to, hops_))
            return std::numeric_limits<double>::infinity();
        for (const ports::Hop hop : hops_) loads_.emplace_back(hop, flow.there);
    }
    std::ranges::sort(loads_);
    double longest = 0.0, sum = 0.0;
    for (std::size_t i = 0; i < loads_.size(); ++i) {
        const bool goes_on = i > 0 && loads_[i].first == loads_[i - 1].first;
        sum = (goes_on ? sum : 0.0) + loads_[i].second;
        longest = std::max(longest, sum / network_.ports().gb_per_s(loads_[i].first / 2));
    }
    return longest;
}

}  // namespace topoplace::traffic
