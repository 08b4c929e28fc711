// Large neighbourhood search over plans, with prices of jobs for a guide and a bound.
//
// References: Barahona and Anbil, Mathematical Programming 87 (2000); Shaw, CP 1998.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <ranges>
#include <string>

#include "capacity/knapsack.hpp"
#include "capacity/prices.hpp"
#include "graph/index.hpp"
#include "topoplace/random.hpp"

namespace topoplace::capacity {
namespace {

using Jobs = std::vector<std::int32_t>;

constexpr double kNoise = 0.4;  // of prices, at most
constexpr std::uint64_t kStepsBetweenPlans = 25;
// How many nodes a round clears, drawn evenly from these: most often two.
constexpr std::array<std::size_t, 8> kCleared{1, 1, 2, 2, 2, 2, 3, 3};

class Search {
  public:
    Search(const Problem::Impl& problem, const SearchParams& params)
        : problem_(problem),
          params_(params),
          meter_(params.stop),
          random_(params.seed),
          knapsack_(problem),
          prices_(problem, params.num_nodes),
          price_(index(problem.num_jobs)) {}

    SearchResult run();

  private:
    void begin();
    void round();
    // Takes some nodes out of `trial_`, most often two.
    void clear();
    // Fills `trial_` up to the number of nodes wanted, for jobs at their prices, but the last as if no node
    // came after it. `noise`: how far prices are disturbed. False where the search was stopped before.
    bool fill(double noise);
    // Fills `trial_` with nodes of one job each, where it is cheapest.
    void fill_singly();
    // The best node for some of the jobs that wait, so that each node after it can have one.
    Node next_node(Jobs jobs);
    Jobs waiting() const;
    bool is_plan(const std::vector<Node>& nodes) const;
    // `trial_` becomes the plan if it is no dearer.
    void accept();
    double uniform() { return double(random_.next() >> 11) * 0x1p-53; }
    static double cost_of(const std::vector<Node>& nodes);

