// Both sides at given prices, and how prices change.
#include "match/packing/piece_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "graph/index.hpp"
#include "match/packing/piece_shapes.hpp"
#include "match/packing/piece_values.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::match {
namespace {

constexpr Fixed kNever = std::numeric_limits<Fixed>::min() / 4;
constexpr std::uint64_t kStepsPerChange = 4;
constexpr int kMostRounds = 200;
constexpr int kPatience = 5;  // rounds without a better bound before steps get shorter
constexpr double kShorter = 0.6;
constexpr double kShortest = 0.01;
constexpr int kBonuses = 16;

// True where the meter stops.
[[nodiscard]] bool work(std::uint64_t steps, WorkMeter& meter) {
    return meter.spend(kStepsPerChange * steps);
}

using Prices = std::vector<Fixed>;         // by form; kNever: on no machine
using Counts = std::vector<std::int32_t>;  // by form

// How the pattern falls into pieces at given prices.
class Division {
  public:
    explicit Division(const PieceShapes& shapes, std::int32_t num_vertices)
        : shapes_(shapes),
          sums_(index(num_vertices)),
          closed_(index(num_vertices)),
          steps_of_(index(num_vertices)),
          choices_(shapes.steps().size(), std::vector<std::int32_t>(shapes.shapes().size())) {
        for (std::size_t step = 0; step < shapes.steps().size(); ++step)
            steps_of_[index(shapes.steps()[step].top)].push_back(step);
    }

    // What the pieces and the edges between them bring; kNever where there is no way, none where `meter`
    // stops.
    std::optional<Fixed> most(const Prices& prices, Fixed crossing, WorkMeter& meter) {
        for (auto& sums : sums_) {
            sums.assign(shapes_.shapes().size(), kNever);
            sums[0] = 0;
        }
        for (std::size_t step = 0; step < shapes_.steps().size(); ++step) {
            close(shapes_.steps()[step].child, prices);
            if (work(shapes_.steps()[step].joins.size(), meter)) return std::nullopt;
            join(step, crossing);
        }
        if (shapes_.num_cut() > 0 && crossing == PieceBound::Crossing::kNone) return kNever;
        Fixed sum = shapes_.num_cut() * crossing;
        for (const std::int32_t root : shapes_.roots()) {
            close(root, prices);
            if (closed_[index(root)].sum == kNever) return kNever;
            sum += closed_[index(root)].sum;
        }
        return sum;
    }

    // Adds the pieces of the last most().
    void count(Counts& counts) const {
        for (const std::int32_t root : shapes_.roots()) count(root, kAbsent, counts);
    }

  private:
    struct Closed {
        std::int32_t shape = 0;
        Fixed sum = kNever;
    };

    void close(std::int32_t v, const Prices& prices) {
        Closed best;
        for (std::size_t shape = 0; shape < shapes_.shapes().size(); ++shape) {
            const Fixed own = sums_[index(v)][shape];
            const Fixed price = prices[index(shapes_.shapes()[shape].form)];
            if (own == kNever || price == kNever || own + price <= best.sum) continue;
            best = {static_cast<std::int32_t>(shape), own + price};
        }
        closed_[index(v)] = best;
    }

    void join(std::size_t number, Fixed crossing) {
        const PieceShapes::Step& step = shapes_.steps()[number];
        const bool may_close =
            crossing != PieceBound::Crossing::kNone && closed_[index(step.child)].sum != kNever;
        const Fixed closed = may_close ? closed_[index(step.child)].sum + crossing : kNever;
        std::vector<Fixed>& before = sums_[index(step.top)];
        after_.assign(before.size(), kNever);
        for (std::size_t i = 0; i < step.joins.size(); ++i) {
            const PieceShapes::Join& way = step.joins[i];
            const Fixed own = before[index(way.before)];
            const Fixed below = way.below == kAbsent ? closed : sums_[index(step.child)][index(way.below)];
            if (own == kNever || below == kNever || own + below <= after_[index(way.after)]) continue;
            after_[index(way.after)] = own + below;
            choices_[number][index(way.after)] = static_cast<std::int32_t>(i);
        }
        before.swap(after_);
    }

