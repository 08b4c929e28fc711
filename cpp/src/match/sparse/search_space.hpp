// What a canonical search may use of a sparse target, and the searches there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "match/graphs/pattern.hpp"
#include "match/sparse/edges.hpp"
#include "match/sparse/search.hpp"

namespace topoplace::match::sparse {

class SearchSpace {
  public:
    // Edges of at least `least`. `free` and `required` ascend. Nothing is possible where `meter` stops.
    SearchSpace(const Pattern::Impl& pattern, WorkMeter& meter, const Target::Sparse& target, double least,
                Worth worth, std::span<const std::int32_t> free, std::span<const std::int32_t> required,
                double tolerance);
    SearchSpace(const SearchSpace&) = delete;  // the search refers to its edges
    SearchSpace& operator=(const SearchSpace&) = delete;

    struct Set {
        std::vector<std::int32_t> members;  // ascending
        bool test(std::int32_t v) const { return std::binary_search(members.begin(), members.end(), v); }
    };
    static Set set_of(std::span<const std::int32_t> vertices);

    bool is_possible() const { return is_possible_; }
    Fixed bound() {
        const Plan* plan = pattern_.plan(meter_);
        return plan == nullptr ? kNoScore : search_.bound(*plan);
    }
    std::int32_t num_required() const { return static_cast<std::int32_t>(search_.required().size()); }
    std::int32_t lowest_required() const {
        return search_.required().empty() ? kAbsent : search_.required().front();
    }

    SearchResult search_anywhere(Fixed enough) {
        return search_.run({.plan = *pattern_.plan(meter_), .enough = enough});  // made for the bound
    }
    std::size_t num_parts() const { return 1; }
    bool enter_part(std::size_t, Fixed) { return true; }
    SearchResult search_at(std::int32_t v, const Plan& plan, Goal goal, Fixed floor, Fixed enough) {
        return search_.run({.plan = plan, .goal = goal, .root = v, .floor = floor, .enough = enough});
    }
    SearchResult search_in_order(Fixed floor) {
        const Plan* plan = pattern_.natural(meter_);
        if (plan == nullptr) return {};
        return search_.run({.plan = *plan, .goal = Goal::first, .floor = floor});
    }

    void start_ties();
    std::int32_t next_open(Fixed score);
    void require(std::int32_t v) { search_.require(v); }
    void exclude(std::int32_t v) {
        search_.release();
        search_.forbid(v);
    }

  private:
    std::vector<std::int32_t> everyone() const;
    std::vector<std::int32_t> near(std::int32_t v) const;

    const Pattern::Impl& pattern_;
    WorkMeter& meter_;
    const Edges edges_;
    Search search_;
    bool is_possible_ = true;
    // Where ties are broken: vertices in ascending order, those that were asked for first.
    std::vector<std::int32_t> open_;
    std::size_t next_ = 0;
    bool may_narrow_ = false;  // what is near the first required vertex is enough
};

}  // namespace topoplace::match::sparse
