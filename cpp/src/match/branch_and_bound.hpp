// Branch and bound over mappings, for any score of scores.hpp.
//
// Vertices are placed in the order of a plan, the most promising image first. A node is left when its bound
// falls short of what is needed. Pattern symmetry is broken by elimination: once the subtree of image v at
// depth i is done, no sibling's subtree lets a vertex of the orbit of order[i] (under the automorphisms that
// fix what was placed before) go to v, since swapping the two would lead back. Which image comes first is
// thus free to choose, and where the orbit holds everything still to be placed, v is gone from the free set
// and tightens the bound.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "graph/index.hpp"
#include "match/anneal.hpp"
#include "match/goal.hpp"
#include "match/polish.hpp"
#include "match/scores.hpp"

namespace topoplace::match {

inline constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

// What helps a search that has proved hard.
struct Starts {
    // Simulated annealing of the best embedding so far: the temperature it begins with, in weights of the
    // heaviest edge, and how slowly it falls.
    struct Annealing {
        double hottest;
        std::uint64_t slowness;
    };
    // Images by pattern vertex to start from; they need not be embeddings.
    std::vector<std::vector<std::int32_t>> mappings{};
    // No embedding reaches what was needed when they were asked for and is better than the best of them.
    bool settled = false;
    Fixed bound = kEnough;  // no embedding scores more
    std::span<const Annealing> annealing{};
    std::uint64_t pause = 0;  // nodes of the search before the next are asked for
};

// Embeddings within `usable` that contain `required` and score at least `floor`.
template <int W>
struct SearchTask {
    const Plan& plan;
    Goal goal = Goal::best;
    Bits<W> usable{};
    Bits<W> required{};
    Bits<W> roots{};  // images the first vertex may take
    Fixed floor = kNoScore + 1;
    Fixed enough = kEnough;              // a score that cannot be beaten
    std::uint64_t max_nodes = kEndless;  // then the best embedding found until then is returned
    // Once the search has proved hard, these are asked (unless empty): by vertex, for those that are its like
    // under the target's symmetries, as one root of an orbit is enough; and for starts, given the least score
    // that is needed.
    std::function<std::vector<Bits<W>>()> orbit_mates{};
    std::function<Starts(Fixed need)> ask_starts{};
};

template <int W, Score S>
class BranchAndBound {
  public:
    BranchAndBound(const Pattern::Impl& pattern, const BitRows& adjacency, S score, const BestParams& params,
                   WorkMeter& meter)
        : pattern_(pattern),
          adjacency_(adjacency),
          score_(score),
          params_(params),
          meter_(meter),
          size_(pattern.size()),
          frames_(index(size_) + 1),
          image_(index(size_)),
          found_(index(size_)) {}

    SearchResult run(SearchTask<W> task) {
        TOPOPLACE_ASSERT(std::ssize(task.plan.order) == size_ && size_ > 0);
        TOPOPLACE_ASSERT(task.floor > kNoScore && branches_.empty());
        plan_ = &task.plan;
        goal_ = task.goal;
        usable_ = task.usable;
        required_ = task.required;
        roots_ = task.roots;
        orbit_mates_ = std::move(task.orbit_mates);
        mates_.clear();
        ask_starts_ = std::move(task.ask_starts);
        hard_after_ = meter_.nodes() + params_.symmetry_after;
        polish_after_ = twins_after_ = meter_.nodes() + params_.polish_after;
        last_node_ = task.max_nodes < kEndless ? meter_.nodes() + task.max_nodes : kEndless;
        need_ = task.floor;
        enough_ = task.enough;
        success_ = done_ = is_limited_ = is_polished_ = false;
        twins_.clear();
        frames_[0].used = Bits<W>{};
        frames_[0].state = root_state(usable_);
        descend(0);
        TOPOPLACE_ASSERT(branches_.empty());
        TOPOPLACE_ASSERT(!success_ || (found_score_ >= task.floor && need_ > found_score_));
        const bool is_whole = !meter_.stopped() && !is_limited_;
        return {.found = success_,
                .vertices = found_,
                .score = found_score_,
                .need = need_,
                .bound = is_whole ? std::min(enough_, need_ - 1) : enough_,
                .is_limited = is_limited_};
    }

