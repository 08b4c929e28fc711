// A mapping problem as the searches take it: the vertices that may be used, numbered 0 .. n-1 in ascending
// order, with a dense matrix of their distances.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "mapping/problem/source.hpp"
#include "mapping/problem/target.hpp"

namespace topoplace::mapping {

using Places = std::vector<std::int32_t>;  // by task, its vertex in a problem's numbers

struct Problem {
    Problem(const Source::Impl& source, const Target::Impl& target, std::vector<std::int32_t> vertices,
            std::span<const double> target_cost);
    Problem(const Problem&) = delete;
    Problem& operator=(const Problem&) = delete;

    std::int32_t size() const { return static_cast<std::int32_t>(vertices.size()); }
    const double* row(std::int32_t u) const { return distance_ + index(u) * vertices.size(); }
    double cost(const Places& places) const;
    // Every task on its own vertex.
    bool is_injective(const Places& places) const;

    const Source::Impl& source;
    std::vector<std::int32_t> vertices;  // the target's numbers
    std::vector<double> price;
    double tolerance = 0;  // costs closer than this are equal

  private:
    std::vector<double> selected_;  // rows and columns of the vertices; empty where they are the whole target
    const double* distance_;        // of the vertices, row-major
};

// The number of usual steps of a search that take as many additions.
inline std::uint64_t steps(std::uint64_t additions) {
    constexpr std::uint64_t kUsual = 1U << 14;  // what the assignment of a usual node takes at most
    return 1 + additions / kUsual;
}

// What a mapping may cost at most, whatever the vertices.
double dearest(const Source::Impl& source, const Target::Impl& target, std::span<const double> target_cost);

// The distances from each vertex to its nearest others, `count` of them in ascending order.
class Nearest {
  public:
    // None where `meter` stops.
    static std::optional<Nearest> make(const Problem& problem, std::int32_t count, WorkMeter& meter);

    std::int32_t count() const { return count_; }
    std::span<const std::int32_t> of(std::int32_t v) const {
        return std::span(near_).subspan(index(v) * index(count_), index(count_));
    }

  private:
    Nearest(const Problem& problem, std::int32_t count)
        : count_(std::max(0, std::min(count, problem.size() - 1))),
          near_(problem.vertices.size() * index(count_)) {}

    std::int32_t count_;
    std::vector<std::int32_t> near_;
};

// No mapping costs less: every task on the vertex that would be best for it alone. None where `meter` stops.
std::optional<double> simple_bound(const Problem& problem, WorkMeter& meter);

}  // namespace topoplace::mapping
