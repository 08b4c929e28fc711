// Loads of hops: a collective that changes is taken from the hops that it loaded, and given to those that it
// loads.
#include "gang_mapping/gang_loads.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "graph/index.hpp"

namespace topoplace::gang_mapping {

using traffic::Kind;

namespace {

// From here on powers grow no faster than their ratios: sums of floats keep the digits of the small ones.
constexpr double kSteep = 2.0, kMost = 1e4;
constexpr std::uint64_t kStepsPerPair = 40;  // of `WorkMeter`, each a fifth of a nanosecond

}  // namespace

GangLoads::GangLoads(const GangParams& params)
    : params_(params),
      ports_(params.network->ports()),
      maker_(*params.network, params.job, true),
      phases_(params.job.phase_ends.size()),
      slot_of_hop_(2 * index(ports_.num_ports()) + 1, ports::kNone) {
    list_collectives();
    list_tasks();
}

void GangLoads::list_collectives() {
    const traffic::JobCollectives& job = params_.job;
    std::size_t next = 0;
    for (std::size_t phase = 0; phase < job.phase_ends.size(); ++phase) {
        for (; static_cast<std::int64_t>(next) < job.phase_ends[phase]; ++next) {
            const auto kind = static_cast<Kind>(job.kinds[next]);
            const bool by_pairs = kind == Kind::kPairs || kind == Kind::kSends;
            collectives_.push_back({.phase = static_cast<std::int32_t>(phase), .by_pairs = by_pairs});
        }
    }
    seen_.assign(collectives_.size(), 0);
}

void GangLoads::list_tasks() {
    const traffic::JobCollectives& job = params_.job;
    const std::size_t tasks = params_.tasks.size();
    first_of_task_.assign(tasks + 1, 0);
    for (const std::int32_t task : job.tasks) ++first_of_task_[index(task) + 1];
    for (std::size_t i = 1; i <= tasks; ++i) first_of_task_[i] += first_of_task_[i - 1];
    of_task_.resize(job.tasks.size());
    std::vector<std::int64_t> next_place(first_of_task_.begin(), first_of_task_.end() - 1);
    for (std::size_t one = 0; one < collectives_.size(); ++one) {
        for (std::int64_t i = job.begin_of(one); i < job.ends[one]; ++i) {
            const std::int32_t task = job.tasks[static_cast<std::size_t>(i)];
            of_task_[static_cast<std::size_t>(next_place[index(task)]++)] = static_cast<std::int32_t>(one);
        }
    }
}

void GangLoads::clear() {
    port_seconds_ = 0.0;
    for (Phase& phase : phases_) {
        for (const std::int32_t slot : phase.in_use) {
            phase.seconds[index(slot)] = 0.0;
            phase.flows[index(slot)] = 0;
            phase.is_listed[index(slot)] = 0;
            if (!phase.beside.empty()) phase.beside[index(slot)].sizes.clear();
        }
        phase.in_use.clear();
        phase.power = phase.scale = 0.0;
    }
}

// Looks at the clock for the hops that were loaded since the last look, and for other steps.
bool GangLoads::has_to_stop(WorkMeter& meter, std::uint64_t steps) {
    steps += kStepsPerHop * (work_ - std::exchange(looked_, work_));
    spent_ += steps;
    return spent_ >= kStepsPerHop * kLeast && meter.pass_time(steps);
}

bool GangLoads::set(const std::vector<std::int32_t>& vertex_of, WorkMeter& meter) {
    vertex_of_ = vertex_of;
    looked_ = work_;
    spent_ = 0;
    clear();
    for (std::size_t one = 0; one < collectives_.size(); ++one) {
        if (has_to_stop(meter, 0)) return false;
        if (params_.job.kinds[one] == static_cast<std::uint8_t>(Kind::kPairs)) {
            if (!put_all_pairs(one, meter)) return false;
            continue;
        }
        make(one);
        count(collectives_[one], 1);
    }
    for (const Collective& one : collectives_) {
        Phase& phase = phases_[index(one.phase)];
        phase.scale = std::max(phase.scale, one.rings);
    }
    for (Phase& phase : phases_) measure(phase);
    for (const Collective& one : collectives_) put_rings(phases_[index(one.phase)], one.rings, 1);
    return true;
}

// Of a collective of all pairs, which may be millions: none are listed.
bool GangLoads::put_all_pairs(std::size_t number, WorkMeter& meter) {
    const auto begin = static_cast<std::size_t>(params_.job.begin_of(number));
    const auto end = static_cast<std::size_t>(params_.job.ends[number]);
    const bool by_sides = may_count_sides(number);
    for (std::size_t own = begin; own < end; ++own) {
        if (has_to_stop(meter, by_sides ? kStepsPerPair * (end - begin) : 0)) return false;
        by_sides ? put_side(number, own) : put_pairs_after(number, own);
    }
    return true;
}

// Flows of many sizes count one by one beside others.
bool GangLoads::may_count_sides(std::size_t number) const {
    const auto begin = static_cast<std::size_t>(params_.job.begin_of(number));
    const bool differ = !params_.job.received.empty() && params_.job.received[begin] >= 0.0;
    return ports_.num_approaches() > 0 && !(differ && params_.others != nullptr);
}

// GB that a task gets from each other one of its pairs.
double GangLoads::received(std::size_t number, std::size_t place) const {
    const traffic::JobCollectives& job = params_.job;
    const bool differs = !job.received.empty() && job.received[place] >= 0.0;
    return differs ? job.received[place] : job.gigabytes[number] / 2;
}

void GangLoads::put_pairs_after(std::size_t number, std::size_t own) {
    const traffic::JobCollectives& job = params_.job;
    const std::int32_t here = vertex_of_[index(job.tasks[own])];
    for (std::size_t j = own + 1; static_cast<std::int64_t>(j) < job.ends[number]; ++j) {
        put_flow(collectives_[number],
                 {here, vertex_of_[index(job.tasks[j])], received(number, j), received(number, own)}, 1);
    }
}

// Counts the pairs of a task by approach.
void GangLoads::count_sides(std::size_t number, std::size_t own) {
    const traffic::JobCollectives& job = params_.job;
    const std::int32_t here = vertex_of_[index(job.tasks[own])], back = received(number, own) > 0.0 ? 1 : 0;
    sides_.assign(index(ports_.num_approaches()) + 1, {});
    const auto end = static_cast<std::size_t>(job.ends[number]);
    for (auto other = static_cast<std::size_t>(job.begin_of(number)); other < end; ++other) {
        if (other == own) continue;
        const std::int32_t approach = ports_.approach(here, vertex_of_[index(job.tasks[other])]);
        Side& side = approach == ports::kNone ? sides_.back() : sides_[index(approach)];
        const double there = received(number, other);
        side.there += there > 0.0 ? 1 : 0;
        side.back += back;
        side.sent += there;
    }
}

// All pairs of a task at once, on its own side: each hop there is loaded once for each approach.
void GangLoads::put_side(std::size_t number, std::size_t own) {
    count_sides(number, own);
    const std::int32_t here = vertex_of_[index(params_.job.tasks[own])];
    Collective& one = collectives_[number];
    for (std::size_t i = 0; i < sides_.size(); ++i) {
        const Side& side = sides_[i];
        const bool has_path = i + 1 < sides_.size();
        if (side.there + side.back == 0) continue;
        hops_.assign(has_path ? 0 : 1, no_hop());
        if (has_path) ports_.approach_hops(static_cast<std::int32_t>(i), here, hops_);
        for (const ports::Hop hop : hops_) {
            if (side.there > 0) put_on(one, hop, side.sent / side.there, side.there);
            if (side.back > 0 && has_path) put_on(one, hop ^ 1, received(number, own), side.back);
        }
    }
}

// The scale and the sum of powers of hops: powers of ratios near 1 keep their digits.
void GangLoads::measure(Phase& phase) {
    for (const std::int32_t slot : phase.in_use) {
        phase.scale = std::max(phase.scale, phase.longest(index(slot)));
    }
    if (phase.scale <= 0.0) phase.scale = 1.0;
    phase.power = 0.0;
    for (const std::int32_t slot : phase.in_use) {
        phase.power += power_of(phase.longest(index(slot)) / phase.scale);
    }
}

double GangLoads::power_of(double ratio) {
    if (ratio > kSteep) return power_of(kSteep) * (std::min(ratio, kMost) - 1.0);
    const double two = ratio * ratio, four = two * two, eight = four * four;
    return eight * eight;
}

void GangLoads::put_rings(Phase& phase, double seconds, std::int32_t sign) const {
    if (seconds > 0.0) phase.power += sign * power_of(seconds / phase.scale);
}

std::int32_t GangLoads::slot_of(ports::Hop hop) {
    std::int32_t& slot = slot_of_hop_[index(hop)];
    if (slot == ports::kNone) {
        slot = static_cast<std::int32_t>(hop_of_slot_.size());
        hop_of_slot_.push_back(hop);
        for (Phase& phase : phases_) {
            phase.seconds.push_back(0.0);
            phase.flows.push_back(0);
            phase.is_listed.push_back(0);
            if (params_.others != nullptr) phase.beside.emplace_back();
        }
    }
    return slot;
}

// Counts a flow of the job itself, and what others send beside it.
void GangLoads::put_beside(Beside& beside, const Load& load, std::int32_t flows) const {
    auto place = std::ranges::lower_bound(beside.sizes, load.gigabytes, {}, &Size::gigabytes);
    if (place == beside.sizes.end() || place->gigabytes != load.gigabytes) {
        place = beside.sizes.insert(place, {load.gigabytes, 0});
    }
    place->flows += flows;
    if (place->flows == 0) beside.sizes.erase(place);
    const ports::Hop hop = hop_of_slot_[index(load.slot)];
    if (beside.sizes.empty() || hop == no_hop() || beside.sizes.back().gigabytes == beside.largest) return;
    beside.largest = beside.sizes.back().gigabytes;
    const double gb_per_s = ports_.gb_per_s(hop / 2), counted = params_.others->counted(hop, beside.largest);
    beside.seconds = gb_per_s > 0.0 ? std::min(kNever, counted / gb_per_s) : 0.0;
}

// Adds flows, or takes them away.
void GangLoads::change(Phase& phase, const Load& load, std::int32_t flows) {
    const std::size_t slot = index(load.slot);
    double& seconds = phase.seconds[slot];
    std::int32_t& all = phase.flows[slot];
    const bool counts = phase.scale > 0.0;
    if (counts && all > 0) phase.power -= power_of(phase.longest(slot) / phase.scale);
    all += flows;
    seconds = all > 0 ? seconds + flows * load.seconds : 0.0;
    if (!phase.beside.empty()) put_beside(phase.beside[slot], load, flows);
    if (counts && all > 0) phase.power += power_of(phase.longest(slot) / phase.scale);
    if (phase.is_listed[slot] == 0) {
        phase.is_listed[slot] = 1;
        phase.in_use.push_back(load.slot);
    }
    ++work_;
}

// The way back is the way there, but for relays.
void GangLoads::put_flow(Collective& one, const traffic::Flow& flow, std::int32_t sign) {
    if (ports_.has_relays()) {
        put_route(one, flow.from, flow.to, flow.there, sign);
        put_route(one, flow.to, flow.from, flow.back, sign);
        return;
    }
    if (flow.there <= 0.0 && flow.back <= 0.0) return;
    hops_.clear();
    if (!ports_.route(flow.from, flow.to, hops_)) {
        if (flow.there > 0.0) put_on(one, no_hop(), flow.there, sign);
        if (flow.back > 0.0) put_on(one, no_hop(), flow.back, sign);
        return;
    }
    for (const ports::Hop hop : hops_) {
        if (flow.there > 0.0) put_on(one, hop, flow.there, sign);
        if (flow.back > 0.0) put_on(one, hop ^ 1, flow.back, sign);
    }
}

void GangLoads::put_route(Collective& one, std::int32_t from, std::int32_t to, double gigabytes,
                          std::int32_t sign) {
    if (gigabytes <= 0.0) return;
    hops_.clear();
    if (!ports_.route(from, to, hops_)) hops_.assign(1, no_hop());
    for (const ports::Hop hop : hops_) put_on(one, hop, gigabytes, sign);
}

// Flows of so many GB each.
void GangLoads::put_on(Collective& one, ports::Hop hop, double gigabytes, std::int32_t flows) {
    const double gb_per_s = hop == no_hop() ? 0.0 : ports_.gb_per_s(hop / 2);
    const double seconds = gb_per_s > 0.0 ? std::min(kNever, gigabytes / gb_per_s) : kNever;
    if (hop != no_hop() && ports_.is_uplink(hop / 2)) {
        one.port_seconds += flows * seconds;
        if (one.by_pairs) port_seconds_ += flows * seconds;
    }
    const Load load{slot_of(hop), seconds, gigabytes};
    if (one.by_pairs) {
        change(phases_[index(one.phase)], load, flows);
    } else {
        one.loads.push_back(load);
    }
}

// What a collective loads with its tasks where they are.
void GangLoads::make(std::size_t number) {
    Collective& one = collectives_[number];
    made_.clear();
    maker_.make(number, vertex_of_, made_);
    one.rings = made_.rings.seconds;
    one.port_seconds = 0.0;
    one.loads.clear();
    for (const traffic::Flow& flow : made_.flows) put_flow(one, flow, 1);
}

// Adds what a collective loads, rings included, or takes it away.
void GangLoads::count(const Collective& one, std::int32_t sign) {
    Phase& phase = phases_[index(one.phase)];
    for (const Load& load : one.loads) change(phase, load, sign);
    port_seconds_ += one.by_pairs ? 0.0 : sign * one.port_seconds;
    if (phase.scale > 0.0) put_rings(phase, one.rings, sign);
}

// The flows between a task and all others of its collectives that work by pairs.
void GangLoads::put_pairs_of(std::int32_t task, std::int32_t sign) {
    for (std::int64_t i = first_of_task_[index(task)]; i < first_of_task_[index(task) + 1]; ++i) {
        const std::size_t number = index(of_task_[static_cast<std::size_t>(i)]);
        if (collectives_[number].by_pairs) put_pairs_in(number, task, sign);
    }
}

void GangLoads::put_pairs_in(std::size_t number, std::int32_t task, std::int32_t sign) {
    const traffic::JobCollectives& job = params_.job;
    const auto begin = static_cast<std::size_t>(job.begin_of(number));
    const auto end = static_cast<std::size_t>(job.ends[number]);
    const bool sends = static_cast<Kind>(job.kinds[number]) == Kind::kSends;
    std::size_t own = begin;
    while (job.tasks[own] != task) ++own;
    for (std::size_t other = begin; other < end; ++other) {
        if (other == own || (sends && other + 1 != own && own + 1 != other)) continue;
        put_flow(collectives_[number],
                 {vertex_of_[index(task)], vertex_of_[index(job.tasks[other])], received(number, other),
                  received(number, own)},
                 sign);
    }
}

void GangLoads::move(std::span<const Moved> moves) {
    list_changed(moves);
    before_.clear();
    for (const Moved& one : moves) before_.push_back({one.task, vertex_of_[index(one.task)]});
    if (saved_.size() < changed_.size()) saved_.resize(changed_.size());
    for (std::size_t i = 0; i < changed_.size(); ++i) {
        Collective& one = collectives_[index(changed_[i])];
        count(one, -1);
        std::swap(one, saved_[i]);
        one.phase = saved_[i].phase;
        one.by_pairs = saved_[i].by_pairs;
    }
    move_pairs(moves);
    for (const std::int32_t number : changed_) {
        make(index(number));
        count(collectives_[index(number)], 1);
    }
}

void GangLoads::undo() {
    for (const std::int32_t number : changed_) count(collectives_[index(number)], -1);
    move_pairs(before_);
    for (std::size_t i = 0; i < changed_.size(); ++i) {
        std::swap(collectives_[index(changed_[i])], saved_[i]);
        count(collectives_[index(changed_[i])], 1);
    }
}

void GangLoads::list_changed(std::span<const Moved> moves) {
    ++stamp_;
    changed_.clear();
    for (const Moved& one : moves) {
        for (std::int64_t i = first_of_task_[index(one.task)]; i < first_of_task_[index(one.task) + 1]; ++i) {
            const std::int32_t number = of_task_[static_cast<std::size_t>(i)];
            if (collectives_[index(number)].by_pairs || seen_[index(number)] == stamp_) continue;
            seen_[index(number)] = stamp_;
            changed_.push_back(number);
        }
    }
}

void GangLoads::move_pairs(std::span<const Moved> moves) {
    for (const Moved& one : moves) {
        put_pairs_of(one.task, -1);
        vertex_of_[index(one.task)] = one.vertex;
        put_pairs_of(one.task, 1);
    }
}

double GangLoads::smooth() const {
    double sum = 0.0;
    for (const Phase& phase : phases_) {
        sum += phase.scale * std::sqrt(std::sqrt(std::sqrt(std::sqrt(std::max(0.0, phase.power)))));
    }
    return sum;
}

double GangLoads::port_gigabytes() const {
    double sum = 0.0;
    for (const Phase& phase : phases_) {
        for (const std::int32_t slot : phase.in_use) {
            const ports::Hop hop = hop_of_slot_[index(slot)];
            if (hop == no_hop() || !ports_.is_uplink(hop / 2)) continue;
            sum += phase.seconds[index(slot)] * ports_.gb_per_s(hop / 2);
        }
    }
    return sum;
}

double GangLoads::seconds() const {
    longest_.assign(phases_.size(), 0.0);
    for (const Collective& one : collectives_) {
        longest_[index(one.phase)] = std::max(longest_[index(one.phase)], one.rings);
    }
    double sum = 0.0;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
        const Phase& phase = phases_[i];
        for (const std::int32_t slot : phase.in_use) {
            if (phase.flows[index(slot)] == 0) continue;
            longest_[i] = std::max(longest_[i], phase.longest(index(slot)));
        }
        sum += longest_[i];
    }
    return sum;
}

}  // namespace topoplace::gang_mapping
