// Shapes as sorted lists of their branches, found from the leaves of the forest upwards.
#include "match/packing/piece_shapes.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "topoplace/assert.hpp"

namespace topoplace::match {
namespace {

using Branches = std::vector<std::int32_t>;  // shapes, ascending

// The vertices, every one before those below it.
struct Rooted {
    std::vector<std::int32_t> order;
    std::vector<std::int32_t> parent;
    std::vector<std::int32_t> roots;
    std::int64_t num_edges = 0;

    // Without the edge between vertex 0 and its last neighbour where `cut`.
    Rooted(const Pattern::Impl& pattern, bool cut) : parent(index(pattern.size()), kAbsent) {
        std::vector<bool> seen(index(pattern.size()), false);
        const std::int32_t end = cut ? pattern.neighbors(0).back() : kAbsent;
        for (std::int32_t start = 0; start < pattern.size(); ++start) {
            if (seen[index(start)]) continue;
            seen[index(start)] = true;
            roots.push_back(start);
            order.push_back(start);
            for (std::size_t next = order.size() - 1; next < order.size(); ++next) {
                const std::int32_t u = order[next];
                for (const std::int32_t v : pattern.neighbors(u)) {
                    const bool is_cut = cut && std::min(u, v) == 0 && std::max(u, v) == end;
                    if (seen[index(v)] || is_cut) continue;
                    seen[index(v)] = true;
                    parent[index(v)] = u;
                    order.push_back(v);
                    ++num_edges;
                }
            }
        }
    }
};

bool is_cycle(const Pattern::Impl& pattern) {
    return pattern.size() > 2 && pattern.num_edges() == pattern.size() && pattern.max_degree() == 2 &&
           pattern.min_degree() == 2 && Rooted(pattern, false).roots.size() == 1;
}

// A name of the tree that hangs from `top`, the same for the same tree.
std::string name_of(const std::vector<Branches>& adjacent, std::int32_t top, std::int32_t above) {
    std::vector<std::string> names;
    for (const std::int32_t next : adjacent[index(top)]) {
        if (next != above) names.push_back(name_of(adjacent, next, top));
    }
    std::sort(names.begin(), names.end());
    std::string name = "(";
    for (const std::string& its : names) name += its;
    return name + ")";
}

}  // namespace

class PieceShapes::Builder {
  public:
    Builder(PieceShapes& built, std::int32_t largest) : built_(built), largest_(largest) { id_of({}); }

    // False where there are too many shapes.
    bool add(const Rooted& forest) {
        std::vector<std::vector<std::int32_t>> found(forest.order.size(), {0});
        for (auto v = forest.order.rbegin(); v != forest.order.rend(); ++v) {
            const std::int32_t top = forest.parent[index(*v)];
            if (top == kAbsent) continue;
            Step step{.top = top, .child = *v};
            grow(step, found[index(top)], found[index(*v)]);
            if (built_.shapes_.size() > kMostShapes) return false;
            for (const Join& join : step.joins) found[index(top)].push_back(join.after);
            std::sort(found[index(top)].begin(), found[index(top)].end());
            found[index(top)].erase(std::unique(found[index(top)].begin(), found[index(top)].end()),
                                    found[index(top)].end());
            built_.steps_.push_back(std::move(step));
        }
        return true;
    }

  private:
    void grow(Step& step, std::span<const std::int32_t> before, std::span<const std::int32_t> below) {
        for (const std::int32_t one : before) {
            step.joins.push_back({one, kAbsent, one});
            for (const std::int32_t other : below) {
                if (size_of(one) + size_of(other) > largest_) continue;
                Branches branches = branches_[index(one)];
                branches.insert(std::upper_bound(branches.begin(), branches.end(), other), other);
                step.joins.push_back({one, other, id_of(branches)});
            }
        }
    }

    std::int32_t size_of(std::int32_t shape) const { return built_.shapes_[index(shape)].size; }

    std::int32_t id_of(const Branches& branches) {
        const auto known = ids_.find(branches);
        if (known != ids_.end()) return known->second;
        Shape shape{.size = 1, .rest = kAbsent, .child = kAbsent, .form = 0};
        if (!branches.empty()) {
            shape.child = branches.back();
            shape.rest = id_of({branches.begin(), branches.end() - 1});
            shape.size = size_of(shape.rest) + size_of(shape.child);
        }
        const auto id = static_cast<std::int32_t>(built_.shapes_.size());
        branches_.push_back(branches);
        ids_.emplace(branches, id);
        shape.form = form_of(id);
        built_.shapes_.push_back(shape);
        return id;
    }

    std::int32_t form_of(std::int32_t id) {
        std::vector<Branches> adjacent;
        spell_out(id, kAbsent, adjacent);
        std::string name;
        for (std::int32_t top = 0; top < std::ssize(adjacent); ++top)
            name = std::max(name, name_of(adjacent, top, kAbsent));
        const auto [form, is_new] = forms_.emplace(std::move(name), built_.num_forms_);
        if (is_new) {
            ++built_.num_forms_;
            built_.shape_of_form_.push_back(id);
        }
        return form->second;
    }

    // Adds the vertices of a shape to a tree, under `above`.
    void spell_out(std::int32_t id, std::int32_t above, std::vector<Branches>& adjacent) const {
        const auto own = static_cast<std::int32_t>(adjacent.size());
        adjacent.emplace_back();
        if (above != kAbsent) {
            adjacent[index(own)].push_back(above);
            adjacent[index(above)].push_back(own);
        }
        for (const std::int32_t branch : branches_[index(id)]) spell_out(branch, own, adjacent);
    }

    PieceShapes& built_;
    const std::int32_t largest_;
    std::vector<Branches> branches_;  // by shape
    std::map<Branches, std::int32_t> ids_;
    std::map<std::string, std::int32_t> forms_;
};

PieceShapes::PieceShapes(const Pattern::Impl& pattern, std::int32_t largest) {
    const bool cut = is_cycle(pattern) && pattern.size() > largest;
    num_cut_ = cut ? 1 : 0;
    const Rooted forest(pattern, cut);
    const bool is_forest = forest.num_edges + num_cut_ == pattern.num_edges();
    if (!is_forest || !Builder(*this, largest).add(forest)) {
        shapes_.clear();
        return;
    }
    roots_ = forest.roots;
}

}  // namespace topoplace::match
