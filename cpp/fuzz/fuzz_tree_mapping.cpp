// The tree mapping against its verifier, and its bound against every assignment, on one small tree.
#include <algorithm>
#include <limits>
#include <vector>

#include "fuzz.hpp"
#include "oracles/port_cases.hpp"
#include "topoplace/tree_mapping.hpp"

namespace {

namespace tree_mapping = topoplace::tree_mapping;
using Ints = std::vector<std::int32_t>;
constexpr double kEqual = 1 + 1e-9;

using Case = oracle::TreeCase;

void read_items(fuzz::Bytes& bytes, Case& c) {
    c.items = bytes.below(5);
    for (std::int32_t phases = bytes.below(4); phases > 0; --phases) {
        for (std::int32_t edges = bytes.below(5); edges > 0 && c.items > 1; --edges) {
            const std::int32_t one = bytes.below(c.items);
            c.from.push_back(one);
            c.to.push_back((one + 1 + bytes.below(c.items - 1)) % c.items);
            c.gigabytes.push_back(bytes.below(4));
        }
        c.ends.push_back(static_cast<std::int64_t>(c.from.size()));
    }
}

// Up to three levels of one or two children, and at most four items.
Case read_case(fuzz::Bytes& bytes) {
    Case c;
    c.moves = 500;
    std::size_t first = 0;
    const std::int32_t depth = bytes.below(4), classes = 1 + bytes.below(2);
    for (std::int32_t level = 0; level < depth; ++level) {
        const std::size_t end = c.parent.size();
        for (std::size_t domain = first; domain < end; ++domain) {
            for (std::int32_t child = bytes.below(2); child >= 0; --child) {
                c.parent.push_back(static_cast<std::int32_t>(domain));
                c.uplink.push_back(bytes.below(4));
            }
        }
        first = end;
        c.own_class.push_back(bytes.below(classes));
    }
    for (std::size_t leaf = first; leaf < c.parent.size(); ++leaf) c.room.push_back(bytes.below(3));
    for (std::size_t i = 0; i < std::size_t(classes) * c.room.size(); ++i)
        c.own.push_back(1 + bytes.below(4));
    read_items(bytes, c);
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Bytes bytes(data, size);
    Case c = read_case(bytes);
    if (bytes.below(2) == 1) {
        for (std::size_t i = 0; i < c.ends.size() * c.parent.size(); ++i) c.others.push_back(bytes.below(4));
    }
    const double best = optimum(c);
    const auto found = tree_mapping::map_to_tree(c.params());
    REQUIRE(found.complete);
    REQUIRE(found.found == (best < std::numeric_limits<double>::infinity()));
    if (!found.found) return 0;
    REQUIRE(
        !tree_mapping::verify_tree_mapping(c.params(), found.leaf_of, {found.seconds, found.port_seconds}));
    REQUIRE(found.bound <= best * kEqual && best <= found.seconds * kEqual);
    c.start = found.leaf_of;
    for (std::int32_t item = 0; item < c.items; ++item)
        c.confined.push_back(bytes.below(std::int32_t(c.own_class.size()) + 1));
    const auto kept = tree_mapping::map_to_tree(c.params());
    REQUIRE(!tree_mapping::verify_tree_mapping(c.params(), kept.leaf_of, {kept.seconds, kept.port_seconds}));
    REQUIRE(kept.found && kept.seconds <= found.seconds * kEqual);
    return 0;
}
