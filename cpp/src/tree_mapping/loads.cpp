// Seconds of ports under moves: an edge is taken from the ports that it used, and given to those that it
// uses.
#include "tree_mapping/loads.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace topoplace::tree_mapping {
namespace {

// At least 0. In lanes that do not wait for each other.
double largest(std::span<const double> values) {
    constexpr std::size_t kLanes = 8;
    std::array<double, kLanes> lanes{};
    std::size_t i = 0;
    for (; i + kLanes <= values.size(); i += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const double value = values[i + lane];
            lanes[lane] = value > lanes[lane] ? value : lanes[lane];
        }
    }
    double found = std::ranges::max(lanes);
    for (; i < values.size(); ++i) found = std::max(found, values[i]);
    return found;
}

}  // namespace

Loads::Loads(const Problem& problem)
    : problem_(problem),
      width_(at(problem.classes) * at(problem.items) + at(problem.ports())),
      runs_((width_ + kRun - 1) / kRun),
      are_few_(at(problem.items) * at(problem.classes + 2 * problem.depth) < width_ / 2),
      seconds_(at(problem.phases) * width_, 0.0),
      edges_(problem.others.size(), 0),
      longest_of_run_(are_few_ ? 0 : at(problem.phases) * runs_, -1.0),
      longest_(at(problem.phases), 0.0),
      at_longest_(at(problem.phases), 0),
      unknown_(at(problem.phases), 0),
      aims_(at(problem.phases), std::numeric_limits<double>::infinity()),
      place_of_(at(problem.items), 0),
      items_on_(at(problem.leaves)),
      is_listed_(are_few_ ? width_ : 0, 0) {}

template <class Visit>
void Loads::visit_ports(const Visit& visit) const {
    const std::size_t uplinks = at(problem_.classes) * at(problem_.items);
    for (std::size_t own = 0; own < uplinks; ++own) visit(own);
    for (const Index leaf : leaf_of_) {
        for (Index depth = 1; depth <= problem_.depth; ++depth) {
            const Index port = problem_.port_of[at(problem_.above[at(depth)][at(leaf)])];
            if (port >= 0) visit(uplinks + at(port));
        }
    }
}

void Loads::clear() {
    std::ranges::fill(edges_, 0);
    if (!are_few_ || updates_ > 0) {
        std::ranges::fill(seconds_, 0.0);
        return;
    }
    for (std::size_t first = 0; first < seconds_.size(); first += width_) {
        visit_ports([&](std::size_t port) { seconds_[first + port] = 0.0; });
    }
}

void Loads::set(const std::vector<Index>& leaf_of) {
    clear();
    for (const Index leaf : leaf_of_) items_on_[at(leaf)].clear();
    leaf_of_ = leaf_of;
    leaves_used_ = 0;
    for (Index item = 0; item < problem_.items; ++item) {
        auto& here = items_on_[at(leaf_of_[at(item)])];
        if (here.empty()) ++leaves_used_;
        place_of_[at(item)] = static_cast<Index>(here.size());
        here.push_back(item);
    }
    rebuild();
}

// From ports that are all 0.
void Loads::rebuild() {
    port_seconds_ = 0.0;
    updates_ = 0;
    std::size_t edge = 0;
    for (Index phase = 0; phase < problem_.phases; ++phase) {
        for (; static_cast<std::int64_t>(edge) < problem_.phase_ends[at(phase)]; ++edge) {
            add<false>(problem_.from[edge], problem_.to[edge], phase, problem_.half(edge));
        }
    }
    std::ranges::fill(unknown_, 1);
    std::ranges::fill(longest_of_run_, -1.0);
    look_for_longest();
    sum_excess();
}

void Loads::list_few_ports() {
    few_ports_.clear();
    visit_ports([&](std::size_t port) {
        if (is_listed_[port] == 0) few_ports_.push_back(port);
        is_listed_[port] = 1;
    });
    for (const std::size_t port : few_ports_) is_listed_[port] = 0;
}

void Loads::sum_excess() {
    excess_ = 0.0;
    if (are_few_) list_few_ports();
    for (Index phase = 0; phase < problem_.phases; ++phase) {
        const auto seconds = std::span(seconds_).subspan(at(phase) * width_, width_);
        if (are_few_) {
            for (const std::size_t port : few_ports_) excess_ += excess_of(phase, seconds[port]);
        } else {
            for (const double one : seconds) excess_ += excess_of(phase, one);
        }
    }
}

double Loads::seconds() const {
    double sum = 0.0;
    for (const double longest : longest_) sum += longest;
    return sum;
}

void Loads::aim_at(const std::vector<double>& phase_seconds) {
    aims_ = phase_seconds;
    if (leaf_of_.empty()) return;
    clear();
    rebuild();
}

void Loads::bump(Index phase, std::size_t port, double seconds) {
    double& value = seconds_[at(phase) * width_ + port];
    const double before = value, longest = longest_[at(phase)];
    value = before + seconds;
    if (!are_few_) longest_of_run_[at(phase) * runs_ + port / kRun] = -1.0;
    const bool was = longest > 0.0 && before * kEqual >= longest;
    if (value > longest * kEqual) {
        longest_[at(phase)] = value;
        at_longest_[at(phase)] = 1;
    } else {
        const bool is = longest > 0.0 && value * kEqual >= longest;
        at_longest_[at(phase)] += static_cast<Index>(is) - static_cast<Index>(was);
        if (at_longest_[at(phase)] <= 0) unknown_[at(phase)] = 1;
    }
    excess_ += excess_of(phase, value) - excess_of(phase, before);
}