    // No embedding scores more than this, whatever was searched; kNoScore where none exists.
    Fixed root_bound(const Plan& plan, const Bits<W>& usable, Fixed floor) {
        return root_bound(plan, usable, floor, [](typename S::State&) {});
    }
    // limit: gets the state of the root, which it may make more narrow.
    template <std::invocable<typename S::State&> Limit>
    Fixed root_bound(const Plan& plan, const Bits<W>& usable, Fixed floor, Limit&& limit) {
        plan_ = &plan;
        required_ = Bits<W>{};
        frames_[0].used = Bits<W>{};
        typename S::State state = root_state(usable);
        limit(state);
        return score_.bound(state, partial(0, usable), floor);
    }
    // What is known before anything is placed.
    typename S::State root(const Plan& plan, const Bits<W>& usable) {
        typename S::State state{};
        root_bound(plan, usable, kNoScore + 1, [](typename S::State&) {});
        state = root_state(usable);
        score_.bound(state, partial(0, usable), kNoScore + 1);
        return state;
    }

  private:
    struct Frame {
        Bits<W> used;
        Bits<W> tried;
        typename S::State state;
    };
    struct Branch {
        Outlook outlook;
        std::int32_t image;
    };

    static constexpr std::uint64_t kMaxPolishRound = 1 << 20;
    // Of annealing: edges looked at.
    static constexpr std::uint64_t kEdgesPerTemperature = 1 << 13;
    static constexpr std::uint64_t kStepsPerEdge = 32;
    static constexpr std::int32_t kLooseRoots = 8;  // of every 8 usable vertices, one may be missing

    // The bound at every depth of the current path, when it is evaluated again, allows the score it leads to.
    bool admissible(Fixed value) {
        for (std::int32_t depth = 0; depth < size_; ++depth) {
            typename S::State state = frames_[index(depth)].state;
            if (score_.bound(state, partial(depth, free_at(depth)), kNoScore + 1) < value) return false;
        }
        return true;
    }

    bool is_ordered(std::size_t begin) const {
        const auto by_outlook = [](const Branch& a, const Branch& b) { return a.outlook > b.outlook; };
        const auto by_image = [](const Branch& a, const Branch& b) { return a.image < b.image; };
        const auto first = branches_.begin() + static_cast<std::ptrdiff_t>(begin);
        return goal_ == Goal::first ? std::is_sorted(first, branches_.end(), by_image)
                                    : std::is_sorted(first, branches_.end(), by_outlook);
    }

    Partial<W> partial(std::int32_t depth, const Bits<W>& free) const {
        return {*plan_, depth, image_, free, required_ - frames_[index(depth)].used};
    }

    Bits<W> free_at(std::int32_t depth) const {
        Bits<W> free = usable_ - frames_[index(depth)].used;
        for (const std::int32_t i : plan_->settled[depth]) free -= frames_[index(i)].tried;
        return free;
    }

    Bits<W> candidates(std::int32_t depth, Bits<W> set) const {
        for (const std::int32_t i : plan_->back[depth]) set &= adjacency_.get<W>(index(image_[index(i)]));
        for (const std::int32_t i : plan_->siblings[depth]) set -= frames_[index(i)].tried;
        if (depth == 0) set &= roots_;
        const Bits<W> missing = required_ - frames_[index(depth)].used;
        return missing.count() == size_ - depth ? set & missing : set;
    }

    bool required_possible(std::int32_t depth, const Bits<W>& free) const {
        const Bits<W> missing = required_ - frames_[index(depth)].used;
        return missing.count() <= size_ - depth && !(missing - free).any();
    }

    void descend(std::int32_t depth) {
        if (meter_.visit() || meter_.nodes() > last_node_) {
            done_ = is_limited_ = true;
            return;
        }
        Frame& frame = frames_[index(depth)];
        TOPOPLACE_ASSERT(frame.used.count() == depth && !(frame.used - usable_).any());
        const Bits<W> free = free_at(depth);
        if (free.count() < size_ - depth || !required_possible(depth, free)) return;
        if (meter_.spend(steps_of_bound(depth, free))) {
            done_ = true;
            return;
        }
        if (score_.bound(frame.state, partial(depth, free), need_) < need_) return;
        const Bits<W> set = candidates(depth, free);
        if (depth + 1 == size_) return finish(depth, set);
        frame.tried = Bits<W>{};
        expand(depth, set);
    }

