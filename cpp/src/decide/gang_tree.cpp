// Domains from the order of their machines.
#include "topoplace/gang_tree.hpp"

#include "decide/machine_order.hpp"
#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

void add_level(const std::vector<std::int32_t>& firsts, std::size_t above, GangTree& tree) {
    std::size_t parent = above;
    const std::size_t end = tree.first_leaf.size();
    for (const std::int32_t first : firsts) {
        while (parent + 1 < end && tree.first_leaf[parent + 1] <= first) ++parent;
        tree.parent.push_back(static_cast<std::int32_t>(parent));
        tree.first_leaf.push_back(first);
    }
    tree.level_ends.push_back(static_cast<std::int64_t>(tree.parent.size()));
}

// The first GPUs that each machine offers, as many as it may have tasks.
void add_places(const GangMachines& machines, const MachineOffers& offers, GangTree& tree) {
    std::vector<std::vector<std::size_t>> usable(offers.usable.size() / offers.bytes);
    for (std::size_t kind = 0; kind < usable.size(); ++kind) {
        offers.each_usable(static_cast<std::int32_t>(kind),
                           [&](std::size_t local) { usable[kind].push_back(local); });
    }
    for (const std::int32_t offer : tree.order) {
        const auto gpus = machines.gpus_of(offers.machines[index(offer)]);
        const auto& locals = usable[index(offers.kind_of[index(offer)])];
        for (std::size_t i = 0; i < index(offers.sizes[index(offer)]); ++i) {
            tree.places.push_back(gpus[locals[i]]);
        }
        tree.place_ends.push_back(static_cast<std::int64_t>(tree.places.size()));
    }
}

}  // namespace

GangTree gang_tree(const GangMachines& machines, const MachineOffers& offers, const LevelCodes& codes) {
    MachineOrder sorted = machine_order(offers, codes);
    GangTree tree{.order = std::move(sorted.order), .parent = {-1}, .first_leaf = {0}, .level_ends = {1}};
    std::size_t above = 0;
    for (const auto& firsts : sorted.firsts) {
        const std::size_t begin = tree.parent.size();
        add_level(firsts, above, tree);
        above = begin;
    }
    add_places(machines, offers, tree);
    return tree;
}

}  // namespace topoplace::decide
