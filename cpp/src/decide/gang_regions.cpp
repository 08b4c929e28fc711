// Chooses domains by their room.
#include "decide/gang_regions.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "graph/index.hpp"

namespace topoplace::decide {
namespace {

constexpr std::size_t kMostRegions = 16;  // domains that are tried for a gang that one must have
// Only machines with room for so many times the job are searched.
constexpr std::int64_t kMuchRoom = 8, kMuchEqualRoom = 2;

class Regions {
  public:
    // most: tasks on one machine.
    Regions(const GangSearchParams& params, std::int32_t most)
        : params_(params), offers_(params.offers), most_(most) {}

    std::vector<Region> find() const {
        if (!params_.whole.empty()) return of_domains();
        if (!params_.start.empty()) return {region(all())};
        const std::vector<std::size_t> near = promising(), large = largest();
        if (machines_for_all(large) >= machines_for_all(near)) return {region(near)};
        return {region(near), region(large)};
    }

    // Of gangs that are searched for anywhere, all machines.
    std::vector<Region> rest() const {
        if (!params_.whole.empty() || !params_.start.empty()) return {};
        return {region(all())};
    }

    std::vector<std::size_t> in_outermost() const {
        std::vector<std::size_t> chosen = all();
        if (params_.levels->size() > 1) narrow(0, rooms(0, chosen), kMuchRoom * size(), chosen);
        return chosen;
    }

  private:
    std::vector<std::size_t> all() const {
        std::vector<std::size_t> found(offers_.machines.size());
        std::iota(found.begin(), found.end(), std::size_t{0});
        return found;
    }

    Region region(const std::vector<std::size_t>& places) const { return region_of(offers_, places); }

    std::int64_t code(std::size_t level, std::size_t offer) const {
        return (*params_.levels)[level].codes[index(offers_.machines[offer])];
    }

    // Each domain that has room for the gang; levels that all have it count together.
    std::vector<Region> of_domains() const {
        std::map<std::vector<std::int64_t>, std::vector<std::size_t>> domains;
        for (std::size_t i = 0; i < offers_.machines.size(); ++i) {
            std::vector<std::int64_t> key;
            for (const std::size_t level : params_.whole) key.push_back(code(level, i));
            domains[key].push_back(i);
        }
        std::vector<std::pair<std::int64_t, const std::vector<std::size_t>*>> enough;
        for (const auto& [_, members] : domains) {
            if (have_room(members)) enough.emplace_back(room_of(members), &members);
        }
        std::ranges::stable_sort(enough, {}, [](const auto& one) { return one.first; });
        std::vector<Region> found;
        for (std::size_t i = 0; i < std::min(enough.size(), kMostRegions); ++i)
            found.push_back(region(*enough[i].second));
        return found;
    }

    std::int64_t size() const { return static_cast<std::int64_t>(params_.units.tasks.size()); }
    std::int64_t room_of(const std::vector<std::size_t>& members) const {
        return std::accumulate(members.begin(), members.end(), std::int64_t{0},
                               [&](std::int64_t sum, std::size_t i) { return sum + tasks_of(i); });
    }

    bool have_room(const std::vector<std::size_t>& members) const {
        std::int64_t units = 0;
        for (const std::size_t offer : members) units += tasks_of(offer) / params_.units.size;
        return units >= params_.units.count();
    }

    std::int64_t tasks_of(std::size_t offer) const { return std::min(offers_.sizes[offer], most_); }

    // Equal machines that offer equal room, beside no other job: those of few domains are as good as all.
    bool are_equal() const {
        const auto class_of = [&](std::int32_t machine) {
            return params_.topology->limits.class_of[index(machine)];
        };
        return params_.others == nullptr &&
               std::ranges::adjacent_find(offers_.sizes, std::ranges::not_equal_to{}) ==
                   offers_.sizes.end() &&
               std::ranges::adjacent_find(offers_.machines, std::ranges::not_equal_to{}, class_of) ==
                   offers_.machines.end();
    }

