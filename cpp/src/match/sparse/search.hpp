// Branch and bound over mappings whose images are found in lists of neighbours.
//
// As in branch_and_bound.hpp, vertices are placed in the order of a plan, the most promising image first, and
// pattern symmetry is broken by elimination. The bound looks at placed vertices and their neighbours alone,
// so that a node takes time by degrees, not by the size of the target. Let r be the edges that a vertex still
// lacks, and top(v, r) the weight of the r heaviest edges of v that lead to usable, unused vertices. The
// edges not covered yet weigh at most
// - the sum of top(v, r) over the placed vertices, and the inner edges at the most that any vertices offer,
// - half the sum over all vertices, where one not placed counts as the best vertex there is.
// First images come by descending bound: the search ends at the first that falls short.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "match/goal.hpp"
#include "match/graphs/pattern.hpp"
#include "match/scores.hpp"
#include "match/sparse/ball.hpp"
#include "match/sparse/edges.hpp"

namespace topoplace::match::sparse {

enum class Worth {
    weights,  // of the edges used, summed
    nothing,  // every embedding scores 0
};

class Search {
  public:
    // Embeddings of usable vertices, the required ones among them, that score at least `floor`.
    struct Task {
        const Plan& plan;
        Goal goal = Goal::best;
        std::int32_t root = kAbsent;  // the image of the plan's first vertex; kAbsent: any
        Fixed floor = kNoScore + 1;
        Fixed enough = kEnough;  // a score that cannot be beaten
    };
    // An image, and the most its edges can weigh.
    struct Ranked {
        Fixed top;
        std::int32_t vertex;
    };

    // Embeddings within `free`. Cannot run where `meter` stops.
    Search(const Pattern::Impl& pattern, const Edges& edges, Worth worth, std::span<const std::int32_t> free,
           WorkMeter& meter, double tolerance);

    bool is_usable(std::int32_t v) const { return (state_[index(v)] & kUsable) != 0; }
    void forbid(std::int32_t v) { state_[index(v)] &= ~kUsable; }
    // Embeddings have to contain v from now on.
    void require(std::int32_t v) {
        state_[index(v)] |= kRequired;
        required_.push_back(v);
    }
    std::span<const std::int32_t> required() const { return required_; }
    bool is_required(std::int32_t v) const { return (state_[index(v)] & kRequired) != 0; }
    // Undoes the last require().
    void release() {
        state_[index(required_.back())] &= ~kRequired;
        required_.pop_back();
    }

    SearchResult run(const Task& task);

    // No embedding scores more; kNoScore where none exists.
    Fixed bound(const Plan& plan);

  private:
    // What a plan's open edges can weigh, by the number of placed vertices.
    struct Prospects {
        std::vector<Fixed> inner;  // of edges that no placed vertex touches
        std::vector<Fixed> ends;   // of all edges at vertices not placed, counted at these ends
    };
    struct Branch {
        Fixed promise;
        Fixed merit;  // weight of the edges to placed vertices
        std::int32_t image;
    };
    // What all images of a depth share: the edges covered, and the tops of the placed vertices then.
    struct Base {
        Fixed sum;
        Fixed outer;
    };

    static constexpr std::uint64_t kUsable = std::uint64_t{1} << 62;
    static constexpr std::uint64_t kUsed = std::uint64_t{1} << 61;
    static constexpr std::uint64_t kRequired = std::uint64_t{1} << 60;
    static constexpr std::int32_t kMarkedDepths = 60;  // deeper ones do not break symmetry

    void prepare_tops();
    const Prospects& prospects(const Plan& plan);
    const std::vector<Ranked>& ranked(std::int32_t degree);
    void list_ascending();

    Fixed worth(Fixed weight) const { return worth_ == Worth::weights ? weight : 0; }
    Fixed top(std::int32_t v, std::int32_t edges) const;
    Fixed promise(std::int32_t depth, const Base& base, Fixed merit, Fixed top) const;
    Base base_of(std::int32_t depth, Fixed sum) const;
    bool may_take(std::int32_t depth, std::int32_t v) const;
    bool required_possible(std::int32_t depth) const;
    bool may_serve(std::int32_t depth, std::int32_t later, std::int32_t v) const;
    Fixed merit_of(std::int32_t depth, std::int32_t v, std::int32_t pivot, Fixed weight) const;

    void descend(std::int32_t depth, Fixed sum);
    void among_neighbors(std::int32_t depth, const Base& base);
    void among_all(std::int32_t depth, const Base& base);
    void at(std::int32_t root);
    void add(std::int32_t depth, const Base& base, Fixed merit, std::int32_t v);
    void follow(std::int32_t depth, std::size_t begin, Fixed sum);
    void place(std::int32_t depth, std::int32_t v, Fixed sum);
    void accept(Fixed value);
    std::uint64_t mark_of(std::int32_t depth) const {
        return depth < kMarkedDepths ? std::uint64_t{1} << depth : 0;
    }
    void prepare_depths();

    const Pattern::Impl& pattern_;
    const Edges& edges_;
    const Worth worth_;
    WorkMeter& meter_;
    const double tolerance_;
    const std::int32_t size_;
    // By vertex: usable, used, required, and the depths at which it was tried.
    std::vector<std::uint64_t> state_;
    std::vector<std::int32_t> required_;
    std::vector<Fixed> best_top_;                         // by number of edges
    std::map<std::int32_t, std::vector<Ranked>> ranked_;  // by degree
    std::vector<Ranked> ascending_;
    std::map<const Plan*, Prospects> prospects_;
    std::map<const Plan*, RootBall> balls_;

    const Plan* plan_ = nullptr;
    const Prospects* ahead_ = nullptr;
    RootBall* ball_ = nullptr;
    std::vector<std::uint64_t> eliminated_;  // by depth: marks that exclude an image
    Goal goal_ = Goal::best;
    std::int32_t root_ = kAbsent;
    std::int32_t missing_ = 0;  // required vertices not used yet
    std::vector<std::int32_t> image_;
    std::vector<Branch> branches_;
    std::vector<std::int32_t> found_;
    Fixed score_ = kNoScore;
    Fixed need_ = kNoScore;
    Fixed enough_ = 0;
    Fixed rest_bound_ = 0;  // of first images that are still to come
    bool success_ = false;
    bool done_ = false;
};

}  // namespace topoplace::match::sparse