    // shape: of the piece from v downwards; kAbsent: a piece begins here.
    void count(std::int32_t v, std::int32_t shape, Counts& counts) const {
        if (shape == kAbsent) {
            shape = closed_[index(v)].shape;
            ++counts[index(shapes_.shapes()[index(shape)].form)];
        }
        const auto& steps = steps_of_[index(v)];
        for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
            const PieceShapes::Step& its = shapes_.steps()[*step];
            const PieceShapes::Join& way = its.joins[index(choices_[*step][index(shape)])];
            count(its.child, way.below, counts);
            shape = way.before;
        }
        TOPOPLACE_ASSERT(shape == 0);
    }

    const PieceShapes& shapes_;
    std::vector<std::vector<Fixed>> sums_;  // by topmost vertex and shape, without the piece's own price
    std::vector<Closed> closed_;            // by topmost vertex
    std::vector<std::vector<std::size_t>> steps_of_;
    std::vector<std::vector<std::int32_t>> choices_;  // by step and shape, how it came about
    std::vector<Fixed> after_;
};

// What a machine holds at given prices.
class Filling {
  public:
    // The most that pieces are worth there beyond their prices; none where `meter` stops.
    std::optional<Fixed> most(const PieceValues& values, const Prices& prices, WorkMeter& meter) {
        const std::uint32_t all = std::uint32_t{1} << values.size();
        pieces_.assign(all, {});
        for (const PieceValues::Entry& entry : values.entries()) {
            const Fixed gain = entry.sum - prices[index(entry.form)];
            if (gain > pieces_[entry.set].gain) pieces_[entry.set] = {gain, entry.form};
        }
        most_.assign(all, 0);
        firsts_.assign(all, 0);
        if (work(values.entries().size() + (std::uint64_t{all} << values.size() / 2), meter))
            return std::nullopt;
        for (std::uint32_t set = 1; set < all; ++set) fill(set);
        return most_.back();
    }

    // Adds, with this sign, the pieces of the last most().
    void count(Counts& counts, std::int32_t sign) const {
        for (auto set = static_cast<std::uint32_t>(most_.size() - 1); set != 0;) {
            const std::uint32_t first = firsts_[set];
            if (first != 0) counts[index(pieces_[first].form)] += sign;
            set = first != 0 ? set & ~first : set & (set - 1);
        }
    }

  private:
    struct Piece {
        Fixed gain = 0;
        std::int32_t form = 0;
    };

    // The first vertex stays free, or some piece covers it.
    void fill(std::uint32_t set) {
        const std::uint32_t lowest = set & (~set + 1);
        const std::uint32_t others = set ^ lowest;
        most_[set] = most_[others];
        for (std::uint32_t more = others;; more = (more - 1) & others) {
            const std::uint32_t first = more | lowest;
            const Fixed sum = pieces_[first].gain + most_[set ^ first];
            if (pieces_[first].gain > 0 && sum > most_[set]) {
                most_[set] = sum;
                firsts_[set] = first;
            }
            if (more == 0) break;
        }
    }

    std::vector<Piece> pieces_;  // by set, the best that covers it
    std::vector<Fixed> most_;
    std::vector<std::uint32_t> firsts_;  // the piece on the first vertex; 0: free
};

}  // namespace

class PieceBound::Impl {
  public:
    Impl(const Pattern::Impl& pattern, Machines machines, const Crossing& crossing)
        : machines_(std::move(machines)),
          crossing_(crossing),
          shapes_(pattern, largest_of(machines_)),
          division_(shapes_, pattern.size()),
          prices_(index(shapes_.num_forms()), kNever) {}

