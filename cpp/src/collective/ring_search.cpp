// Depth-first search for the most rings of one rate.
#include "collective/ring_search.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "graph/index.hpp"

namespace topoplace::collective {

namespace {

std::uint64_t bit(std::int32_t v) { return std::uint64_t{1} << v; }

}  // namespace

RingSearch::RingSearch(const ChosenRoutes& routes) : routes_(routes), size_(routes.size()), frames_(1) {
    number_links();
    number_cuts();
}

std::int32_t RingSearch::begin(const PackParams& params, std::int64_t least) {
    params_ = params;
    left_ = capacities_;
    take_hops();
    take_slots();
    bound_ = room(least - 1);
    if (proven_before()) bound_ = std::min(bound_, proven_);
    if (bound_ >= least && !open(frames_[0])) bound_ = 0;
    return bound_;
}

// How many rings each link holds.
void RingSearch::take_slots() {
    slots_.resize(capacities_.size());
    for (std::size_t link = 0; link < slots_.size(); ++link) {
        slots_[link] = capacities_[link] < least_[link] ? 0 : capacities_[link] / least_[link];
    }
}

// True if an earlier search bounds this one. If all hops take the same of a link, only the slots of the links
// limit the number of rings, and fewer slots on every link cannot hold more rings.
bool RingSearch::proven_before() const {
    if (!alike_ || params_.level != proven_level_ || params_.max_rings > proven_limit_) return false;
    return std::equal(slots_.begin(), slots_.end(), proven_slots_.begin(), std::less_equal{});
}

// Gives the links that hops use numbers of their own, from 0 on.
void RingSearch::number_links() {
    number_.assign(routes_.network().capacities().size(), kAbsent);
    hops_.resize(index(size_ * size_));
    amounts_.reserve(4 * hops_.size());
    for (std::int32_t from = 0; from < size_; ++from) {
        for (std::int32_t to = 0; to < size_; ++to) {
            Hop& hop = hops_[index(from * size_ + to)];
            hop.first = static_cast<std::int32_t>(amounts_.size());
            if (const auto* known = routes_.hop(from, to)) {
                for (const LinkUse& use : known->uses) amounts_.push_back({local(use.link)});
            }
            hop.end = static_cast<std::int32_t>(amounts_.size());
        }
    }
}

std::int32_t RingSearch::local(std::int32_t link) {
    std::int32_t& number = number_[index(link)];
    if (number == kAbsent) {
        number = static_cast<std::int32_t>(capacities_.size());
        capacities_.push_back(routes_.network().capacities()[index(link)]);
    }
    return number;
}

void RingSearch::number_cuts() {
    for (const LinkCut* cut : routes_.cuts()) {
        for (const std::int32_t link : cut->links) {
            if (number_[index(link)] != kAbsent) cut_links_.push_back(number_[index(link)]);
        }
        cut_ends_.push_back(cut_links_.size());
    }
}

// Picks the hops that may be used, and what they take at the rate.
void RingSearch::take_hops() {
    std::array<std::int32_t, RingNetwork::kMaxLevel + 1> rank{};
    num_ranks_ = 0;
    for (std::int32_t level = 0; level <= params_.level; ++level) {
        if ((routes_.levels() >> level & 1U) != 0) rank[index(level)] = num_ranks_++;
    }
    alike_ = true;
    least_.assign(capacities_.size(), RingNetwork::kMaxCapacity + 1);
    for (std::int32_t i = 0; i < size_ * size_; ++i) {
        const auto* known = routes_.hop(i / size_, i % size_);
        Hop& hop = hops_[index(i)];
        hop.usable = known != nullptr && known->level <= params_.level && known->fastest >= params_.rate;
        if (!hop.usable) continue;
        hop.rank = rank[index(known->level)];
        for (std::int32_t j = hop.first; j < hop.end; ++j) {
            Amount& use = amounts_[index(j)];
            use.amount = used(known->uses[index(j - hop.first)], params_.rate);
            std::int64_t& least = least_[index(use.link)];
            alike_ = alike_ && (least == use.amount || least > RingNetwork::kMaxCapacity);
            least = std::min(least, use.amount);
        }
    }
}

// Each ring crosses each cut. A room that is useless need not be exact.
std::int32_t RingSearch::room(std::int64_t useless) const {
    std::int64_t room = params_.max_rings;
    std::size_t i = 0;
    for (const std::size_t end : cut_ends_) {
        std::int64_t across = 0;
        for (; i < end; ++i) {
            const std::size_t link = index(cut_links_[i]);
            if (left_[link] >= least_[link]) across += left_[link] / least_[link];
        }
        room = std::min(room, across);
        if (room <= useless) break;
    }
    return static_cast<std::int32_t>(room);
}

// Finds the hops that still fit; false where they no longer join all terminals.
bool RingSearch::open(Frame& frame) const {
    frame.next.assign(index(size_ * num_ranks_), 0);
    for (std::int32_t from = 0; from < size_; ++from) {
        for (std::int32_t to = 0; to < size_; ++to) {
            const Hop& known = hop(from, to);
            if (!known.usable) continue;
            const auto fits = [&](const Amount& use) { return left_[index(use.link)] >= use.amount; };
            if (std::all_of(amounts_.begin() + known.first, amounts_.begin() + known.end, fits)) {
                frame.next[index(from * num_ranks_ + known.rank)] |= bit(to);
            }
        }
    }
    return joined(frame.next);
}

bool RingSearch::joined(const std::vector<std::uint64_t>& next) const {
    std::array<std::uint64_t, RingNetwork::kMaxTerminals> after;
    std::array<std::uint64_t, RingNetwork::kMaxTerminals> before;
    std::fill_n(before.begin(), size_, 0);
    for (std::int32_t v = 0; v < size_; ++v) {
        std::uint64_t all = 0;
        for (std::int32_t rank = 0; rank < num_ranks_; ++rank) all |= next[index(v * num_ranks_ + rank)];
        after[index(v)] = all;
        for (; all != 0; all &= all - 1) before[index(std::countr_zero(all))] |= bit(v);
    }
    for (const auto* way : {&after, &before}) {
        std::uint64_t reached = 1;
        for (std::uint64_t fresh = 1; fresh != 0;) {
            const std::uint64_t seen = (*way)[index(std::countr_zero(fresh))] & ~reached;
            fresh = (fresh & (fresh - 1)) | seen;
            reached |= seen;
        }
        if (std::popcount(reached) < size_) return false;
    }
    return true;
}

RingPacking RingSearch::run() {
    meter_ = WorkMeter(params_.stop);
    best_.clear();
    total_ = most_ = 0;
    if (bound_ > 0) {
        frames_.resize(index(params_.max_rings) + 1);
        search(0);
        if (!meter_.stopped()) bound_ = most_;
        if (!meter_.stopped() && !params_.equal && alike_) {
            proven_ = most_;
            proven_level_ = params_.level;
            proven_limit_ = params_.max_rings;
            proven_slots_ = slots_;
        }
    }
    RingPacking found{std::move(best_), most_, bound_, most_ == bound_, true, meter_.nodes()};
    found.complete = found.optimal || !meter_.stopped();
    for (Ring& ring : found.rings) {
        for (std::int32_t& v : ring.terminals) v = routes_.terminals()[index(v)];
    }
    return found;
}

// Rings that come after the one of the frame before.
void RingSearch::search(std::int32_t depth) {
    if (total_ + room(most_ - total_) <= most_ || !open(frames_[index(depth)])) return;
    frames_[index(depth)].path[0] = 0;
    walk(depth, 1, 1, depth > 0);
}

void RingSearch::walk(std::int32_t depth, std::int32_t position, std::uint64_t visited, bool tight) {
    if (meter_.visit()) return;
    if (position == size_) {
        close(depth, tight);
        return;
    }
    Frame& frame = frames_[index(depth)];
    const std::int32_t at = frame.path[index(position) - 1];
    for (std::int32_t rank = 0; rank < num_ranks_; ++rank) {
        std::uint64_t rest = candidates(depth, position, rank, tight) & ~visited;
        for (; rest != 0; rest &= rest - 1) {
            const std::int32_t to = std::countr_zero(rest);
            if (!take(hop(at, to))) continue;
            frame.path[index(position)] = static_cast<std::int8_t>(to);
            const bool same = tight && to == frames_[index(depth) - 1].path[index(position)];
            walk(depth, position + 1, visited | bit(to), same);
            give(hop(at, to));
            if (most_ == bound_ || meter_.stopped()) return;
        }
    }
}

// Terminals that may stand at the position; if tight, none that comes before the one of the ring before.
std::uint64_t RingSearch::candidates(std::int32_t depth, std::int32_t position, std::int32_t rank,
                                     bool tight) const {
    const Frame& frame = frames_[index(depth)];
    const std::int32_t at = frame.path[index(position) - 1];
    const std::uint64_t all = frame.next[index(at * num_ranks_ + rank)];
    if (!tight) return all;
    const std::int32_t before = frames_[index(depth) - 1].path[index(position)];
    const std::int32_t rank_before = hop(at, before).rank;
    if (rank < rank_before) return 0;
    return rank == rank_before ? all & ~(bit(before) - 1) : all;
}

void RingSearch::close(std::int32_t depth, bool tight) {
    Frame& frame = frames_[index(depth)];
    const Hop& last = hop(frame.path[index(size_) - 1], 0);
    if (tight || !last.usable || !take(last)) return;
    frame.copies = 1;
    ++total_;
    while (total_ < params_.max_rings && take_ring(frame)) {
        ++frame.copies;
        ++total_;
    }
    if (total_ > most_) record(depth);
    for (; frame.copies > 1; --frame.copies, --total_) {
        if (most_ < bound_ && !params_.equal && !meter_.stopped()) search(depth + 1);
        give_ring(frame);
    }
    if (most_ < bound_ && !params_.equal && !meter_.stopped()) search(depth + 1);
    --total_;
    give(last);  // the other hops are given back by walk()
}

void RingSearch::record(std::int32_t depth) {
    most_ = total_;
    best_.clear();
    for (std::int32_t i = 0; i <= depth; ++i) {
        const Frame& frame = frames_[index(i)];
        best_.push_back({{frame.path.begin(), frame.path.begin() + size_}, frame.copies});
    }
}

bool RingSearch::take(const Hop& hop) {
    for (std::int32_t i = hop.first; i < hop.end; ++i) {
        const Amount& use = amounts_[index(i)];
        if (left_[index(use.link)] < use.amount) {
            while (i-- > hop.first) left_[index(amounts_[index(i)].link)] += amounts_[index(i)].amount;
            return false;
        }
        left_[index(use.link)] -= use.amount;
    }
    return true;
}

void RingSearch::give(const Hop& hop) {
    for (std::int32_t i = hop.first; i < hop.end; ++i) {
        left_[index(amounts_[index(i)].link)] += amounts_[index(i)].amount;
    }
}

bool RingSearch::take_ring(const Frame& frame) {
    for (std::int32_t i = 0; i < size_; ++i) {
        if (take(hop(frame.path[index(i)], frame.path[index((i + 1) % size_)]))) continue;
        while (i-- > 0) give(hop(frame.path[index(i)], frame.path[index(i) + 1]));
        return false;
    }
    return true;
}

void RingSearch::give_ring(const Frame& frame) {
    for (std::int32_t i = 0; i < size_; ++i) {
        give(hop(frame.path[index(i)], frame.path[index((i + 1) % size_)]));
    }
}

}  // namespace topoplace::collective
