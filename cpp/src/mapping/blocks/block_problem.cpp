// Checks a distribution problem, adds up its costs, and bounds them from below.
#include "mapping/blocks/block_problem.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

namespace topoplace::mapping {
namespace {

constexpr double kLargest = 1e100;     // so that sums stay finite
constexpr std::size_t kDistances = 8;  // different ones that the bound looks at

Fault check_rooms(std::span<const std::int32_t> room) {
    for (std::size_t i = 0; i < room.size(); ++i) {
        if (room[i] < 0)
            return "room[" + std::to_string(i) + "] = " + std::to_string(room[i]) + " is not at least 0";
    }
    return std::nullopt;
}

Fault check_distances(std::span<const double> distance, std::size_t size) {
    if (distance.size() != std::uint64_t{size} * size)
        return "distance does not have blocks x blocks entries";
    for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const double value = distance[i * size + j];
            if (value >= 0 && value <= kLargest && value == distance[j * size + i]) continue;
            std::array<char, 32> number{};
            std::snprintf(number.data(), number.size(), "%g", value);
            return "distance[" + std::to_string(i) + ", " + std::to_string(j) + "] = " + number.data() +
                   " is not in 0..1e100, or not equal to its mirror image";
        }
    }
    return std::nullopt;
}

// What a distribution may cost at most.
double dearest(const Source::Impl& source, std::span<const double> distance) {
    return distance.empty() ? 0 : source.total_weight() * *std::ranges::max_element(distance);
}

// The parts of a graph that a number of edges has to be taken away from to fall apart: how many edges.
enum class Ties { none, one, two };

// Depth first, without recursion: a graph has an edge that alone joins two parts where a subtree has no
// other edge to what was visited before it (Tarjan, Information Processing Letters 2, 1974).
class Connection {
  public:
    explicit Connection(const Graph& graph)
        : graph_(graph), entered_(index(graph.num_vertices()), kAbsent), lowest_(entered_) {}

    Ties find() {
        if (graph_.num_vertices() == 0) return Ties::none;
        enter(0, kAbsent);
        while (!path_.empty()) step();
        if (time_ < graph_.num_vertices()) return Ties::none;
        return bridges_ ? Ties::one : Ties::two;
    }

  private:
    struct Visit {
        std::int32_t vertex;
        std::int32_t from;
        std::size_t next;
    };

    void enter(std::int32_t vertex, std::int32_t from) {
        entered_[index(vertex)] = lowest_[index(vertex)] = time_++;
        path_.push_back({vertex, from, 0});
    }

    void step() {
        Visit& visit = path_.back();
        const auto others = graph_.neighbors(visit.vertex);
        if (visit.next == others.size()) return leave();
        const std::int32_t other = others[visit.next++];
        if (entered_[index(other)] == kAbsent) return enter(other, visit.vertex);
        if (other != visit.from) {
            std::int32_t& lowest = lowest_[index(visit.vertex)];
            lowest = std::min(lowest, entered_[index(other)]);
        }
    }

    void leave() {
        const Visit visit = path_.back();
        path_.pop_back();
        if (visit.from == kAbsent) return;
        std::int32_t& above = lowest_[index(visit.from)];
        bridges_ = bridges_ || lowest_[index(visit.vertex)] > entered_[index(visit.from)];
        above = std::min(above, lowest_[index(visit.vertex)]);
    }

    const Graph& graph_;
    std::vector<std::int32_t> entered_;  // by vertex, when; kAbsent: not yet
    std::vector<std::int32_t> lowest_;   // by vertex: the earliest that its subtree leads back to
    std::vector<Visit> path_;
    std::int32_t time_ = 0;
    bool bridges_ = false;
};

// The rooms of the groups of blocks joined by distances up to `most`, largest first.
std::vector<std::int64_t> group_rooms(const BlockProblem& problem, double most) {
    std::vector<std::int64_t> rooms;
    std::vector<bool> seen(problem.room.size(), false);
    std::vector<std::int32_t> open;
    for (std::int32_t first = 0; first < problem.size(); ++first) {
        if (seen[index(first)]) continue;
        seen[index(first)] = true;
        open.push_back(first);
        std::int64_t room = 0;
        while (!open.empty()) {
            const std::int32_t block = open.back();
            open.pop_back();
            room += problem.room[index(block)];
            for (std::int32_t other = 0; other < problem.size(); ++other) {
                if (seen[index(other)] || problem.row(block)[other] > most) continue;
                seen[index(other)] = true;
                open.push_back(other);
            }
        }
        rooms.push_back(room);
    }
    std::sort(rooms.begin(), rooms.end(), std::greater<>());
    return rooms;
}

