// Units that are joined by what they exchange, beside every division among domains.
#include <algorithm>
#include <limits>

#include "check.hpp"
#include "decide/joined_units.hpp"
#include "topoplace/random.hpp"

namespace {

namespace decide = topoplace::decide;
using decide::Exchanges;
using decide::UnitPair;
using Ints = std::vector<std::int32_t>;

struct Case {
    std::int32_t units = 1;
    std::vector<UnitPair> pairs{};
    Ints room{};

    std::vector<std::int64_t> rooms() const { return {room.begin(), room.end()}; }
    Exchanges exchanges() const {
        Exchanges found;
        for (const UnitPair& pair : pairs) {
            found.from.push_back(pair.from);
            found.to.push_back(pair.to);
            found.gigabytes.push_back(pair.gigabytes);
        }
        found.phase_ends = {static_cast<std::int64_t>(pairs.size())};
        return found;
    }
    // The most GB of a pair in different domains.
    double apart(const Ints& domain_of) const {
        double most = 0.0;
        for (const UnitPair& pair : pairs) {
            if (domain_of[static_cast<std::size_t>(pair.from)] !=
                domain_of[static_cast<std::size_t>(pair.to)])
                most = std::max(most, pair.gigabytes);
        }
        return most;
    }
    bool has_room(const Ints& domain_of) const {
        Ints left = room;
        return std::ranges::all_of(
            domain_of, [&](std::int32_t one) { return left[static_cast<std::size_t>(one)]-- > 0; });
    }
    // The least of all divisions; infinity without room.
    double least() const {
        Ints domain_of(static_cast<std::size_t>(units), 0);
        double found = std::numeric_limits<double>::infinity();
        for (std::size_t at = 0; at < domain_of.size();) {
            if (has_room(domain_of)) found = std::min(found, apart(domain_of));
            at = 0;
            while (at < domain_of.size() && ++domain_of[at] == static_cast<std::int32_t>(room.size()))
                domain_of[at++] = 0;
        }
        return found;
    }
};

Case random_case(topoplace::Random& random) {
    Case c;
    c.units = 2 + random.below(5);
    for (std::int32_t a = 0; a < c.units; ++a) {
        for (std::int32_t b = a + 1; b < c.units; ++b) {
            if (random.below(2) == 0) c.pairs.push_back({a, b, 1.0 + random.below(9)});
        }
    }
    for (std::int32_t left = 1 + random.below(4); left > 0; --left) c.room.push_back(random.below(5));
    return c;
}

}  // namespace

TEST(no_division_keeps_more_together) {
    topoplace::Random random(92);
    std::int32_t exact = 0, count = 0;
    for (std::int32_t i = 0; i < check::rounds(3000); ++i) {
        Case c = random_case(random);
        decide::sort_by_most(c.pairs);
        const double least = decide::least_apart(c.pairs, c.units, c.rooms()), best = c.least();
        CHECK(least <= best);
        exact += least == best ? 1 : 0;
        count += best < std::numeric_limits<double>::infinity() ? 1 : 0;
    }
    CHECK(exact > count / 2);
}

TEST(joined_units_have_room_and_exchange_little) {
    topoplace::Random random(93);
    std::int32_t found = 0, best = 0;
    for (std::int32_t i = 0; i < check::rounds(3000); ++i) {
        const Case c = random_case(random);
        const std::vector<Ints> domains{{0}, {0, static_cast<std::int32_t>(c.room.size()) - 1}};
        const Ints leaf_of = decide::joined_on_leaves(c.exchanges(), c.units, c.room,
                                                      c.room.size() > 1 ? domains : std::vector<Ints>{});
        if (leaf_of.empty()) continue;
        ++found;
        CHECK_EQ(leaf_of.size(), static_cast<std::size_t>(c.units));
        CHECK(c.has_room(leaf_of));
        best += c.apart(leaf_of) == c.least() ? 1 : 0;
    }
    CHECK(found > check::rounds(3000) / 10);
    CHECK(best > found / 2);
}

TEST(several_sets_share_a_machine) {
    const Exchanges pairs{
        .phase_ends = {3}, .from = {0, 1, 0}, .to = {2, 3, 1}, .gigabytes = {2.0, 2.0, 1.0}};
    const Ints two = decide::joined_on_leaves(pairs, 4, Ints{2, 2}, {});
    CHECK_EQ(two[0], two[2]);
    CHECK_EQ(two[1], two[3]);
    // Chains of four units far apart, and one machine after the other has room for three of them and a rest.
    constexpr std::int32_t kSets = 12;
    Exchanges chains;
    for (std::int32_t set = 0; set < kSets; ++set) {
        for (std::int32_t i = 0; i < 3; ++i) {
            chains.from.push_back(set + kSets * i);
            chains.to.push_back(set + kSets * (i + 1));
            chains.gigabytes.push_back(2.0 + i);
        }
    }
    for (std::int32_t unit = 0; unit + 1 < 4 * kSets; ++unit) {
        chains.from.push_back(unit);
        chains.to.push_back(unit + 1);
        chains.gigabytes.push_back(1.0);
    }
    chains.phase_ends = {static_cast<std::int64_t>(chains.from.size())};
    const Ints leaf_of = decide::joined_on_leaves(chains, 4 * kSets, Ints{14, 14, 14, 14}, {});
    for (std::int32_t unit = kSets; unit < 4 * kSets; ++unit)
        CHECK_EQ(leaf_of[static_cast<std::size_t>(unit)], leaf_of[static_cast<std::size_t>(unit - kSets)]);
}

TEST(units_that_exchange_the_same_are_not_joined) {
    const Exchanges equal{.phase_ends = {2}, .from = {0, 1}, .to = {1, 2}, .gigabytes = {1.0, 1.0}};
    CHECK(decide::joined_on_leaves(equal, 3, Ints{2, 2}, {}).empty());
    // In two phases, the pair of the first one exchanges more.
    const Exchanges twice{
        .phase_ends = {2, 3}, .from = {0, 1, 0}, .to = {1, 2, 1}, .gigabytes = {1.0, 1.5, 1.0}};
    CHECK(decide::joined_on_leaves(twice, 3, Ints{2, 2}, {}) == Ints({0, 0, 1}));
    // The second domain is fuller.
    CHECK(decide::joined_on_leaves(twice, 3, Ints{2, 2, 2, 1}, {{0, 2}}) == Ints({2, 2, 3}));
}
