// Orders by phases: items that the first phase joins follow each other, then what the next one joins, and so
// on. Where all such groups have one size, they are also cut into pieces, so that pieces of several groups
// follow each other: rows of a grid, and tiles of it.
#include "tree_mapping/orders.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace topoplace::tree_mapping {
namespace {

using Row = std::vector<Index>;
using Rows = std::vector<Row>;

constexpr std::uint64_t kStepsPerPlace = 500;  // of `WorkMeter`, each a fifth of a nanosecond
constexpr std::uint64_t kStepsPerJoin = 250;
constexpr std::size_t kMostPhases = 3;  // in every sequence; later ones do not count

Row joined(const Rows& rows) {
    Row all;
    for (const Row& row : rows) all.insert(all.end(), row.begin(), row.end());
    return all;
}

// Which rows a phase joins, by the numbers of their neighbours, ascending; some only if the search has to
// stop.
std::vector<Row> neighbours_of(const Problem& problem, const Rows& rows, Index phase, WorkMeter& meter) {
    Row row_of(at(problem.items));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (const Index item : rows[i]) row_of[at(item)] = static_cast<Index>(i);
    }
    std::vector<Row> found(rows.size());
    const std::int64_t begin = phase == 0 ? 0 : problem.phase_ends[at(phase - 1)];
    for (auto i = static_cast<std::size_t>(begin);
         static_cast<std::int64_t>(i) < problem.phase_ends[at(phase)]; ++i) {
        if (meter.pass_time(kStepsPerJoin)) break;
        const Index one = row_of[at(problem.from[i])], other = row_of[at(problem.to[i])];
        if (one == other) continue;
        found[at(one)].push_back(other);
        found[at(other)].push_back(one);
    }
    for (Row& row : found) {
        std::ranges::sort(row);
        row.erase(std::unique(row.begin(), row.end()), row.end());
    }
    return found;
}

// The rows of each connected part, in the order in which a walk along their neighbours meets them. Walks
// begin at rows of few neighbours, such as the first stage of a pipeline. Not all if the search has to stop.
std::vector<Rows> parts_of(const Problem& problem, const Rows& rows, Index phase, WorkMeter& meter) {
    const std::vector<Row> near = neighbours_of(problem, rows, phase, meter);
    Row starts(rows.size());
    std::iota(starts.begin(), starts.end(), 0);
    std::ranges::stable_sort(starts, {}, [&](Index row) { return near[at(row)].size(); });
    std::vector<std::uint8_t> seen(rows.size(), 0);
    std::vector<Rows> parts;
    for (const Index start : starts) {
        if (meter.stopped()) break;
        if (seen[at(start)] != 0) continue;
        Rows part;
        Row waiting{start};
        while (!waiting.empty()) {
            const Index row = waiting.back();
            waiting.pop_back();
            if (seen[at(row)] != 0) continue;
            seen[at(row)] = 1;
            meter.pass_time(kStepsPerPlace * rows[at(row)].size());
            part.push_back(rows[at(row)]);
            for (auto next = near[at(row)].rbegin(); next != near[at(row)].rend(); ++next) {
                if (seen[at(*next)] == 0) waiting.push_back(*next);
            }
        }
        parts.push_back(std::move(part));
    }
    return parts;
}

bool are_alike(const Rows& rows) {
    return std::ranges::all_of(rows, [&](const Row& row) { return row.size() == rows[0].size(); });
}

// `height` rows at a time, their pieces of `width` items one below the other.
void append_tiles(const Rows& rows, std::size_t height, std::size_t width, Row& order) {
    const std::size_t length = rows[0].size();
    for (std::size_t top = 0; top < rows.size(); top += height) {
        const std::size_t below = std::min(top + height, rows.size());
        for (std::size_t left = 0; left < length; left += width) {
            for (std::size_t i = top; i < below; ++i) {
                const auto begin = rows[i].begin() + static_cast<std::ptrdiff_t>(left);
                const auto count = static_cast<std::ptrdiff_t>(std::min(width, length - left));
                order.insert(order.end(), begin, begin + count);
            }
        }
    }
}

class Collector {
  public:
    Collector(const Problem& problem, std::size_t most, WorkMeter& meter)
        : problem_(problem), most_(most), meter_(meter) {
        Row numbers(at(problem.items));
        std::iota(numbers.begin(), numbers.end(), 0);
        known_.insert(numbers);
        found_.push_back(std::move(numbers));
    }

    void add_sequence(const Row& phases) {
        Rows rows;
        for (Index item = 0; item < problem_.items; ++item) rows.push_back({item});
        for (std::size_t i = 0; i < phases.size() && !is_full(); ++i) {
            const std::vector<Rows> parts = parts_of(problem_, rows, phases[i], meter_);
            if (meter_.stopped()) return;
            if (i > 0) add_tiles(parts);
            rows.clear();
            for (const Rows& part : parts) rows.push_back(joined(part));
            if (i == 0) add_tiles({rows});
        }
        add(joined(rows));
    }

    bool is_full() const { return found_.size() >= most_ || meter_.stopped(); }
    std::vector<Order> take() { return std::move(found_); }

  private:
    void add(Row order) {
        if (!is_full() && known_.insert(order).second) found_.push_back(std::move(order));
    }
    void add_tiles(const std::vector<Rows>& parts) {
        if (!std::ranges::all_of(parts, are_alike)) return;
        std::size_t rows = 0, length = 0;
        for (const Rows& part : parts) {
            rows = std::max(rows, part.size());
            length = std::max(length, part[0].size());
        }
        for (std::size_t height = 2; height < 2 * rows; height *= 2) {
            for (std::size_t width = 1; width < length; width *= 2) {
                if (is_full() || meter_.pass_time(kStepsPerPlace * at(problem_.items))) return;
                Row order;
                for (const Rows& part : parts) append_tiles(part, std::min(height, rows), width, order);
                add(std::move(order));
            }
        }
    }

    const Problem& problem_;
    std::size_t most_;
    WorkMeter& meter_;
    std::set<Row> known_;
    std::vector<Order> found_;
};

}  // namespace

Row main_phases(const Problem& problem) {
    std::vector<double> sums(at(problem.phases), 0.0);
    std::size_t i = 0;
    for (Index phase = 0; phase < problem.phases; ++phase) {
        for (; static_cast<std::int64_t>(i) < problem.phase_ends[at(phase)]; ++i)
            sums[at(phase)] += problem.half(i);
    }
    Row phases(at(problem.phases));
    std::iota(phases.begin(), phases.end(), 0);
    std::ranges::stable_sort(phases, std::ranges::greater{}, [&](Index phase) { return sums[at(phase)]; });
    if (phases.size() > kMostPhases) phases.resize(kMostPhases);
    return phases;
}

std::vector<Order> orders_of(const Problem& problem, std::size_t most, WorkMeter& meter) {
    Collector found(problem, most, meter);
    if (meter.stopped()) return found.take();
    const Row phases = main_phases(problem);
    Row ranks(phases.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    do {
        Row sequence;
        for (const Index rank : ranks) sequence.push_back(phases[at(rank)]);
        found.add_sequence(sequence);
    } while (!found.is_full() && std::ranges::next_permutation(ranks).found);
    return found.take();
}

}  // namespace topoplace::tree_mapping