    [[nodiscard]] bool prepare(const Target::Impl& target, WorkMeter& meter) {
        if (shapes_.empty()) return true;
        for (const auto& machine : machines_) {
            if (!add(machine, target, meter)) return false;
        }
        for (const Kind& kind : kinds_) {
            for (const PieceValues::Entry& entry : kind.values.entries())
                prices_[index(entry.form)] = std::max(prices_[index(entry.form)], entry.sum);
        }
        return evaluate(prices_, meter).has_value();
    }

    bool empty() const { return shapes_.empty(); }
    Fixed most() const { return most_; }

    [[nodiscard]] bool improve(Fixed need, WorkMeter& meter) {
        need = std::max(need, Fixed{0});  // nothing found yet
        Prices prices = prices_;
        double length = 1;
        int patience = kPatience;
        for (int round = 0; round < kMostRounds && most_ >= need && length > kShortest; ++round) {
            const auto most = evaluate(prices, meter);
            if (!most) return false;
            if (*most == kNever || !step(prices, length * static_cast<double>(*most - need + 1))) return true;
            patience = is_better_ ? kPatience : patience - 1;
            if (patience > 0) continue;
            patience = kPatience;
            length *= kShorter;
        }
        return true;
    }

    std::optional<Fixed> most_within(std::span<const std::size_t> machines, const Crossing& crossing,
                                     WorkMeter& meter) {
        const auto [known, is_new] = divided_.try_emplace(crossing.heaviest, 0);
        if (is_new) {
            const auto most = division_.most(prices_, crossing.heaviest, meter);
            if (!most) return std::nullopt;
            known->second = *most;
        }
        if (known->second == kNever) return kNever;
        Fixed sum = known->second - crossing.lost;
        for (const std::size_t machine : machines) sum += kinds_[kind_of_[machine]].gain;
        return sum;
    }

    // An embedding over at least `machines` machines has at least `fewest` edges between machines. Give
    // each of these edges a bonus, and take `fewest` bonuses off the sum: the bound holds for any bonus
    // (Lagrange).
    std::optional<Fixed> most_over(std::int32_t machines, WorkMeter& meter) {
        const auto fewest = machines - static_cast<std::int32_t>(shapes_.roots().size()) + shapes_.num_cut();
        if (fewest <= 0 || crossing_.heaviest == Crossing::kNone || most_ == kNever) return most_;
        const Fixed gains =
            std::accumulate(kinds_.begin(), kinds_.end(), -crossing_.lost,
                            [](Fixed sum, const Kind& kind) { return sum + kind.count * kind.gain; });
        Fixed best = most_;
        Fixed low = 0;
        Fixed high = *std::max_element(prices_.begin(), prices_.end());
        for (int i = 0; i < kBonuses && low < high; ++i) {
            const Fixed bonus = low + (high - low) / 2;
            const auto most = division_.most(prices_, crossing_.heaviest + bonus, meter);
            if (!most) return std::nullopt;
            best = std::min(best, *most + gains - fewest * bonus);
            (num_crossing() < fewest ? low : high) = bonus;
        }
        return best;
    }

  private:
    // Edges between the pieces of the last division.
    std::int32_t num_crossing() {
        excess_.assign(prices_.size(), 0);
        division_.count(excess_);
        const auto pieces = std::accumulate(excess_.begin(), excess_.end(), std::int32_t{0});
        return pieces - static_cast<std::int32_t>(shapes_.roots().size()) + shapes_.num_cut();
    }

    // Machines that cannot be distinguished.
    struct Kind {
        PieceValues values;
        std::int32_t count = 0;
        Fixed gain = 0;  // at the best prices
    };

    static std::int32_t largest_of(const std::vector<std::vector<std::int32_t>>& machines) {
        std::size_t largest = 0;
        for (const auto& machine : machines) largest = std::max(largest, machine.size());
        return static_cast<std::int32_t>(largest);
    }

