// The tree mapping against its verifier, and its bound against every assignment, on one small tree; then, on
// a larger one of up to 40 items, against its verifier and the items in their order.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "fuzz.hpp"
#include "oracles/port_cases.hpp"
#include "topoplace/random.hpp"
#include "topoplace/tree_mapping.hpp"

namespace {

namespace tree_mapping = topoplace::tree_mapping;
using Ints = std::vector<std::int32_t>;
constexpr double kEqual = 1 + 1e-9;

using Case = oracle::TreeCase;

// What the cases may have at most.
struct Size {
    std::int32_t children = 0;  // of each domain
    std::int32_t room = 0;      // of a leaf
    std::int32_t items = 0;
    std::int32_t edges = 0;  // of a phase
};
constexpr Size kSmall{2, 2, 4, 4};
constexpr Size kLarge{5, 8, 40, 80};

void read_items(fuzz::Bytes& bytes, const Size& size, Case& c) {
    c.items = bytes.below(size.items + 1);
    for (std::int32_t phases = bytes.below(4); phases > 0; --phases) {
        for (std::int32_t edges = bytes.below(size.edges + 1); edges > 0 && c.items > 1; --edges) {
            const std::int32_t one = bytes.below(c.items);
            c.from.push_back(one);
            c.to.push_back((one + 1 + bytes.below(c.items - 1)) % c.items);
            c.gigabytes.push_back(bytes.below(4));
        }
        c.ends.push_back(static_cast<std::int64_t>(c.from.size()));
    }
}

// Up to three levels.
Case read_case(fuzz::Bytes& bytes, const Size& size) {
    Case c;
    c.moves = 500;
    std::size_t first = 0;
    const std::int32_t depth = bytes.below(4), classes = 1 + bytes.below(2);
    for (std::int32_t level = 0; level < depth; ++level) {
        const std::size_t end = c.parent.size();
        for (std::size_t domain = first; domain < end; ++domain) {
            for (std::int32_t child = bytes.below(size.children); child >= 0; --child) {
                c.parent.push_back(static_cast<std::int32_t>(domain));
                c.uplink.push_back(bytes.below(4));
            }
        }
        first = end;
        c.own_class.push_back(bytes.below(classes));
    }
    for (std::size_t leaf = first; leaf < c.parent.size(); ++leaf)
        c.room.push_back(bytes.below(size.room + 1));
    for (std::size_t i = 0; i < std::size_t(classes) * c.room.size(); ++i)
        c.own.push_back(1 + bytes.below(4));
    read_items(bytes, size, c);
    if (bytes.below(2) == 1) {
        for (std::size_t i = 0; i < c.ends.size() * c.parent.size(); ++i) c.others.push_back(bytes.below(4));
    }
    return c;
}

bool fits(const Case& c, const Ints& leaf_of) {
    for (std::size_t leaf = 0; leaf < c.room.size(); ++leaf) {
        if (std::ranges::count(leaf_of, std::int32_t(leaf)) > c.room[leaf]) return false;
    }
    return true;
}

double optimum(const Case& c) {
    double best = std::numeric_limits<double>::infinity();
    Ints leaf_of(std::size_t(c.items), 0);
    while (true) {
        if (fits(c, leaf_of)) best = std::min(best, tree_mapping::tree_time(c.params(), leaf_of).seconds);
        std::size_t item = 0;
        while (item < leaf_of.size() && std::size_t(++leaf_of[item]) == c.room.size()) leaf_of[item++] = 0;
        if (item == leaf_of.size()) return best;
    }
}

bool is_right(const Case& c, const tree_mapping::TreeMapResult& found) {
    return !tree_mapping::verify_tree_mapping(c.params(), found.leaf_of, {found.seconds, found.port_seconds});
}

// A search from an answer, with domains that items may not leave, is not worse.
void continue_from(fuzz::Bytes& bytes, Case c, const tree_mapping::TreeMapResult& found) {
    c.start = found.leaf_of;
    for (std::int32_t item = 0; item < c.items; ++item)
        c.confined.push_back(bytes.below(std::int32_t(c.own_class.size()) + 1));
    const auto kept = tree_mapping::map_to_tree(c.params());
    REQUIRE(kept.found && is_right(c, kept));
    REQUIRE(kept.seconds <= found.seconds * kEqual);
}

void try_small(fuzz::Bytes& bytes) {
    const Case c = read_case(bytes, kSmall);
    const double best = optimum(c);
    const auto found = tree_mapping::map_to_tree(c.params());
    REQUIRE(found.complete);
    REQUIRE(found.found == (best < std::numeric_limits<double>::infinity()));
    if (!found.found) return;
    REQUIRE(is_right(c, found));
    REQUIRE(found.bound <= best * kEqual && best <= found.seconds * kEqual);
    continue_from(bytes, c, found);
}

// The items in the order of their numbers, each leaf filled before the next one.
Ints in_order(const Case& c) {
    Ints leaf_of;
    for (std::size_t leaf = 0; leaf < c.room.size(); ++leaf) {
        const auto most = std::min(std::size_t(c.room[leaf]), std::size_t(c.items) - leaf_of.size());
        leaf_of.insert(leaf_of.end(), most, static_cast<std::int32_t>(leaf));
    }
    return leaf_of;
}

// The input and, drawn by a seed of all of it, as many bytes as a large case may need.
std::vector<std::uint8_t> with_more(const std::uint8_t* data, std::size_t size) {
    std::vector<std::uint8_t> bytes(data, data + size);
    std::uint64_t seed = size;
    for (const std::uint8_t byte : bytes) seed = topoplace::Random(seed + byte).next();
    topoplace::Random random(seed);
    while (bytes.size() < 2000) bytes.push_back(static_cast<std::uint8_t>(random.below(256)));
    return bytes;
}

// No mapping takes less than the bound, and a search from one, or with a stop, has a right answer.
void try_large(fuzz::Bytes& bytes) {
    Case c = read_case(bytes, kLarge);
    const auto found = tree_mapping::map_to_tree(c.params());
    REQUIRE(found.found == (std::accumulate(c.room.begin(), c.room.end(), 0) >= c.items));
    if (!found.found) return;
    REQUIRE(found.complete && is_right(c, found));
    REQUIRE(found.bound <= tree_mapping::tree_time(c.params(), in_order(c)).seconds * kEqual);
    REQUIRE(found.bound <= found.seconds * kEqual);
    REQUIRE(tree_mapping::map_to_tree(c.params()).leaf_of == found.leaf_of);
    auto params = c.params();
    params.stop.max_nodes = std::uint64_t(bytes.below(64));
    const auto stopped = tree_mapping::map_to_tree(params);
    REQUIRE(stopped.found && is_right(c, stopped));
    continue_from(bytes, c, found);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    try_small(bytes);
    const std::vector<std::uint8_t> more = with_more(data, size);
    fuzz::Bytes many(more.data(), more.size());
    try_large(many);
    return 0;
}