template <bool tracked>
void Loads::raise(Index phase, std::size_t port, double seconds) {
    if constexpr (tracked) {
        bump(phase, port, seconds);
    } else {
        seconds_[at(phase) * width_ + port] += seconds;
    }
}

template <bool tracked>
void Loads::climb(Index phase, Index leaf, Index meeting, double half) {
    const std::size_t first = at(problem_.classes) * at(problem_.items);
    for (Index depth = meeting + 1; depth <= problem_.depth; ++depth) {
        const Index port = problem_.port_of[at(problem_.above[at(depth)][at(leaf)])];
        if (port < 0) continue;
        const double seconds = half * problem_.per_gb[at(port)];
        raise<tracked>(phase, first + at(port), seconds + others_change(phase, port, half));
        port_seconds_ += seconds;
    }
}

// Seconds of others that come to an uplink with its first edge, and go with its last one.
double Loads::others_change(Index phase, Index port, double half) {
    if (edges_.empty() || half == 0.0) return 0.0;
    const std::size_t place = at(phase) * at(problem_.ports()) + at(port);
    const bool was = edges_[place] > 0;
    edges_[place] += half > 0.0 ? 1 : -1;
    const bool is = edges_[place] > 0;
    return was == is ? 0.0 : (is ? 1.0 : -1.0) * problem_.others[place];
}

template <bool tracked>
void Loads::add(Index one, Index other, Index phase, double half) {
    const Index here = leaf_of_[at(one)], there = leaf_of_[at(other)];
    const Index meeting = problem_.meeting(here, there);
    if (meeting == problem_.depth) return;
    const Index own = problem_.own_class[at(meeting)];
    const std::size_t first = at(own) * at(problem_.items);
    raise<tracked>(phase, first + at(one), half * problem_.own(own, here));
    raise<tracked>(phase, first + at(other), half * problem_.own(own, there));
    climb<tracked>(phase, here, meeting, half);
    climb<tracked>(phase, there, meeting, half);
}

void Loads::add_around(Index item, double sign, Index except) {
    for (const Neighbour& one : problem_.around(item)) {
        if (one.item != except) add<true>(item, one.item, one.phase, sign * one.half);
    }
}

void Loads::place(Index item, Index leaf) {
    auto& old = items_on_[at(leaf_of_[at(item)])];
    const Index last = old.back();
    old[at(place_of_[at(item)])] = last;
    place_of_[at(last)] = place_of_[at(item)];
    old.pop_back();
    auto& now = items_on_[at(leaf)];
    leaves_used_ += static_cast<Index>(now.empty()) - static_cast<Index>(old.empty());
    leaf_of_[at(item)] = leaf;
    place_of_[at(item)] = static_cast<Index>(now.size());
    now.push_back(item);
}

void Loads::move(Index item, Index leaf) {
    add_around(item, -1.0);
    place(item, leaf);
    add_around(item, 1.0);
    finish_update();
}

void Loads::swap(Index one, Index other) {
    const Index here = leaf_of_[at(one)], there = leaf_of_[at(other)];
    add_around(one, -1.0);
    add_around(other, -1.0, one);
    place(one, there);
    place(other, here);
    add_around(one, 1.0);
    add_around(other, 1.0, one);
    finish_update();
}

void Loads::finish_update() {
    if (++updates_ < kUpdatesBeforeRebuild) {
        look_for_longest();
    } else {
        clear();
        rebuild();
    }
}

// Where few ports can be in use, only these are read. One may be met twice, so only one is counted: to count
// too few is safe, as the longest is looked for again when none is left.
void Loads::look_among_few(Index phase) {
    const std::size_t first = at(phase) * width_;
    double longest = 0.0;
    visit_ports([&](std::size_t port) { longest = std::max(longest, seconds_[first + port]); });
    longest_[at(phase)] = longest;
    at_longest_[at(phase)] = longest > 0.0 ? 1 : 0;
}

void Loads::look_among_all(Index phase) {
    const auto seconds = std::span(seconds_).subspan(at(phase) * width_, width_);
    const auto runs = std::span(longest_of_run_).subspan(at(phase) * runs_, runs_);
    const auto run_of = [&](std::size_t run) {
        return seconds.subspan(run * kRun, std::min(kRun, width_ - run * kRun));
    };
    for (std::size_t run = 0; run < runs_; ++run) {
        if (runs[run] < 0.0) runs[run] = largest(run_of(run));
    }
    const double longest = largest(runs);
    longest_[at(phase)] = longest;
    Index as_long = 0;
    for (std::size_t run = 0; run < runs_ && longest > 0.0; ++run) {
        if (runs[run] * kEqual < longest) continue;
        for (const double one : run_of(run)) as_long += one * kEqual >= longest ? 1 : 0;
    }
    at_longest_[at(phase)] = as_long;
}

void Loads::look_for_longest() {
    for (Index phase = 0; phase < problem_.phases; ++phase) {
        if (unknown_[at(phase)] == 0) continue;
        unknown_[at(phase)] = 0;
        ports_read_ += are_few_ ? width_ / 2 : width_;
        if (are_few_) {
            look_among_few(phase);
            continue;
        }
        look_among_all(phase);
    }
}

}  // namespace topoplace::tree_mapping
