#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "capacity/knapsack.hpp"
#include "capacity/prices.hpp"
#include "topoplace/random.hpp"

namespace topoplace::capacity {
namespace {

using Jobs = std::vector<std::int32_t>;

constexpr double kNoise = 0.4;  // of prices, at most
constexpr std::uint64_t kStepsBetweenPlans = 25;

class Search {
  public:
    Search(const Problem::Impl& problem, const SearchParams& params)
        : problem_(problem),
          params_(params),
          counter_(params.deadline),
          random_(params.seed),
          knapsack_(problem),
          prices_(problem, params.num_nodes),
          price_(std::size_t(problem.num_jobs)) {}

    SearchResult run();

  private:
    void begin();
    void round();
    // Takes some nodes out of `trial_`, most often two.
    void clear();
    // Fills `trial_` up to the number of nodes wanted, for jobs at their prices, but the last as if no node
    // came after it. `noise`: how far prices are disturbed.
    void fill(double noise);
    // The best node for some of the jobs that wait, so that each node after it can have one.
    Node next_node(Jobs jobs);
    Jobs waiting() const;
    // `trial_` becomes the plan if it is no dearer.
    void accept();
    double uniform() { return double(random_.next() >> 11) * 0x1p-53; }
    static double cost_of(const std::vector<Node>& nodes);

    const Problem::Impl& problem_;
    const SearchParams& params_;
    NodeCounter counter_;
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
    std::vector<bool> runs(std::size_t(problem_.num_jobs));
    for (const Node& node : trial_) {
        for (const Placed& placed : node.jobs) runs[std::size_t(placed.job)] = true;
    }
    Jobs jobs;
    for (std::int32_t job = 0; job < problem_.num_jobs; ++job) {
        if (!runs[std::size_t(job)]) jobs.push_back(job);
    }
    return jobs;
}

Node Search::next_node(Jobs jobs) {
    const std::size_t most = jobs.size() - (std::size_t(params_.num_nodes) - trial_.size() - 1);
    Node node = best_node(knapsack_, problem_, jobs, price_, counter_);
    if (node.jobs.size() <= most) return node;
    for (std::size_t i = 0; i < most; ++i) {
        std::swap(jobs[i], jobs[i + std::size_t(random_.below(std::int32_t(jobs.size() - i)))]);
    }
    jobs.resize(most);
    std::ranges::sort(jobs);
    return best_node(knapsack_, problem_, jobs, price_, counter_);
}

void Search::fill(double noise) {
    while (trial_.size() < std::size_t(params_.num_nodes)) {
        Jobs jobs = waiting();
        const bool last = trial_.size() + 1 == std::size_t(params_.num_nodes);
        for (const std::int32_t job : jobs) {
            const double worth = last ? 0 : prices_.best()[std::size_t(job)];
            price_[std::size_t(job)] = worth * (1 + noise * (2 * uniform() - 1));
        }
        trial_.push_back(next_node(std::move(jobs)));
    }
}

void Search::clear() {
    const auto draw = random_.below(8);
    const std::size_t wanted = draw < 2 ? 1 : draw < 6 ? 2 : 3;
    for (std::size_t i = 0; i < wanted && !trial_.empty(); ++i) {
        const auto at = random_.below(std::int32_t(trial_.size()));
        trial_.erase(trial_.begin() + at);
    }
}

void Search::accept() {
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
    fill(kNoise * uniform());
    accept();
    ++result_.rounds;
}

void Search::begin() {
    trial_.assign(params_.start.begin(), params_.start.end());
    for (Node& node : trial_) node.cost = problem_.cost(node);
    fill(0);
    nodes_ = trial_;
    result_.cost = cost_of(nodes_);
    for (std::uint64_t i = 1; i <= params_.price_steps && !counter_.look_at_clock(); ++i) {
        prices_.step(result_.cost + problem_.all_wait, knapsack_, counter_);
        if (i % kStepsBetweenPlans != 0) continue;
        trial_.clear();
        fill(0);
        accept();
    }
}

SearchResult Search::run() {
    begin();
    while (result_.rounds < params_.rounds && !counter_.stopped() && !counter_.look_at_clock()) round();
    result_.complete = !counter_.stopped();
    result_.knapsacks = counter_.nodes();
    result_.cost += problem_.all_wait;
    result_.bound = prices_.bound();
    result_.nodes = std::move(nodes_);
    return std::move(result_);
}

void check_start(const Problem::Impl& problem, const SearchParams& params) {
    if (params.start.empty()) return;
    const auto refuse = [](std::size_t i, const char* why) {
        throw std::invalid_argument("start[" + std::to_string(i) + "] " + why);
    };
    if (params.start.size() != std::size_t(params.num_nodes))
        throw std::invalid_argument("start: num_nodes nodes needed");
    std::vector<bool> runs(std::size_t(problem.num_jobs));
    for (std::size_t i = 0; i < params.start.size(); ++i) {
        const Node& node = params.start[i];
        if (node.type < 0 || node.type >= problem.num_types) refuse(i, "has no type there is");
        if (node.jobs.empty()) refuse(i, "has no job");
        std::int64_t left = problem.gpus[std::size_t(node.type)];
        for (const auto& [job, gpus] : node.jobs) {
            if (job < 0 || job >= problem.num_jobs || runs[std::size_t(job)])
                refuse(i, "has a job twice, or one there is not");
            if (gpus < 1 || (left -= gpus) < 0) refuse(i, "gives away more GPUs than it has, or none");
            if (!std::isfinite(problem.gain(node.type, job)[std::size_t(gpus - 1)]))
                refuse(i, "has a job that cannot run there");
            runs[std::size_t(job)] = true;
        }
    }
}

}  // namespace

SearchResult search(const Problem& problem, const SearchParams& params) {
    const Problem::Impl& impl = problem.impl();
    if (params.num_nodes < 0 || params.num_nodes > impl.num_jobs) {
        throw std::invalid_argument("num_nodes = " + std::to_string(params.num_nodes) + " is not in 0.." +
                                    std::to_string(impl.num_jobs));
    }
    check_start(impl, params);
    return Search(impl, params).run();
}

}  // namespace topoplace::capacity