    // What is known of a few more usable vertices holds for these too.
    const typename S::State& root_state(const Bits<W>& usable) {
        const bool is_known = known_usable_.any() && !(usable - known_usable_).any() &&
                              (known_usable_ - usable).count() <= known_usable_.count() / kLooseRoots;
        if (!is_known) {
            known_usable_ = usable;
            known_state_ = score_.root(pattern_, usable);
        }
        return known_state_;
    }

    // Each family of edges looks at the row of every free and every placed vertex.
    std::uint64_t steps_of_bound(std::int32_t depth, const Bits<W>& free) const {
        return std::uint64_t{W} * index(free.count() + depth) * (1 + score_.num_groups());
    }

    void expand(std::int32_t depth, const Bits<W>& set) {
        TOPOPLACE_ASSERT(depth + 1 < size_);
        const std::size_t begin = branches_.size();
        const auto back = plan_->back[depth];
        if (back.size() == 1 && goal_ != Goal::first && score_.num_groups() > 0) {
            add_groups(depth, set, image_[index(back[0])]);
        } else {
            add_one_by_one(depth, set);
        }
        TOPOPLACE_ASSERT(is_ordered(begin));
        follow(depth, begin);
        TOPOPLACE_ASSERT(branches_.size() >= begin);
        branches_.resize(begin);
    }

    // All images of a group have the same outlook.
    void add_groups(std::int32_t depth, const Bits<W>& set, std::int32_t placed) {
        const std::size_t begin = branches_.size();
        const std::int32_t rest = plan_->rest[index(depth) + 1];
        for (std::size_t group = 0; group < score_.num_groups(); ++group) {
            const Outlook outlook = score_.group_outlook(frames_[index(depth)].state, group, rest);
            if (outlook.promise < need_) continue;
            const Bits<W> members = set & score_.template group<W>(group, placed);
            TOPOPLACE_ASSERT(!members.test(placed));
            members.for_each([&](std::int32_t v) { insert(begin, {outlook, v}); });
        }
    }

    void add_one_by_one(std::int32_t depth, const Bits<W>& set) {
        const std::size_t begin = branches_.size();
        const auto back = plan_->back[depth];
        const std::int32_t rest = plan_->rest[index(depth) + 1];
        meter_.spend(index(set.count()) * (8 + 4 * back.size()));
        set.for_each([&](std::int32_t v) {
            Outlook outlook = score_.outlook(frames_[index(depth)].state, v, back, image_, rest);
            if (outlook.promise < need_) return;
            if (goal_ == Goal::first) return branches_.push_back({outlook, v});
            if (depth == 0) outlook.merit = score_.potential(v, usable_, pattern_.degree(plan_->order[0]));
            insert(begin, {outlook, v});
        });
    }

    void follow(std::int32_t depth, std::size_t begin) {
        const std::size_t end = branches_.size();
        for (std::size_t i = begin; i < end && !done_; ++i) {
            TOPOPLACE_ASSERT(branches_.size() == end);
            const Branch branch = branches_[i];
            Frame& frame = frames_[index(depth)];
            if (branch.outlook.promise < need_ || frame.tried.test(branch.image)) continue;
            TOPOPLACE_ASSERT(!frame.used.test(branch.image) && usable_.test(branch.image));
            image_[index(depth)] = branch.image;
            Frame& next = frames_[index(depth) + 1];
            next.used = frame.used;
            next.used.set(branch.image);
            next.state = frame.state;
            score_.extend(next.state, branch.image, plan_->back[depth], image_);
            descend(depth + 1);
            frame.tried.set(branch.image);
            eliminate_twins(frame, branch.image);
            if (depth == 0 && orbit_mates_) eliminate_mates(frame);
            if (goal_ == Goal::best && meter_.nodes() >= polish_after_) improve();
        }
    }

