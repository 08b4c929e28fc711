// What enumeration and counting do on any layout of the target: mappings, and one for each image.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/pattern.hpp"
#include "topoplace/match.hpp"

namespace topoplace::match {

// Counts saturate at 2^63 - 1.
inline std::int64_t saturating_product(std::int64_t count, double factor) {
    TOPOPLACE_ASSERT(count >= 0 && factor >= 1);
    const double product = static_cast<double>(count) * factor;
    if (product >= 9.2e18) return std::numeric_limits<std::int64_t>::max();
    return count * static_cast<std::int64_t>(factor);
}

// A space has a layout of the target, a search over it, and sets of images that the last vertex may take;
// vertex_sets() enumerates it by sets of target vertices.
template <class Space>
class Enumeration {
  public:
    using Search = typename Space::Search;
    using Set = typename Space::Set;
    using Layout = typename Space::Layout;

    Enumeration(const Pattern::Impl& pattern, const Layout& target, const EnumerateParams& params, bool rows)
        : pattern_(pattern),
          meter_(params.stop),
          space_(Space::make(pattern, target, params, meter_)),
          params_(params),
          rows_(rows),
          row_(index(pattern.size())) {}

    EnumerateResult run() {
        if (space_) search();
        result_.complete = result_.complete && !meter_.stopped();
        result_.nodes = meter_.nodes();
        return std::move(result_);
    }

  private:
    void search() {
        switch (params_.distinct) {
            case Distinct::mappings:
                mappings();
                break;
            case Distinct::images:
                space_->uniform ? images() : images_one_by_one();
                break;
            case Distinct::vertex_sets:
                vertex_sets(*space_, pattern_, meter_,
                            [&](const Search& search, std::int32_t last) { return append(search, last); });
                break;
        }
    }

    // Counting all mappings counts the images and multiplies by the automorphisms.
    void mappings() {
        if (!space_->uniform || (!rows_ && params_.limit != kNoLimit)) return walk(false);
        const auto factor = pattern_.num_automorphisms(meter_);
        if (!factor) return;
        if (rows_) return reserve_for(*factor) ? walk(false) : void();
        result_.count = saturating_product(count_images(params_.limit), *factor);
    }

    void images() {
        if (!rows_ || reserve_for(1)) walk(true);
    }

    void walk(bool break_symmetry) {
        const Plan* plan = pattern_.plan(meter_);
        if (plan == nullptr) return;
        Search search(*space_, *plan, break_symmetry, meter_);
        search.run([&](const Search& at_leaf, const Set& last) { return take(at_leaf, last); });
    }

    // Until there are `most`.
    std::int64_t count_images(std::int64_t most) {
        std::int64_t count = 0;
        const Plan* plan = pattern_.plan(meter_);
        if (plan == nullptr) return count;
        Search search(*space_, *plan, true, meter_);
        search.run([&](const Search&, const Set& last) {
            count += last.count();
            return count < most;
        });
        return count;
    }

    // Counting first is cheap compared with moving gigabytes of rows to a larger vector. False where there
    // are none.
    bool reserve_for(double mappings_per_image) {
        if (params_.limit <= kReserveLimit) return true;
        const std::int64_t most = std::min(params_.limit, kMostReserved / pattern_.size());
        const std::int64_t rows = saturating_product(count_images(most), mappings_per_image);
        result_.vertices.reserve(index(pattern_.size()) * static_cast<std::size_t>(std::min(rows, most)));
        return rows > 0;
    }

    bool take(const Search& search, const Set& last) {
        const std::int64_t found = last.count();
        TOPOPLACE_ASSERT(found > 0 && result_.count <= params_.limit);
        if (found > params_.limit - result_.count) return take_some(search, last);
        result_.count += found;
        if (rows_) {
            meter_.spend(16 * index(last.count()) * row_.size());
            const std::int32_t u = search.write(last.lowest(), row_.data());
            last.for_each([&](std::int32_t v) {
                row_[index(u)] = v;
                TOPOPLACE_ASSERT(is_embedding(row_));
                result_.vertices.insert(result_.vertices.end(), row_.begin(), row_.end());
            });
        }
        return true;
    }

    bool is_embedding(const std::vector<std::int32_t>& row) const {
        for (std::int32_t u = 0; u < pattern_.size(); ++u) {
            if (std::count(row.begin(), row.end(), row[index(u)]) != 1) return false;
            for (const std::int32_t v : pattern_.neighbors(u)) {
                if (!space_->adjacent(row[index(u)], row[index(v)])) return false;
            }
        }
        return true;
    }

    bool take_some(const Search& search, const Set& last) {
        bool room = true;
        last.for_each([&](std::int32_t v) { room = room && append(search, v); });
        return room;
    }

    bool append(const Search& search, std::int32_t last) {
        if (result_.count == params_.limit) {
            result_.complete = false;
            return false;
        }
        ++result_.count;
        if (rows_) {
            search.write(last, row_.data());
            TOPOPLACE_ASSERT(is_embedding(row_));
            result_.vertices.insert(result_.vertices.end(), row_.begin(), row_.end());
        }
        return true;
    }

    // Candidates that differ between vertices are not symmetric; images then differ by their edges.
    void images_one_by_one() {
        std::set<std::vector<std::pair<std::int32_t, std::int32_t>>> seen;
        const Plan* plan = pattern_.natural(meter_);
        if (plan == nullptr) return;
        Search search(*space_, *plan, false, meter_);
        search.run([&](const Search& at_leaf, const Set& last) {
            bool room = true;
            last.for_each([&](std::int32_t v) {
                at_leaf.write(v, row_.data());
                if (room && seen.insert(edges_of(row_)).second) room = append(at_leaf, v);
            });
            return room;
        });
    }

    std::vector<std::pair<std::int32_t, std::int32_t>> edges_of(const std::vector<std::int32_t>& row) const {
        std::vector<std::pair<std::int32_t, std::int32_t>> edges;
        for (std::int32_t u = 0; u < pattern_.size(); ++u) {
            edges.emplace_back(row[index(u)], row[index(u)]);
            for (const std::int32_t v : pattern_.neighbors(u))
                edges.emplace_back(row[index(u)], row[index(v)]);
        }
        std::sort(edges.begin(), edges.end());
        return edges;
    }

    static constexpr std::int64_t kReserveLimit = 1 << 16;
    static constexpr std::int64_t kMostReserved = 1 << 28;  // numbers: a GiB

    const Pattern::Impl& pattern_;
    WorkMeter meter_;
    const std::optional<Space> space_;  // none where the meter stopped first
    const EnumerateParams& params_;
    const bool rows_;
    std::vector<std::int32_t> row_;
    EnumerateResult result_;
};

}  // namespace topoplace::match
