// The table of a score by link counts: all count vectors, ranked by their scores, and the target's edges by
// class.
#include "match/link_counts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "graph/index.hpp"

namespace topoplace::match {
namespace {

constexpr std::size_t kMaxVectors = std::size_t{1} << 20;

std::string say(std::int32_t num_edges, std::int32_t num_classes) {
    return std::to_string(num_edges) + " edges in " + std::to_string(num_classes) + " link classes";
}

void append_vectors(std::int32_t edges, std::int32_t classes, std::vector<std::int32_t>& prefix,
                    std::vector<std::int32_t>& rows) {
    if (classes == 1) {
        rows.insert(rows.end(), prefix.begin(), prefix.end());
        rows.push_back(edges);
        return;
    }
    for (std::int32_t count = 0; count <= edges; ++count) {
        prefix.push_back(count);
        append_vectors(edges - count, classes - 1, prefix, rows);
        prefix.pop_back();
    }
}

double num_vectors(std::int32_t num_edges, std::int32_t num_classes) {
    double vectors = 1;
    for (std::int32_t i = 1; i < num_classes; ++i) vectors *= static_cast<double>(num_edges + i) / i;
    return std::round(vectors);
}

}  // namespace

Fault LinkCountScore::check(std::int32_t num_edges, std::int32_t num_classes) {
    if (num_edges < 0 || num_edges > 65535 || num_classes < 1 || num_classes > kMaxClasses) {
        return say(num_edges, num_classes) + ": at most 65535 edges and " + std::to_string(kMaxClasses) +
               " classes can be scored";
    }
    const double codes = std::pow(num_edges + 1.0, num_classes - 1);
    if (num_vectors(num_edges, num_classes) > kMaxVectors || codes > 16.0 * kMaxVectors)
        return say(num_edges, num_classes) + " have too many count vectors to tabulate";
    return std::nullopt;
}

Fault LinkCountScore::check(const Target& target, std::span<const std::uint8_t> edge_class,
                            std::int32_t num_classes, std::int32_t num_edges,
                            std::span<const double> scores) {
    if (auto fault = target.check_dense()) return fault;
    if (auto fault = check(num_edges, num_classes)) return fault;
    const auto vectors = static_cast<std::size_t>(num_vectors(num_edges, num_classes));
    if (scores.size() != vectors) {
        return "scores: expected " + std::to_string(vectors) + " values, got " +
               std::to_string(scores.size());
    }
    const std::size_t n = index(target.num_vertices());
    if (edge_class.size() != std::uint64_t{n} * n)
        return "edge_class: expected one value for each pair of the target's vertices";
    for (std::int32_t u = 0; u < target.num_vertices(); ++u) {
        for (const std::int32_t v : target.graph().neighbors(u)) {
            const std::int32_t own = edge_class[index(u) * n + index(v)];
            if (own < num_classes) continue;
            return "link_class[" + std::to_string(u) + ", " + std::to_string(v) +
                   "] = " + std::to_string(own) + ": classes are 0.." + std::to_string(num_classes - 1);
        }
    }
    return std::nullopt;
}

std::vector<std::int32_t> LinkCountScore::count_vectors(std::int32_t num_edges, std::int32_t num_classes) {
    TOPOPLACE_ASSERT(!check(num_edges, num_classes));
    std::vector<std::int32_t> prefix;
    std::vector<std::int32_t> rows;
    append_vectors(num_edges, num_classes, prefix, rows);
    return rows;
}

LinkCountScore::Impl::Impl(const Target& target, std::span<const std::uint8_t> edge_class,
                           std::int32_t num_classes, std::int32_t num_edges, std::span<const double> scores)
    : num_classes_(num_classes), num_edges_(num_edges), edge_class_(edge_class.begin(), edge_class.end()) {
    TOPOPLACE_ASSERT(!check(target, edge_class, num_classes, num_edges, scores));
    const std::vector<std::int32_t> rows = count_vectors(num_edges, num_classes);
    sort_edges(*target.impl());
    tabulate(rows, rank_vectors(scores));
}

void LinkCountScore::Impl::sort_edges(const Target::Impl& target) {
    const std::size_t classes = index(num_classes_);
    const std::size_t n = index(target.size());
    inside_ = BitRows(classes * n, width_of(target.size()));
    outside_ = BitRows(classes * n, width_of(target.size()));
    for (std::int32_t u = 0; u < target.size(); ++u) {
        for (const std::int32_t v : target.graph().neighbors(u)) {
            const std::size_t own = edge_class_[target.pair_of(u, v)];
            for (std::size_t c = 0; c < classes; ++c) {
                if (c == own) {
                    inside_.set(c * n + index(u), v);
                } else {
                    outside_.set(c * n + index(u), v);
                }
            }
        }
    }
}

// Returns the vectors' order, best score first.
std::vector<std::int32_t> LinkCountScore::Impl::rank_vectors(std::span<const double> scores) {
    std::vector<std::int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    const auto score = [&](std::int32_t i) { return scores[index(i)]; };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return score(a) > score(b); });
    Fixed rank = -1;
    ranks_.resize(order.size());
    for (std::size_t i = order.size(); i-- > 0;) {
        if (rank < 0 || score(order[i]) != score_of_rank_.back()) {
            score_of_rank_.push_back(score(order[i]));
            ++rank;
        }
        ranks_[i] = rank;
    }
    TOPOPLACE_ASSERT(std::is_sorted(score_of_rank_.begin(), score_of_rank_.end()));
    TOPOPLACE_ASSERT(std::is_sorted(ranks_.rbegin(), ranks_.rend()));
    return order;
}

void LinkCountScore::Impl::tabulate(std::span<const std::int32_t> rows,
                                    const std::vector<std::int32_t>& order) {
    const std::size_t classes = index(num_classes_);
    std::size_t codes = 1;
    for (std::size_t c = 1; c < classes; ++c) codes *= index(num_edges_) + 1;
    position_.assign(codes, kAbsent);
    for (const std::int32_t i : order) {
        Counts counts{};
        for (std::size_t c = 0; c < classes; ++c) {
            counts[c] = static_cast<std::uint16_t>(rows[index(i) * classes + c]);
        }
        TOPOPLACE_ASSERT(position_[code(counts)] == kAbsent);
        position_[code(counts)] = static_cast<std::int32_t>(vectors_.size());
        vectors_.push_back(counts);
    }
}

// The last count follows from the others.
std::size_t LinkCountScore::Impl::code(const Counts& counts) const {
    std::size_t code = 0;
    for (std::int32_t c = 0; c + 1 < num_classes_; ++c) {
        code = code * (index(num_edges_) + 1) + counts[index(c)];
    }
    return code;
}

std::int32_t LinkCountScore::Impl::position(const Counts& counts) const {
    const std::int32_t position = position_[code(counts)];
    TOPOPLACE_ASSERT(position != kAbsent && vector(position) == counts);
    return position;
}

LinkCountScore::LinkCountScore(const Target& target, std::span<const std::uint8_t> edge_class,
                               std::int32_t num_classes, std::int32_t num_edges,
                               std::span<const double> scores)
    : impl_(std::make_shared<const Impl>(target, edge_class, num_classes, num_edges, scores)) {}

}  // namespace topoplace::match