    // Exchanging two twins, of which none is used yet, leads from one's subtree to the other's.
    void eliminate_twins(Frame& frame, std::int32_t image) {
        if (twins_.empty()) {
            if (meter_.nodes() < twins_after_) return;
            twins_ = twins();
        }
        frame.tried |= twins_[index(image)] - frame.used;
    }

    // By usable vertex, those that no usable vertex can tell from it; nothing but itself where time is up.
    std::vector<Bits<W>> twins() {
        std::vector<std::pair<Fixed, std::int32_t>> by_key;
        std::vector<Bits<W>> result(static_cast<std::size_t>(Bits<W>::kBits));
        usable_.for_each([&](std::int32_t v) {
            if (!meter_.spend(index(usable_.count()))) by_key.emplace_back(score_.twin_key(v, usable_), v);
        });
        std::sort(by_key.begin(), by_key.end());
        for (std::size_t i = 0; i < by_key.size(); ++i) {
            const auto [key, v] = by_key[i];
            if (result[index(v)].any()) continue;
            Bits<W> like = Bits<W>::single(v);
            for (std::size_t j = i + 1; j < by_key.size() && by_key[j].first == key; ++j) {
                if (are_twins(v, by_key[j].second)) like.set(by_key[j].second);
            }
            like.for_each([&](std::int32_t twin) { result[index(twin)] = like; });
        }
        return result;
    }

    bool are_twins(std::int32_t u, std::int32_t v) {
        meter_.spend(index(usable_.count()));
        Bits<W> others = usable_;
        others.reset(u);
        others.reset(v);
        return required_.test(u) == required_.test(v) && score_.are_twins(u, v, others);
    }

    void eliminate_mates(Frame& root) {
        if (meter_.nodes() < hard_after_) return;
        if (mates_.empty()) mates_ = orbit_mates_();
        const Bits<W> done = root.tried;
        done.for_each([&](std::int32_t v) {
            TOPOPLACE_ASSERT(mates_[index(v)].test(v));
            root.tried |= mates_[index(v)];
        });
    }

    // Keeps the branches from `begin` on by descending promise, then merit; equal ones as they come.
    void insert(std::size_t begin, const Branch& branch) {
        branches_.push_back(branch);
        std::size_t i = branches_.size() - 1;
        while (i > begin && branches_[i - 1].outlook < branch.outlook) {
            branches_[i] = branches_[i - 1];
            --i;
        }
        meter_.spend(4 * (branches_.size() - i));
        branches_[i] = branch;
    }

    // Where the search has proved hard: a better incumbent saves most of what is left to refute.
    void improve() {
        if (!success_ && !ask_starts_) return;
        polish_after_ = kEndless;
        if (success_ && !is_polished_) polish(found_);
        is_polished_ = true;
        while (!done_ && ask_starts_ && !meter_.stopped()) {
            const Starts starts = ask_starts_(need_);
            take(starts);
            if (starts.pause == 0) continue;
            polish_after_ = meter_.nodes() + starts.pause;
            return;
        }
    }

    void take(const Starts& starts) {
        enough_ = std::min(enough_, starts.bound);
        done_ = need_ > enough_;
        for (const std::vector<std::int32_t>& mapping : starts.mappings) {
            if (!done_ && !meter_.stopped()) polish(mapping);
        }
        for (const auto& [hottest, slowness] : starts.annealing) {
            if (success_ && !done_ && !meter_.stopped()) anneal(hottest, slowness);
        }
        done_ = done_ || (starts.settled && !meter_.stopped());
    }

    // Takes what local search from these images, by pattern vertex, leads to, if it is better.
    void polish(const std::vector<std::int32_t>& start) {
        std::vector<std::int32_t> image(index(size_));
        for (std::size_t d = 0; d < image.size(); ++d) image[d] = start[index(plan_->order[d])];
        const Fixed value = polished(image);
        if (value < (success_ ? found_score_ + 1 : need_)) return;
        image_.swap(image);
        accept(value);
        image_.swap(image);
    }