    [[nodiscard]] bool add(std::span<const std::int32_t> machine, const Target::Impl& target,
                           WorkMeter& meter) {
        std::vector<Fixed> weights;
        for (const std::int32_t u : machine) {
            for (const std::int32_t v : machine) weights.push_back(u == v ? 0 : target.weight(u, v));
        }
        const auto [known, is_new] = kind_by_weights_.try_emplace(std::move(weights), kinds_.size());
        if (is_new) {
            kinds_.push_back({.values = PieceValues(shapes_, target, machine)});
            if (work(kinds_.back().values.steps(), meter)) return false;
        }
        kind_of_.push_back(known->second);
        ++kinds_[known->second].count;
        return true;
    }

    // The bound at these prices, and how many more pieces of each form the pattern has than the machines.
    // None where `meter` stops.
    std::optional<Fixed> evaluate(const Prices& prices, WorkMeter& meter) {
        is_better_ = false;
        excess_.assign(prices.size(), 0);
        const auto divided = division_.most(prices, crossing_.heaviest, meter);
        if (!divided) return std::nullopt;
        Fixed most = *divided;
        if (most == kNever) {
            most_ = kNever;
            return kNever;
        }
        division_.count(excess_);
        gains_.clear();
        for (const Kind& kind : kinds_) {
            const auto gain = filling_.most(kind.values, prices, meter);
            if (!gain) return std::nullopt;
            gains_.push_back(*gain);
            filling_.count(excess_, -kind.count);
            most += kind.count * gains_.back();
        }
        most -= crossing_.lost;
        if (most < most_) keep(prices, most);
        return most;
    }

    void keep(const Prices& prices, Fixed most) {
        is_better_ = true;
        most_ = most;
        prices_ = prices;
        divided_.clear();
        for (std::size_t i = 0; i < kinds_.size(); ++i) kinds_[i].gain = gains_[i];
    }

    // False where both sides agree.
    bool step(Prices& prices, double distance) const {
        double squares = 0;
        for (const std::int32_t excess : excess_) squares += double(excess) * excess;
        if (squares == 0) return false;
        for (std::size_t form = 0; form < prices.size(); ++form) {
            if (prices[form] != kNever)
                prices[form] -= static_cast<Fixed>(std::llround(distance / squares * excess_[form]));
        }
        return true;
    }

    const Machines machines_;
    const Crossing crossing_;
    const PieceShapes shapes_;
    Division division_;
    Filling filling_;
    std::vector<Kind> kinds_;
    std::vector<std::size_t> kind_of_;  // by machine
    std::map<std::vector<Fixed>, std::size_t> kind_by_weights_;
    Prices prices_;  // the best so far
    Fixed most_ = std::numeric_limits<Fixed>::max();
    std::map<Fixed, Fixed> divided_;  // by crossing, what the pieces bring at the best prices
    bool is_better_ = false;
    Counts excess_;
    std::vector<Fixed> gains_;
};

PieceBound::PieceBound(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::optional<PieceBound> PieceBound::make(const Pattern::Impl& pattern, const Target::Impl& target,
                                           Machines machines, const Crossing& crossing, WorkMeter& meter) {
    auto impl = std::make_shared<Impl>(pattern, std::move(machines), crossing);
    if (!impl->prepare(target, meter)) return std::nullopt;
    return PieceBound(std::move(impl));
}

bool PieceBound::empty() const { return impl_->empty(); }
bool PieceBound::improve(Fixed need, WorkMeter& meter) { return impl_->improve(need, meter); }
Fixed PieceBound::most() const { return impl_->most(); }
std::optional<Fixed> PieceBound::most_over(std::int32_t machines, WorkMeter& meter) {
    return impl_->most_over(machines, meter);
}
std::optional<Fixed> PieceBound::most_within(std::span<const std::size_t> machines, const Crossing& crossing,
                                             WorkMeter& meter) {
    return impl_->most_within(machines, crossing, meter);
}

}  // namespace topoplace::match