std::int32_t fewest(const std::vector<std::int64_t>& rooms, std::int64_t tasks) {
    std::int32_t count = 0;
    for (std::size_t i = 0; i < rooms.size() && tasks > 0; ++i, ++count) tasks -= rooms[i];
    return count;
}

// The weight that crosses between groups, at least.
class Crossing {
  public:
    Crossing(const Source::Impl& source, const Ranking& ranking)
        : size_(source.size()), ranking_(ranking), ties_(Connection(source.graph()).find()) {
        for (const auto& halves : ranking_.halves) {
            if (!halves.empty()) lightest_ = std::min(lightest_, 2 * halves.back());
        }
    }

    double weight(const std::vector<std::int64_t>& rooms) const {
        const std::int32_t groups = fewest(rooms, size_);
        if (groups < 2) return 0;
        double by_ties = 0;
        if (ties_ != Ties::none) by_ties = lightest_ * (ties_ == Ties::two ? groups : groups - 1);
        return std::max(by_ties, beyond(rooms.front() - 1));
    }

  private:
    // What tasks exchange with others than the `near` they are most tied to.
    double beyond(std::int64_t near) const {
        double sum = 0;
        for (const auto& halves : ranking_.halves) {
            for (std::size_t i = static_cast<std::size_t>(near); i < halves.size(); ++i) sum += halves[i];
        }
        return sum;
    }

    std::int32_t size_;
    const Ranking& ranking_;
    Ties ties_;
    double lightest_ = std::numeric_limits<double>::infinity();  // edge
};

// Ascending, each once.
std::vector<double> different(std::span<const double> distance, std::int32_t size) {
    std::vector<double> found;
    for (std::int32_t i = 0; i < size; ++i) {
        for (std::int32_t j = 0; j < i; ++j) {
            const double value = distance[index(i) * index(size) + index(j)];
            const auto place = std::lower_bound(found.begin(), found.end(), value);
            if (place != found.end() && *place == value) continue;
            found.insert(place, value);
            if (found.size() > kDistances) found.pop_back();
        }
    }
    return found;
}

}  // namespace

Fault check(const Source& source, const DistributeParams& params) {
    if (auto fault = check_rooms(params.room)) return fault;
    if (auto fault = check_distances(params.distance, params.room.size())) return fault;
    if (params.starts < 0) return "starts = " + std::to_string(params.starts) + " is not at least 0";
    if (dearest(source.impl(), params.distance) <= 1e300) return std::nullopt;
    return "the sum of the graph's weights times distance is more than 1e300";
}

BlockProblem::BlockProblem(const Source::Impl& the_source, const DistributeParams& params)
    : source(the_source),
      room(params.room),
      distance(params.distance),
      total_room(std::accumulate(room.begin(), room.end(), std::int64_t{0})),
      tolerance(1e-12 * dearest(source, distance)) {}

double BlockProblem::cost(const BlockOf& block_of) const {
    const Graph& graph = source.graph();
    double sum = 0;
    for (std::int32_t a = 0; a < source.size(); ++a) {
        const double* from = row(block_of[index(a)]);
        const auto others = graph.neighbors(a);
        const auto weights = graph.weights(a);
        for (std::size_t i = 0; i < others.size() && others[i] < a; ++i)
            sum += weights[i] * from[block_of[index(others[i])]];
    }
    return sum;
}

bool BlockProblem::fits(const BlockOf& block_of) const {
    std::vector<std::int32_t> left(room.begin(), room.end());
    for (const std::int32_t block : block_of) {
        if (block < 0 || block >= size() || --left[index(block)] < 0) return false;
    }
    return std::ssize(block_of) == source.size();
}

std::optional<double> lower_bound(const BlockProblem& problem, WorkMeter& meter) {
    const auto& distance = problem.distance;
    if (distance.empty()) return 0.0;
    double reached = *std::min_element(distance.begin(), distance.end());
    double bound = problem.source.total_weight() * reached;
    if (problem.source.graph().num_edges() == 0) return bound;
    const Ranking* ranking = problem.source.ranking(meter);
    if (ranking == nullptr) return std::nullopt;
    const Crossing crossing(problem.source, *ranking);
    for (const double next : different(distance, problem.size())) {
        if (meter.pass_time(8 * distance.size())) return std::nullopt;
        if (next > reached) bound += (next - reached) * crossing.weight(group_rooms(problem, reached));
        reached = std::max(reached, next);
    }
    return bound;
}

}  // namespace topoplace::mapping