    // Takes what simulated annealing of the best embedding leads to, if it is better.
    void anneal(double hottest, std::uint64_t slowness) {
        if constexpr (requires { score_.heaviest(); }) {
            std::vector<std::int32_t> image(index(size_));
            for (std::size_t d = 0; d < image.size(); ++d) image[d] = found_[index(plan_->order[d])];
            MappingValue<W, S> value(*plan_, adjacency_, score_, required_);
            value.prepare();
            Anneal search(usable_, value, score_.heaviest(), meter_.nodes());
            const auto edges = static_cast<std::uint64_t>(4 * pattern_.num_edges() / size_ + 1);
            const Fixed reached =
                search.run(image, found_score_, hottest, slowness * kEdgesPerTemperature / edges,
                           [&] { return meter_.spend(kStepsPerEdge * slowness * kEdgesPerTemperature); });
            if (reached <= found_score_) return;
            image_.swap(image);
            accept(reached);
            image_.swap(image);
        }
    }

    Fixed polished(std::vector<std::int32_t>& image) {
        MappingValue<W, S> value(*plan_, adjacency_, score_, required_);
        const Fixed given = value.of(image);
        // One round tries every image of every vertex.
        const auto edges = static_cast<std::uint64_t>(pattern_.num_edges() * steps_of_change() / size_) + 1;
        if (edges * index(size_) * index(usable_.count()) > kMaxPolishRound) return given;
        value.prepare();
        Polish search(usable_, value);
        const std::uint64_t steps = 8 * edges * index(usable_.count());
        const Fixed reached = search.run(image, given, [this, steps] { return meter_.spend(steps); });
        TOPOPLACE_ASSERT(reached >= given && value_of(image) == reached);
        return reached;
    }

    // Edges that a change of one image looks at are these of all, in as many parts as there are vertices.
    std::int32_t steps_of_change() const {
        if constexpr (requires { score_.weight(0, 0); }) {
            return std::min(4, size_);
        } else {
            return size_;
        }
    }

    // Of a complete mapping, by depth.
    Fixed value_of(const std::vector<std::int32_t>& image) const {
        return MappingValue<W, S>(*plan_, adjacency_, score_, required_).of(image);
    }

    void finish(std::int32_t depth, const Bits<W>& set) {
        const auto back = plan_->back[depth];
        set.for_each([&](std::int32_t v) {
            if (done_) return;
            auto tally = score_.tally(frames_[index(depth)].state);
            for (const std::int32_t i : back) score_.add(tally, v, image_[index(i)]);
            const Fixed value = score_.total(tally);
            if (value < need_) return;
            image_[index(depth)] = v;
            TOPOPLACE_ASSERT(admissible(value));
            accept(value);
        });
    }

    void accept(Fixed value) {
        TOPOPLACE_ASSERT((success_ ? value > found_score_ : value >= need_) && value <= enough_);
        TOPOPLACE_ASSERT(value_of(image_) == value);
        success_ = true;
        found_score_ = value;
        for (std::int32_t d = 0; d < size_; ++d) found_[index(plan_->order[index(d)])] = image_[index(d)];
        need_ = std::max(need_, score_.within(value, params_.tolerance) + 1);
        done_ = goal_ != Goal::best || need_ > enough_;
    }

    const Pattern::Impl& pattern_;
    const BitRows& adjacency_;
    S score_;
    const BestParams& params_;
    WorkMeter& meter_;
    const std::int32_t size_;
    std::vector<Frame> frames_;
    std::vector<Branch> branches_;
    std::vector<std::int32_t> image_;
    std::vector<std::int32_t> found_;
    Fixed found_score_ = kNoScore;

    Bits<W> known_usable_;
    typename S::State known_state_;

    const Plan* plan_ = nullptr;
    Goal goal_ = Goal::best;
    Bits<W> usable_;
    Bits<W> required_;
    Bits<W> roots_;
    std::function<std::vector<Bits<W>>()> orbit_mates_;
    std::vector<Bits<W>> mates_;
    std::vector<Bits<W>> twins_;
    std::function<Starts(Fixed need)> ask_starts_;
    std::uint64_t hard_after_ = 0;
    std::uint64_t polish_after_ = 0;
    std::uint64_t twins_after_ = 0;
    std::uint64_t last_node_ = kEndless;
    Fixed need_ = kNoScore;
    Fixed enough_ = kEnough;
    bool success_ = false;
    bool is_limited_ = false;
    bool is_polished_ = false;
    bool done_ = false;
};

}  // namespace topoplace::match
