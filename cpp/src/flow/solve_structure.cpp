#include <algorithm>
#include <numeric>

#include "flow/structure.hpp"

namespace topoplace::flow {
namespace {

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

// The arcs in the order of their tails; empty if that is the order they are in.
std::vector<std::int32_t> by_tail(const Network& network) {
    if (std::is_sorted(network.tail.begin(), network.tail.end())) return {};
    std::vector<std::int32_t> starts(network.supply.size() + 1, 0);
    for (const std::int32_t tail : network.tail) ++starts[index(tail) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<std::int32_t> order(network.tail.size());
    for (std::size_t arc = 0; arc < order.size(); ++arc) {
        std::int32_t& next = starts[index(network.tail[arc])];
        order[index(next++)] = static_cast<std::int32_t>(arc);
    }
    return order;
}

// Adds the tasks with their options; false if these lead to places in too many ways.
bool add_tasks(const Network& network, Infrastructure& infrastructure, Assignment& assignment,
               std::vector<std::int32_t>& node_of) {
    assignment.reserve(network.supply.size(), network.supply.size(), network.tail.size());
    const std::vector<std::int32_t> order = by_tail(network);
    for (std::size_t i = 0; i < network.tail.size(); ++i) {
        const std::size_t arc = order.empty() ? i : index(order[i]);
        const std::int32_t tail = network.tail[arc];
        if (infrastructure.role(tail) != Role::task || network.capacity[arc] == 0) continue;
        if (node_of.empty() || node_of.back() != tail) {
            assignment.add_task();
            node_of.push_back(tail);
        }
        const std::int32_t target = infrastructure.target(network.head[arc], network, assignment);
        if (target == Infrastructure::kTooMany) return false;
        if (target >= 0) assignment.add_option({network.cost[arc], target, static_cast<std::int32_t>(arc)});
    }
    return true;
}

}  // namespace

std::optional<FlowResult> solve_structure(const Network& network, const FlowParams& params) {
    Infrastructure infrastructure;
    Assignment assignment;
    std::vector<std::int32_t> node_of;
    if (!infrastructure.recognise(network)) return std::nullopt;
    if (!add_tasks(network, infrastructure, assignment, node_of)) return std::nullopt;
    if (assignment.num_tasks() < infrastructure.num_tasks()) return std::nullopt;
    FlowResult result;
    NodeCounter counter(params.deadline);
    timespec a; auto now=[&]{clock_gettime(CLOCK_THREAD_CPUTIME_ID,&a);return (double)a.tv_sec*1e3+(double)a.tv_nsec*1e-6;};
    double t0=now(); int direct=0,posfree=0,left=0;
    if (getenv("EST")) assignment.estimate_values(atoi(getenv("EST")));
    double t1=now();
    for (std::int32_t task = 0; task < assignment.num_tasks(); ++task) if (assignment.insert_directly(task)) ++direct;
    double t2=now();
    for (std::int32_t i = 0; i < assignment.num_tasks(); ++i) {
        if (assignment.task(i).place>=0) continue; ++left;
        if (!assignment.insert(i, counter)) return std::nullopt;
    }
    if (getenv("V2")) { int32_t hub=-1; for (std::int32_t p = 0; p < assignment.num_targets(); ++p) if (assignment.is_hub(p)) hub=p; printf("hub %d level %lld\n",hub,(long long)assignment.value(hub)); int k=0;
      for (std::int32_t p = 0; p < assignment.num_targets(); ++p) if (!assignment.is_hub(p) && !assignment.is_full(p) && assignment.price(p) > 0 && ++k<12) printf("place %d price %lld load %d\n",p,(long long)assignment.price(p),assignment.load(p)); }
    double t3=now(); auto s1=counter.nodes();
    for (std::int32_t p = 0; p < assignment.num_targets(); ++p) if (!assignment.is_hub(p)) 
            while (!assignment.is_full(p) && assignment.price(p) > 0) {assignment.attract(p, counter);++posfree;}
    if (getenv("V2")) for (std::int32_t p = 0; p < assignment.num_targets(); ++p) if (assignment.is_hub(p)) printf("final level %lld\n",(long long)assignment.value(p));
    double t4=now();auto s2=counter.nodes();
    if (getenv("V")) printf("est %.3f direct %d of %d %.3f | insert %d %.3f ms %llu | attract %d %.3f ms %llu\n",t1-t0,direct,assignment.num_tasks(),t2-t1,left,t3-t2,(unsigned long long)(s1),posfree,t4-t3,(unsigned long long)(s2-s1));
    infrastructure.expand(network, assignment, node_of, result);
    result.steps = counter.nodes();
    result.status = Status::optimal;
    return result;
}

}  // namespace topoplace::flow
