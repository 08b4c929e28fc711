// Tables for each shape, by its topmost vertex and by set: those of a smaller shape and of the branch it
// lacks, on sets that do not meet.
#include "match/packing/piece_values.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::match {
namespace {

constexpr Fixed kNever = std::numeric_limits<Fixed>::min() / 4;

struct Placed {
    std::uint32_t set;
    Fixed sum;
};
using ByVertex = std::array<std::vector<Placed>, PieceValues::kMostVertices>;

}  // namespace

class PieceValues::Builder {
  public:
    Builder(PieceValues& built, const PieceShapes& shapes, const Target::Impl& target,
            std::span<const std::int32_t> machine)
        : built_(built),
          shapes_(shapes),
          size_(machine.size()),
          tops_(shapes.shapes().size()),
          branches_(shapes.shapes().size()),
          is_known_(shapes.shapes().size(), false),
          is_branch_known_(shapes.shapes().size(), false),
          best_(std::size_t{1} << size_, kNever) {
        for (std::size_t i = 0; i < size_; ++i) {
            for (std::size_t j = 0; j < size_; ++j)
                weight_[i][j] = i == j ? 0 : target.weight(machine[i], machine[j]);
        }
    }

    void add_all() {
        for (std::int32_t form = 0; form < shapes_.num_forms(); ++form) {
            const std::int32_t shape = shapes_.shape_of_form()[index(form)];
            if (index(shapes_.shapes()[index(shape)].size) <= size_) add(form, tops(shape));
        }
    }

  private:
    void add(std::int32_t form, const ByVertex& tops) {
        std::vector<Fixed> sums(std::size_t{1} << size_, kNever);
        for (const std::vector<Placed>& its : tops) {
            for (const Placed& one : its) sums[one.set] = std::max(sums[one.set], one.sum);
        }
        for (std::uint32_t set = 0; set < sums.size(); ++set) {
            if (sums[set] != kNever) built_.entries_.push_back({form, set, sums[set]});
        }
    }

    // By the vertex that the topmost one is on.
    const ByVertex& tops(std::int32_t id) {
        ByVertex& result = tops_[index(id)];
        if (is_known_[index(id)]) return result;
        is_known_[index(id)] = true;
        const PieceShapes::Shape& shape = shapes_.shapes()[index(id)];
        if (shape.rest == kAbsent) {
            for (std::size_t v = 0; v < size_; ++v) result[v].push_back({std::uint32_t{1} << v, 0});
            return result;
        }
        const ByVertex& rest = tops(shape.rest);
        const ByVertex& branch = branches(shape.child);
        for (std::size_t v = 0; v < size_; ++v) join(rest[v], branch[v], result[v]);
        return result;
    }
    // A shape with an edge to its topmost vertex, by the vertex at the other end of this edge.
    const ByVertex& branches(std::int32_t id) {
        ByVertex& result = branches_[index(id)];
        if (is_branch_known_[index(id)]) return result;
        is_branch_known_[index(id)] = true;
        const ByVertex& below = tops(id);
        for (std::size_t v = 0; v < size_; ++v) {
            for (std::size_t u = 0; u < size_; ++u) {
                if (weight_[v][u] > 0) hang(below[u], v, weight_[v][u]);
            }
            take(result[v]);
        }
        return result;
    }

    void join(const std::vector<Placed>& rest, const std::vector<Placed>& branch,
              std::vector<Placed>& result) {
        for (const Placed& one : rest) {
            for (const Placed& other : branch) {
                if ((one.set & other.set) == 0) relax(one.set | other.set, one.sum + other.sum);
            }
        }
        built_.steps_ += rest.size() * branch.size();
        take(result);
    }
    void hang(const std::vector<Placed>& below, std::size_t v, Fixed weight) {
        for (const Placed& one : below) {
            if ((one.set >> v & 1) == 0) relax(one.set, one.sum + weight);
        }
        built_.steps_ += below.size();
    }

    void relax(std::uint32_t set, Fixed sum) {
        if (best_[set] == kNever) touched_.push_back(set);
        best_[set] = std::max(best_[set], sum);
    }
    void take(std::vector<Placed>& result) {
        for (const std::uint32_t set : touched_) {
            result.push_back({set, best_[set]});
            best_[set] = kNever;
        }
        touched_.clear();
    }

    PieceValues& built_;
    const PieceShapes& shapes_;
    const std::size_t size_;
    std::array<std::array<Fixed, kMostVertices>, kMostVertices> weight_{};
    std::vector<ByVertex> tops_;
    std::vector<ByVertex> branches_;
    std::vector<bool> is_known_;
    std::vector<bool> is_branch_known_;
    std::vector<Fixed> best_;  // by set; kNever but for those touched
    std::vector<std::uint32_t> touched_;
};

PieceValues::PieceValues(const PieceShapes& shapes, const Target::Impl& target,
                         std::span<const std::int32_t> machine)
    : size_(static_cast<std::int32_t>(machine.size())) {
    TOPOPLACE_ASSERT(machine.size() <= kMostVertices);
    Builder(*this, shapes, target, machine).add_all();
}

}  // namespace topoplace::match
