// The mappings from which the search starts.
#pragma once

#include <cstdint>
#include <vector>

#include "tree_mapping/divisions.hpp"
#include "tree_mapping/found.hpp"
#include "tree_mapping/orders.hpp"
#include "tree_mapping/plans.hpp"

namespace topoplace::tree_mapping {

class Starts {
  public:
    // moves: that the search has. Orders take about a fourth as long, and divisions as much at most.
    Starts(const Problem& problem, Loads& loads, WorkMeter& meter, std::uint64_t moves);

    // Every order along every plan, as long as there is time for it; one start at least.
    void lay_orders();
    // Orders by divisions, made along the plans of the best starts so far and laid along all plans. Returns
    // as how many moves they count.
    std::uint64_t lay_divisions(std::uint64_t seed);
    // The order of the items on the leaves of a mapping, along every plan, and with fewer leaves in each
    // domain. One that is as fast on fewer leaves, or in fewer or fuller domains, may take more port-seconds
    // where its uplinks are slower, but passes no more GB.
    void refill(Found& best);

    std::vector<Found>& found() { return found_; }

  private:
    void keep_fullest(const std::vector<Found>& found, Found& best);
    std::uint64_t cost() const { return problem_.from.size() + at(problem_.items); }
    std::uint64_t steps() const;
    bool has_credit();
    void lay(const Order& order, std::size_t plan);
    Found laid(const Order& order, const Plan& plan);
    void lay_division(Divider& divider, std::size_t plan);
    std::vector<std::size_t> promising_plans(std::size_t most) const;
    std::vector<Index> heavy_phases() const;

    const Problem& problem_;
    Loads& loads_;
    WorkMeter& meter_;
    std::uint64_t credit_;  // of edges
    std::uint64_t credit_of_divisions_;
    std::vector<Plan> plans_;
    std::vector<Found> found_;
    std::vector<std::size_t> plan_of_;  // of each of these
};

}  // namespace topoplace::tree_mapping
