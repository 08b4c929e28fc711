// A mapping and the seconds of each of its ports, kept up to date by moves and swaps of items.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tree_mapping/problem.hpp"

namespace topoplace::tree_mapping {

// Of `WorkMeter`, each a fifth of a nanosecond.
inline constexpr std::uint64_t kStepsPerPort = 3;
inline constexpr std::uint64_t kStepsPerEdge = 150;  // taken from its ports, or given to them

class Loads {
  public:
    explicit Loads(const Problem& problem);

    void set(const std::vector<Index>& leaf_of);
    void move(Index item, Index leaf);
    void swap(Index one, Index other);

    const std::vector<Index>& leaf_of() const { return leaf_of_; }
    const std::vector<Index>& items_on(Index leaf) const { return items_on_[at(leaf)]; }
    bool has_room(Index leaf) const {
        return static_cast<Index>(items_on_[at(leaf)].size()) < problem_.room[at(leaf)];
    }
    std::size_t size() const { return seconds_.size(); }  // ports of all phases
    // The ports among which the longest was looked for, since this was asked before, also those of runs whose
    // longest was known: budgets of work count them.
    std::uint64_t take_ports_read() { return std::exchange(ports_read_, 0); }
    Index leaves_used() const { return leaves_used_; }
    double seconds() const;
    double port_seconds() const { return port_seconds_; }
    const std::vector<double>& phase_seconds() const { return longest_; }
    // What ports take longer than these seconds of their phase, over all ports, as parts of them.
    double excess() const { return excess_; }
    void aim_at(const std::vector<double>& phase_seconds);

  private:
    // With `tracked`, longest ports and excess follow.
    template <bool tracked>
    void add(Index one, Index other, Index phase, double half);
    template <bool tracked>
    void climb(Index phase, Index leaf, Index meeting, double half);
    template <bool tracked>
    void raise(Index phase, std::size_t port, double seconds);
    void add_around(Index item, double sign, Index except = -1);
    void bump(Index phase, std::size_t port, double seconds);
    double others_change(Index phase, Index port, double half);
    void place(Index item, Index leaf);
    // Calls `visit` with each port that the items can use where they are, some several times.
    template <class Visit>
    void visit_ports(const Visit& visit) const;
    void clear();
    void look_among_few(Index phase);
    void look_among_all(Index phase);
    void look_for_longest();
    void finish_update();
    void rebuild();
    void sum_excess();
    void list_few_ports();
    double excess_of(Index phase, double seconds) const {
        const double aim = aims_[at(phase)];
        return seconds > aim * kEqual ? (seconds - aim) / aim : 0.0;
    }

    static constexpr double kEqual = 1 + 1e-9;
    static constexpr Index kUpdatesBeforeRebuild = 1 << 14;  // sums of floats drift
    static constexpr std::size_t kRun = 64;                  // ports whose longest is kept

    const Problem& problem_;
    std::size_t width_;  // ports of a phase: own ports by class and item, then uplinks
    std::size_t runs_;   // of ports of a phase
    bool are_few_;       // ports that the items can use at once, beside all
    std::vector<double> seconds_;
    std::vector<Index> edges_;            // that pass each uplink, if others use some: [phase * ports + port]
    std::vector<double> longest_of_run_;  // below 0: to be looked for; not used where ports are few
    std::vector<double> longest_;
    std::vector<Index> at_longest_;      // ports that take as long
    std::vector<std::uint8_t> unknown_;  // phases whose longest port is to be looked for
    std::vector<double> aims_;
    std::vector<Index> leaf_of_, place_of_;
    std::vector<std::vector<Index>> items_on_;
    std::vector<std::size_t> few_ports_;   // that the items can use where they are, each once
    std::vector<std::uint8_t> is_listed_;  // of each port of a phase
    Index leaves_used_ = 0;
    double port_seconds_ = 0.0;
    double excess_ = 0.0;
    Index updates_ = 0;
    std::uint64_t ports_read_ = 0;
};

}  // namespace topoplace::tree_mapping