    // Machines with the most room, wherever they are, until there is much more than the gang needs.
    std::vector<std::size_t> largest() const {
        std::vector<std::size_t> chosen = all();
        std::ranges::stable_sort(chosen, std::ranges::greater{}, [&](std::size_t i) { return tasks_of(i); });
        std::int64_t sum = 0;
        std::size_t count = 0;
        while (count < chosen.size() && sum < kMuchRoom * size()) sum += tasks_of(chosen[count++]);
        chosen.resize(count);
        std::ranges::sort(chosen);
        return chosen;
    }

    // The fewest of these machines that have room for all units.
    std::size_t machines_for_all(const std::vector<std::size_t>& members) const {
        std::vector<std::int64_t> units;
        for (const std::size_t offer : members) units.push_back(tasks_of(offer) / params_.units.size);
        std::ranges::sort(units, std::ranges::greater{});
        std::int64_t left = params_.units.count();
        std::size_t count = 0;
        while (count < units.size() && left > 0) left -= units[count++];
        return left > 0 ? members.size() + 1 : count;
    }

    // Machines of domains with much more room than the gang needs: of the outermost level, and where domains
    // are mostly equal, of each further one.
    std::vector<std::size_t> promising() const {
        std::vector<std::size_t> chosen = all();
        bool are_alike = are_equal();
        for (std::size_t level = 0; level + 1 < params_.levels->size(); ++level) {
            const std::map<std::int64_t, std::int64_t> room = rooms(level, chosen);
            are_alike = are_alike && have_mostly_equal(room);
            if (level > 0 && !are_alike) break;
            narrow(level, room, (are_alike ? kMuchEqualRoom : kMuchRoom) * size(), chosen);
        }
        return chosen;
    }

    // Domains with the most room have half of all room or more: others are the ends of rows.
    static bool have_mostly_equal(const std::map<std::int64_t, std::int64_t>& room) {
        std::int64_t most = 0, all = 0, in_largest = 0;
        for (const auto& [_, own] : room) most = std::max(most, own);
        for (const auto& [_, own] : room) {
            all += own;
            in_largest += own == most ? own : 0;
        }
        return 2 * in_largest >= all;
    }

    std::map<std::int64_t, std::int64_t> rooms(std::size_t level,
                                               const std::vector<std::size_t>& chosen) const {
        std::map<std::int64_t, std::int64_t> room;
        std::int64_t* last = nullptr;
        std::int64_t domain = 0;
        for (const std::size_t i : chosen) {
            if (last == nullptr || code(level, i) != domain) last = &room[domain = code(level, i)];
            *last += tasks_of(i);
        }
        return room;
    }

    // To the smallest domains that have room for all of the gang, or else the largest, until there is as much
    // room as wanted.
    void narrow(std::size_t level, const std::map<std::int64_t, std::int64_t>& room, std::int64_t wanted,
                std::vector<std::size_t>& chosen) const {
        if (room_of(chosen) <= wanted) return;
        std::vector<std::pair<std::int64_t, std::int64_t>> order(room.begin(), room.end());
        std::ranges::sort(order, {}, [&](const auto& one) {
            const bool is_enough = one.second >= size();
            return std::tuple(!is_enough, is_enough ? one.second : -one.second, one.first);
        });
        std::vector<std::int64_t> kept;
        for (std::int64_t sum = 0; const auto& [domain, own] : order) {
            if (sum >= wanted) break;
            kept.push_back(domain);
            sum += own;
        }
        std::ranges::sort(kept);
        std::erase_if(chosen,
                      [&](std::size_t i) { return !std::ranges::binary_search(kept, code(level, i)); });
    }

    const GangSearchParams& params_;
    const MachineOffers& offers_;
    std::int32_t most_;
};

}  // namespace

std::vector<Region> first_regions(const GangSearchParams& params) {
    return Regions(params, params.most).find();
}

std::vector<std::size_t> in_outermost_domains(const GangSearchParams& params) {
    return Regions(params, INT32_MAX).in_outermost();
}

Region region_of(const MachineOffers& offers, const std::vector<std::size_t>& numbers) {
    Region found;
    for (const std::size_t i : numbers) {
        found.machines.push_back(offers.machines[i]);
        found.kind_of.push_back(offers.kind_of[i]);
        found.sizes.push_back(offers.sizes[i]);
    }
    return found;
}

std::vector<Region> other_regions(const GangSearchParams& params) {
    return Regions(params, params.most).rest();
}

}  // namespace topoplace::decide
