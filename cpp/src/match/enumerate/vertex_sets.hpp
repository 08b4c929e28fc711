// One mapping for each set of target vertices, over rows of bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "graph/index.hpp"
#include "match/enumerate/backtrack.hpp"

namespace topoplace::match {

// Sets come in lexicographic order: a vertex is taken in, then left out, where some embedding agrees.
template <int W, class Take>
class VertexSets {
  public:
    VertexSets(const DenseSpace<W>& space, const Pattern::Impl& pattern, WorkMeter& meter, Take take)
        : space_(space), pattern_(pattern), meter_(meter), take_(std::move(take)) {}

    void run() {
        Bits<W> usable;
        for (const Bits<W>& set : space_.allowed) usable |= set;
        Bits<W> witness;
        if (find(Bits<W>{}, usable, witness)) split(Bits<W>{}, usable, witness);
    }

  private:
    // Some embedding covers `witness`, with taken within it and it within usable.
    bool split(const Bits<W>& taken, Bits<W> usable, Bits<W> witness) {
        while (taken.count() < pattern_.size()) {
            TOPOPLACE_ASSERT(witness.count() == pattern_.size());
            TOPOPLACE_ASSERT(!(taken - witness).any() && !(witness - usable).any());
            if (meter_.stopped()) return false;
            const std::int32_t v = (usable - taken).lowest();
            Bits<W> with = taken;
            with.set(v);
            Bits<W> other = witness;
            if ((witness.test(v) || find(with, usable, other)) && !split(with, usable, other)) return false;
            usable.reset(v);
            if (witness.test(v) && !find(taken, usable, witness)) return !meter_.stopped();
        }
        return append_set(taken);
    }

    bool find(const Bits<W>& required, const Bits<W>& usable, Bits<W>& witness) {
        if (usable.count() < pattern_.size()) return false;
        const auto try_plan = [&](const Plan* plan, std::int32_t root) {
            if (plan == nullptr) return false;
            Backtrack<W> search(space_, *plan, false, meter_);
            search.restrict_to(usable, required);
            if (root != kAbsent) search.fix_root(root);
            bool found = false;
            search.run([&](const Backtrack<W>& at_leaf, const Bits<W>& last) {
                witness = Bits<W>::single(last.lowest());
                for (std::int32_t d = 0; d + 1 < pattern_.size(); ++d)
                    witness.set(at_leaf.images()[index(d)]);
                found = true;
                return false;
            });
            return found;
        };
        if (!required.any()) return try_plan(pattern_.plan(meter_), kAbsent);
        const std::int32_t root = required.lowest();
        for (std::int32_t u = 0; u < pattern_.size(); ++u) {
            if (space_.uniform && !is_representative(u)) continue;
            const Plan* plan = pattern_.rooted(u, meter_);
            if (plan == nullptr || try_plan(plan, root)) return plan != nullptr;
        }
        return false;
    }

    bool is_representative(std::int32_t u) {
        const auto list = pattern_.representatives(meter_);
        return std::binary_search(list.begin(), list.end(), u);
    }

    bool append_set(const Bits<W>& set) {
        bool room = true;
        Backtrack<W> search(space_, *pattern_.natural(meter_), false, meter_);  // made with the space
        search.restrict_to(set, set);
        search.run([&](const Backtrack<W>& at_leaf, const Bits<W>& last) {
            room = take_(at_leaf, last.lowest());
            return false;
        });
        return room;
    }

    const DenseSpace<W>& space_;
    const Pattern::Impl& pattern_;
    WorkMeter& meter_;
    Take take_;
};

// Tells `take` each set's smallest mapping, its last vertex apart, until it returns false.
template <int W, class Take>
void vertex_sets(const DenseSpace<W>& space, const Pattern::Impl& pattern, WorkMeter& meter, Take take) {
    VertexSets<W, Take>(space, pattern, meter, std::move(take)).run();
}

}  // namespace topoplace::match
