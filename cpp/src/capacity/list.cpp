// Lists all nodes of low reduced cost: a depth-first search that goes down no branch without one.
//
// Reference: Gilmore and Gomory, Operations Research 9 (1961), for the knapsacks that bound it.
#include <algorithm>
#include <functional>

#include "capacity/knapsack.hpp"
#include "capacity/problem.hpp"
#include "graph/index.hpp"

namespace topoplace::capacity {
namespace {

// All nodes of one type: a depth-first search over jobs from the last to the first, bounded exactly by the
// knapsacks of the jobs before.
class Lister {
  public:
    Lister(const Problem::Impl& problem, std::span<const double> price, double limit, std::size_t most,
           WorkMeter& meter, std::vector<PricedNode>& found)
        : problem_(problem), price_(price), limit_(limit), most_(most), meter_(meter), found_(found) {}

    // False where there are too many, or time is up.
    bool list(std::int32_t type);

  private:
    // The least cost of the first `jobs` jobs on at most `left` GPUs: where none pays, and where one does.
    struct Level {
        double unpaid;
        double paid;
    };
    Level& level(std::int32_t jobs, std::int32_t left) {
        TOPOPLACE_ASSERT(jobs >= 0 && jobs <= problem_.num_jobs && left >= 0 && left <= size_);
        return levels_[index(jobs) * index(size_ + 1) + index(left)];
    }
    void fill();
    bool visit(std::int32_t jobs, std::int32_t left, double cost, double least);
    bool worthwhile(std::int32_t jobs, std::int32_t left, double cost, double least);
    bool emit(double cost, double least);

    const Problem::Impl& problem_;
    std::span<const double> price_;
    double limit_;
    std::size_t most_;
    WorkMeter& meter_;
    std::vector<PricedNode>& found_;
    std::int32_t type_ = 0;
    std::int32_t size_ = 0;
    std::vector<Level> levels_;
    std::vector<Placed> chosen_;
};

void Lister::fill() {
    levels_.assign(index(problem_.num_jobs + 1) * index(size_ + 1), Level{0, kNever});
    for (std::int32_t j = 0; j < problem_.num_jobs; ++j) {
        const auto gain = problem_.gain(type_, j);
        const auto pay = problem_.pay(type_, j);
        for (std::int32_t left = 0; left <= size_; ++left) {
            Level best = level(j, left);
            for (std::int32_t g = 1; g <= left; ++g) {
                const Level& before = level(j, left - g);
                const double cost = gain[index(g - 1)] - price_[index(j)];
                best.unpaid = std::min(best.unpaid, before.unpaid + cost);
                best.paid =
                    std::min({best.paid, before.paid + cost, before.unpaid + cost + pay[index(g - 1)]});
            }
            level(j + 1, left) = best;
        }
    }
}

bool Lister::emit(double cost, double least) {
    if (found_.size() == most_) return false;
    TOPOPLACE_ASSERT(!chosen_.empty() && cost + least <= limit_);
    Node node{.type = type_, .jobs = chosen_};
    std::ranges::reverse(node.jobs);
    TOPOPLACE_ASSERT(std::ranges::is_sorted(node.jobs, std::less_equal<>(), &Placed::job));
    node.cost = problem_.cost(node);
    found_.push_back({std::move(node), cost + least});
    return true;
}

// `cost`: of the jobs chosen; `least`: of their payments. The first `jobs` jobs are still to be decided on:
// lists the nodes with one of these as their next job, from the last down, and then the one with none.
bool Lister::visit(std::int32_t jobs, std::int32_t left, double cost, double least) {
    for (std::int32_t job = jobs - 1; job >= 0 && left > 0; --job) {
        if (meter_.visit()) return false;
        if (!worthwhile(job + 1, left, cost, least)) return true;
        const auto gain = problem_.gain(type_, job);
        const auto pay = problem_.pay(type_, job);
        for (std::int32_t g = 1; g <= left; ++g) {
            const double more = cost + gain[index(g - 1)] - price_[index(job)];
            TOPOPLACE_ASSERT(chosen_.empty() || chosen_.back().job > job);
            chosen_.push_back({job, g});
            const bool go_on = visit(job, left - g, more, std::min(least, pay[index(g - 1)]));
            chosen_.pop_back();
            if (!go_on) return false;
        }
    }
    return chosen_.empty() || cost + least > limit_ || emit(cost, least);
}

// True if a node with these and some of the first `jobs` jobs is within the limit.
bool Lister::worthwhile(std::int32_t jobs, std::int32_t left, double cost, double least) {
    const Level& rest = level(jobs, left);
    return cost + std::min(least + rest.unpaid, rest.paid) <= limit_;
}

bool Lister::list(std::int32_t type) {
    type_ = type;
    size_ = problem_.gpus[index(type)];
    fill();
    TOPOPLACE_ASSERT(chosen_.empty());
    return visit(problem_.num_jobs, size_, problem_.open[index(type)], kNever);
}

}  // namespace

std::optional<std::vector<PricedNode>> list(const Problem& problem, std::span<const double> price,
                                            double limit, std::size_t most, const StopCondition& stop) {
    const Problem::Impl& impl = problem.impl();
    TOPOPLACE_ASSERT(!check(problem, price));
    WorkMeter meter(stop);
    std::vector<PricedNode> found;
    Lister lister(impl, price, limit, most, meter, found);
    for (std::int32_t type = 0; type < impl.num_types; ++type) {
        if (!lister.list(type)) return std::nullopt;
    }
    return found;
}

}  // namespace topoplace::capacity
