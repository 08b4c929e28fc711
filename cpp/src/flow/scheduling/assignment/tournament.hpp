// A tournament tree: the least of some keys that change one at a time, and the others in order from there.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "graph/index.hpp"
#include "topoplace/assert.hpp"

namespace topoplace::flow {

class Tournament {
  public:
    // The key of a leaf that takes no part.
    static constexpr std::int64_t kNoKey = std::numeric_limits<std::int64_t>::max();

    Tournament() = default;
    explicit Tournament(const std::vector<std::int64_t>& keys)
        : Tournament(keys.size(), [&](std::size_t leaf) { return keys[leaf]; }) {}
    // Of `leaves` leaves, each with the key that `key_of` returns for it.
    template <class KeyOf>
    Tournament(std::size_t leaves, const KeyOf& key_of)
        : leaves_(std::bit_ceil(std::max<std::size_t>(leaves, 1))), tree_(2 * leaves_, kNoKey) {
        for (std::size_t leaf = 0; leaf < leaves; ++leaf) tree_[leaves_ + leaf] = key_of(leaf);
        for (std::size_t node = leaves_ - 1; node > 0; --node) {
            tree_[node] = std::min(tree_[2 * node], tree_[2 * node + 1]);
        }
    }

    // True for one made without keys, which has no leaves at all.
    bool empty() const { return tree_.empty(); }
    // Makes room for this many leaves; new ones have no key.
    void grow(std::size_t leaves) {
        TOPOPLACE_ASSERT(!empty());
        if (leaves <= leaves_) return;
        std::vector<std::int64_t> keys(tree_.begin() + static_cast<std::ptrdiff_t>(leaves_), tree_.end());
        keys.resize(leaves, kNoKey);
        *this = Tournament(keys);
    }

    std::int64_t least() const {
        TOPOPLACE_ASSERT(!empty());
        return tree_[1];
    }
    std::int64_t key(std::int32_t leaf) const {
        TOPOPLACE_ASSERT(!empty() && index(leaf) < leaves_);
        return tree_[leaves_ + index(leaf)];
    }

    // Returns the first leaf of the least key.
    std::int32_t first() const {
        TOPOPLACE_ASSERT(!empty());
        std::size_t node = 1;
        while (node < leaves_) node = 2 * node + (tree_[2 * node] == tree_[1] ? 0 : 1);
        TOPOPLACE_ASSERT(tree_[node] == least());
        return static_cast<std::int32_t>(node - leaves_);
    }

    void set(std::int32_t leaf, std::int64_t key) {
        TOPOPLACE_ASSERT(!empty() && index(leaf) < leaves_);
        std::size_t node = leaves_ + index(leaf);
        tree_[node] = key;
        for (node /= 2; node > 0; node /= 2) {
            const std::int64_t least = std::min(tree_[2 * node], tree_[2 * node + 1]);
            if (tree_[node] == least) break;
            tree_[node] = least;
        }
        TOPOPLACE_ASSERT(tree_[1] <= key);
    }

    // Leaves by rising key, one at a time; keys must not change from `rewind` to the last `next`.
    void rewind() {
        TOPOPLACE_ASSERT(!empty());
        open_.assign(1, {tree_[1], 1});
        tied_.clear();
    }
    // Key of the next leaf, or kNoKey.
    std::int64_t next_key() const {
        if (!tied_.empty()) return tied_key_;
        return open_.empty() ? kNoKey : open_.front().first;
    }
    std::int32_t next() {
        TOPOPLACE_ASSERT(next_key() != kNoKey);
        if (tied_.empty()) {
            std::pop_heap(open_.begin(), open_.end(), std::greater<>());
            tied_key_ = open_.back().first;
            tied_.push_back(open_.back().second);
            open_.pop_back();
        }
        for (;;) {
            const std::size_t node = tied_.back();
            tied_.pop_back();
            TOPOPLACE_ASSERT(tree_[node] == tied_key_);  // no key changed since `rewind`
            if (node >= leaves_) return static_cast<std::int32_t>(node - leaves_);
            open(2 * node + 1);
            open(2 * node);
        }
    }

  private:
    void open(std::size_t node) {
        TOPOPLACE_ASSERT(tree_[node] >= tied_key_);
        if (tree_[node] == tied_key_) {
            tied_.push_back(node);
        } else if (tree_[node] != kNoKey) {
            open_.emplace_back(tree_[node], node);
            std::push_heap(open_.begin(), open_.end(), std::greater<>());
        }
    }

    std::size_t leaves_ = 1;
    std::vector<std::int64_t> tree_;  // node i over 2i and 2i + 1, leaves from leaves_ on
    std::vector<std::pair<std::int64_t, std::size_t>> open_;  // a heap: subtrees not visited yet
    std::vector<std::size_t> tied_;                           // ... of the key that is being visited
    std::int64_t tied_key_ = kNoKey;
};

}  // namespace topoplace::flow
