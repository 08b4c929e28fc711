// Networks that are kept: a scheduling graph and changes to it, and after each of them the answer from where
// the last one stopped against the network simplex' from nothing, and its proof.
#include <algorithm>
#include <vector>

#include "fuzz.hpp"
#include "topoplace/flow.hpp"
#include "topoplace/flow_network.hpp"

namespace {

namespace flow = topoplace::flow;
using flow::Algorithm;
using flow::Status;

using Rows = std::vector<std::int32_t>;
using Values = std::vector<std::int64_t>;

void check_proof(const flow::Network& network, const flow::FlowResult& found) {
    if (found.status == Status::optimal)
        REQUIRE(!flow::verify_flow(network, found.flow, found.potential, found.cost));
    if (found.status == Status::infeasible) REQUIRE(!flow::verify_infeasible(network, found.cut));
    if (found.status == Status::unbounded) REQUIRE(!flow::verify_unbounded(network, found.cycle));
}

class Case {
  public:
    Case(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

    void run() {
        form_ = bytes_.below(64);
        constexpr std::int64_t kUnits[] = {1, 1, std::int64_t{1} << 28, std::int64_t{1} << 44};
        unit_ = kUnits[form_ % 4];
        build();
        for (std::int32_t changes = 2 + bytes_.below(24); changes-- > 0;) {
            change();
            if (bytes_.below(4) > 0) check();
        }
        check();
    }

  private:
    std::int64_t cost() { return unit_ * (bytes_.below(12) - 2); }
    std::int64_t capacity() {
        const std::int32_t units = bytes_.below(6);
        return units == 5 ? flow::kInfinite : units;
    }
    // One of the rows that are left; -1: none are.
    std::int32_t any(const Rows& rows) {
        return rows.empty() ? -1 : rows[std::size_t(bytes_.below(std::int32_t(rows.size())))];
    }
    static void done(const topoplace::Fault& fault) { REQUIRE(!fault); }
    std::int32_t node(std::int64_t supply) {
        Rows added;
        done(kept_.add_nodes(Values{supply}, added));
        nodes_.push_back(added.front());
        return nodes_.back();
    }
    void arc(std::int32_t tail, std::int32_t head, std::int64_t units, std::int64_t each) {
        if (tail < 0 || head < 0) return;
        Rows added;
        done(kept_.add_arcs(Rows{tail}, Rows{head}, Values{units}, Values{each}, added));
        arcs_.push_back(added.front());
    }

    void build() {
        const std::int32_t sinks = form_ & 4 ? 1 + bytes_.below(3) : 1;
        for (std::int32_t i = 0; i < sinks; ++i) sinks_.push_back(node(-1 - bytes_.below(12)));
        if (form_ & 8) done(kept_.set_supply(Rows{sinks_.front()}, Values{-1000}));
        for (std::int32_t i = 1 + bytes_.below(4); i-- > 0;) machine();
        for (std::int32_t i = bytes_.below(4); i-- > 0;) hub();
        for (std::int32_t i = bytes_.below(6); i-- > 0;) tasks();
    }
    void machine() {
        const std::int32_t added = node(0);
        arc(added, any(sinks_), capacity(), cost());
        if (bytes_.below(8) == 0) arc(added, any(sinks_), capacity(), cost());
        targets_.push_back(added);
    }
    void hub() {
        const std::int32_t added = node(0);
        for (std::int32_t i = 1 + bytes_.below(4); i-- > 0;) {
            arc(added, any(targets_), bytes_.below(4) > 0 ? flow::kInfinite : capacity(), cost());
        }
        targets_.push_back(added);
    }
    // Its own task, or enough of them for the hubs they choose to keep account of them.
    void tasks() {
        const Rows options{any(targets_), any(targets_), any(sinks_)};
        const Values costs{cost(), cost(), cost() + 9 * unit_};
        const std::int32_t unscheduled = bytes_.below(2) > 0 ? node(0) : -1;
        arc(unscheduled, any(sinks_), capacity(), cost() + 9 * unit_);
        const std::int32_t copies = form_ & 16 && bytes_.below(3) == 0 ? 70 : 1;
        const std::int32_t spread = bytes_.below(4);
        for (std::int32_t i = 0; i < copies; ++i) {
            const std::int32_t task = node(bytes_.below(4) > 0 ? 1 : 0);
            tasks_.push_back(task);
            arc(task, options[0], 1, costs[0] + unit_ * (i % (1 + spread)));
            arc(task, options[1], flow::kInfinite, costs[1]);
            if (unscheduled >= 0) arc(task, unscheduled, 1, costs[2]);
            if (unscheduled < 0 && spread > 1) arc(task, options[2], 1, costs[2]);
        }
    }

    // Some tasks supply nothing for now, or their unit again.
    void pause() {
        for (const std::int32_t task : tasks_) {
            if (bytes_.below(4) > 0) continue;
            const std::int64_t supply = kept_.network().supply[std::size_t(task)];
            done(kept_.set_supply(Rows{task}, Values{supply == 0 ? 1 : 0}));
        }
    }

    void change() {
        const std::int32_t at = any(nodes_);
        const std::int32_t of = any(arcs_);
        if (at < 0 || of < 0) return tasks();
        switch (bytes_.below(form_ & 32 ? 11 : 7)) {
            case 1:
                return pause();
            case 2:
                return done(kept_.set_cost(Rows{of}, Values{cost()}));
            case 3:
                return done(kept_.set_capacity(Rows{of}, Values{capacity()}));
            case 4:
                return remove(at);
            case 5:
                return limited();
            case 6:
                return arc(any(nodes_), any(targets_), 1, cost());
            case 7:
                return machine();
            case 8:
                return done(kept_.set_supply(Rows{at}, Values{bytes_.below(8) - 5}));
            case 9:
                done(kept_.remove_arcs(Rows{of}));
                return forget(arcs_, of);
            case 10:
                node(bytes_.below(5) - 3);
                return arc(any(nodes_), any(nodes_), capacity(), cost());
            default:
                return tasks();
        }
    }
    static void forget(Rows& rows, std::int32_t row) { std::erase(rows, row); }
    void remove(std::int32_t gone) {
        const flow::Network before = kept_.network();
        std::erase_if(arcs_, [&](std::int32_t a) {
            return before.tail[std::size_t(a)] == gone || before.head[std::size_t(a)] == gone;
        });
        done(kept_.remove_nodes(Rows{gone}));
        for (Rows* rows : {&nodes_, &sinks_, &targets_, &tasks_}) forget(*rows, gone);
    }

    void limited() {
        flow::FlowParams params;
        params.stop.max_nodes = std::uint64_t(1 + bytes_.below(64));
        check_proof(kept_.network(), kept_.solve(params));
    }
    void check() {
        flow::FlowParams params;
        const auto warm = kept_.solve(params);
        const auto at_once = flow::min_cost_flow(kept_.network(), params);
        params.algorithm = Algorithm::network_simplex;
        const auto expected = flow::min_cost_flow(kept_.network(), params);
        REQUIRE(at_once.status == expected.status && at_once.cost == expected.cost);
        REQUIRE(warm.status == expected.status && warm.cost == expected.cost);
        check_proof(kept_.network(), at_once);
        check_proof(kept_.network(), warm);
    }

    fuzz::Bytes bytes_;
    std::int32_t form_ = 0;
    std::int64_t unit_ = 1;
    flow::FlowNetwork kept_;
    Rows nodes_;
    Rows arcs_;
    Rows sinks_;
    Rows targets_;
    Rows tasks_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Case(data, size).run();
    return 0;
}