    const Problem::Impl& problem_;
    const SearchParams& params_;
    WorkMeter meter_;
    Random random_;
    Knapsack knapsack_;
    Prices prices_;
    std::vector<double> price_;
    std::vector<Node> nodes_;
    std::vector<Node> trial_;
    SearchResult result_;
};

double Search::cost_of(const std::vector<Node>& nodes) {
    // One after the other: `transform_reduce` adds in an order that each standard library chooses for itself.
    return std::accumulate(nodes.begin(), nodes.end(), 0.0,
                           [](double sum, const Node& node) { return sum + node.cost; });
}

Jobs Search::waiting() const {
    std::vector<bool> runs(index(problem_.num_jobs));
    for (const Node& node : trial_) {
        for (const Placed& placed : node.jobs) runs[index(placed.job)] = true;
    }
    Jobs jobs;
    for (std::int32_t job = 0; job < problem_.num_jobs; ++job) {
        if (!runs[index(job)]) jobs.push_back(job);
    }
    TOPOPLACE_ASSERT(is_plan(trial_));
    return jobs;
}

// No job twice, no node empty or with more GPUs given away than it has.
bool Search::is_plan(const std::vector<Node>& nodes) const {
    std::vector<bool> runs(index(problem_.num_jobs), false);
    for (const Node& node : nodes) {
        std::int32_t left = problem_.gpus[index(node.type)];
        for (const Placed& placed : node.jobs) {
            left -= placed.gpus;
            if (runs[index(placed.job)] || placed.gpus < 1 || left < 0) return false;
            runs[index(placed.job)] = true;
        }
        if (node.jobs.empty()) return false;
    }
    return std::ssize(nodes) <= params_.num_nodes;
}

Node Search::next_node(Jobs jobs) {
    TOPOPLACE_ASSERT(!jobs.empty() && jobs.size() + trial_.size() >= index(params_.num_nodes));
    const std::size_t most = jobs.size() - (index(params_.num_nodes) - trial_.size() - 1);
    Node node = best_node(knapsack_, problem_, jobs, price_, meter_);
    if (node.jobs.size() <= most) return node;
    for (std::size_t i = 0; i < most; ++i) {
        std::swap(jobs[i], jobs[i + index(random_.below(std::int32_t(jobs.size() - i)))]);
    }
    jobs.resize(most);
    std::ranges::sort(jobs);
    return best_node(knapsack_, problem_, jobs, price_, meter_);
}

bool Search::fill(double noise) {
    while (trial_.size() < index(params_.num_nodes)) {
        if (meter_.stopped()) return false;
        Jobs jobs = waiting();
        const bool last = trial_.size() + 1 == index(params_.num_nodes);
        for (const std::int32_t job : jobs) {
            const double worth = last ? 0 : prices_.best()[index(job)];
            price_[index(job)] = worth * (1 + noise * (2 * uniform() - 1));
        }
        trial_.push_back(next_node(std::move(jobs)));
    }
    return true;
}

void Search::fill_singly() {
    const std::size_t missing = index(params_.num_nodes) - trial_.size();
    for (const std::int32_t job : waiting() | std::views::take(missing)) {
        Node cheapest{.type = 0, .jobs = {}, .cost = kNever};
        for (std::int32_t type = 0; type < problem_.num_types; ++type) {
            for (std::int32_t gpus = 1; gpus <= problem_.gpus[index(type)]; ++gpus) {
                Node node{.type = type, .jobs = {{job, gpus}}};
                node.cost = problem_.cost(node);
                if (node.cost < cheapest.cost) cheapest = std::move(node);
            }
        }
        trial_.push_back(std::move(cheapest));
    }
}

void Search::clear() {
    const std::size_t wanted = kCleared[index(random_.below(std::int32_t{kCleared.size()}))];
    for (std::size_t i = 0; i < wanted && !trial_.empty(); ++i) {
        const auto at = random_.below(std::int32_t(trial_.size()));
        trial_.erase(trial_.begin() + at);
    }
}

void Search::accept() {
    TOPOPLACE_ASSERT(is_plan(trial_) && trial_.size() == index(params_.num_nodes));
    const double cost = cost_of(trial_);
    if (cost < result_.cost) ++result_.improvements;
    if (cost <= result_.cost) {
        result_.cost = cost;
        nodes_.swap(trial_);
    }
}

void Search::round() {
    trial_ = nodes_;
    clear();
    if (!fill(kNoise * uniform())) return;
    accept();
    ++result_.rounds;
}

void Search::begin() {
    trial_.assign(params_.start.begin(), params_.start.end());
    for (Node& node : trial_) node.cost = problem_.cost(node);
    if (!fill(0)) fill_singly();
    nodes_ = trial_;
    result_.cost = cost_of(nodes_);
    for (std::uint64_t i = 1; i <= params_.price_steps && !meter_.look_at_clock(); ++i) {
        prices_.step(result_.cost + problem_.all_wait, knapsack_, meter_);
        if (i % kStepsBetweenPlans != 0) continue;
        trial_.clear();
        if (fill(0)) accept();
    }
}

SearchResult Search::run() {
    begin();
    while (result_.rounds < params_.rounds && !meter_.stopped() && !meter_.look_at_clock()) round();
    result_.complete = !meter_.stopped();
    result_.knapsacks = meter_.nodes();
    result_.cost += problem_.all_wait;
    result_.bound = prices_.bound();
    TOPOPLACE_ASSERT(result_.bound <= result_.cost + 1e-6 * (1 + std::abs(result_.cost)));
    result_.nodes = std::move(nodes_);
    return std::move(result_);
}

Fault check_start(const Problem::Impl& problem, const SearchParams& params) {
    if (params.start.empty()) return std::nullopt;
    const auto wrong = [](std::size_t i, const char* why) {
        return "start[" + std::to_string(i) + "] " + why;
    };
    if (params.start.size() != index(params.num_nodes)) return "start: num_nodes nodes needed";
    std::vector<bool> runs(index(problem.num_jobs));
    for (std::size_t i = 0; i < params.start.size(); ++i) {
        const Node& node = params.start[i];
        if (node.type < 0 || node.type >= problem.num_types) return wrong(i, "has no type there is");
        if (node.jobs.empty()) return wrong(i, "has no job");
        std::int64_t left = problem.gpus[index(node.type)];
        for (const auto& [job, gpus] : node.jobs) {
            if (job < 0 || job >= problem.num_jobs || runs[index(job)])
                return wrong(i, "has a job twice, or one there is not");
            if (gpus < 1 || (left -= gpus) < 0) return wrong(i, "gives away more GPUs than it has, or none");
            if (!std::isfinite(problem.gain(node.type, job)[index(gpus - 1)]))
                return wrong(i, "has a job that cannot run there");
            runs[index(job)] = true;
        }
    }
    return std::nullopt;
}

}  // namespace

Fault check(const Problem& problem, const SearchParams& params) {
    const std::int32_t jobs = problem.num_jobs();
    if (params.num_nodes < 0 || params.num_nodes > jobs)
        return "num_nodes = " + std::to_string(params.num_nodes) + " is not in 0.." + std::to_string(jobs);
    return check_start(problem.impl(), params);
}

SearchResult search(const Problem& problem, const SearchParams& params) {
    TOPOPLACE_ASSERT(!check(problem, params));
    return Search(problem.impl(), params).run();
}

}  // namespace topoplace::capacity
