// Keeps the free vertices of one side in the order of their gains: buckets or an indexed heap.
//
// References: Fiduccia and Mattheyses, DAC 1982, for the buckets; Williams, Communications of the ACM 7
// (1964), and Floyd, ibid., for the heap and for making it in linear time.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <vector>

#include "graph/index.hpp"

namespace topoplace::partition {

// Vertices with their gains. `reset` comes first; then `append`ed vertices are `arrange`d before the first
// question. A vertex is in the queue at most once.
template <class Q>
concept GainQueue = std::default_initializable<Q> &&
                    requires(Q queue, std::int32_t vertex, std::int64_t gain, std::size_t n) {
                        {
                            queue.reset(n, gain)
                        } -> std::same_as<void>;  // for vertices below n, gains within -gain..gain
                        { queue.append(vertex, gain) } -> std::same_as<void>;
                        { queue.arrange() } -> std::same_as<void>;
                        { queue.insert(vertex, gain) } -> std::same_as<void>;
                        { queue.change(vertex, gain) } -> std::same_as<void>;  // of a vertex in the queue
                        { queue.remove(vertex) } -> std::same_as<void>;        // a vertex in the queue
                        {
                            queue.top()
                        } -> std::same_as<std::int32_t>;  // of the largest gain; kAbsent if empty
                        { queue.clear() } -> std::same_as<void>;
                    };

// A bucket for each gain, doubly linked; of equal gains the vertex that came last is first. Every operation
// is constant time, but for the search down from the top, which moves no further than gains have risen.
class BucketQueue {
  public:
    void reset(std::size_t num_vertices, std::int64_t largest_gain) {
        TOPOPLACE_ASSERT(largest_gain >= 0);
        offset_ = largest_gain;
        top_ = -1;
        const auto buckets = static_cast<std::size_t>(2 * largest_gain + 1);
        if (first_.size() < buckets) first_.resize(buckets, kAbsent);
        if (next_.size() < num_vertices) {
            next_.resize(num_vertices);
            previous_.resize(num_vertices);
            bucket_.resize(num_vertices);
        }
        TOPOPLACE_ASSERT(std::all_of(first_.begin(), first_.end(), [](auto v) { return v == kAbsent; }));
    }
    void append(std::int32_t vertex, std::int64_t gain) { link(vertex, gain + offset_); }
    void arrange() {}
    void insert(std::int32_t vertex, std::int64_t gain) { link(vertex, gain + offset_); }
    void clear() {
        for (; top_ >= 0; --top_) first_[static_cast<std::size_t>(top_)] = kAbsent;
    }

    std::int32_t top() {
        while (top_ >= 0 && first_[static_cast<std::size_t>(top_)] == kAbsent) --top_;
        if (top_ < 0) return kAbsent;
        const std::int32_t vertex = first_[static_cast<std::size_t>(top_)];
        TOPOPLACE_ASSERT(bucket_[index(vertex)] == top_ && previous_[index(vertex)] == kAbsent);
        return vertex;
    }
    void remove(std::int32_t vertex) {
        const std::size_t v = index(vertex);
        TOPOPLACE_ASSERT(is_linked(v));
        const std::int32_t before = previous_[v];
        const std::int32_t after = next_[v];
        if (before == kAbsent) {
            first_[static_cast<std::size_t>(bucket_[v])] = after;
        } else {
            next_[index(before)] = after;
        }
        if (after != kAbsent) previous_[index(after)] = before;
    }
    void change(std::int32_t vertex, std::int64_t gain) {
        remove(vertex);
        link(vertex, gain + offset_);
    }

  private:
    void link(std::int32_t vertex, std::int64_t bucket) {
        TOPOPLACE_ASSERT(bucket >= 0 && bucket <= 2 * offset_);
        const std::size_t v = index(vertex);
        std::int32_t& first = first_[static_cast<std::size_t>(bucket)];
        TOPOPLACE_ASSERT(first != vertex);
        bucket_[v] = bucket;
        previous_[v] = kAbsent;
        next_[v] = first;
        if (first != kAbsent) previous_[index(first)] = vertex;
        first = vertex;
        top_ = std::max(top_, bucket);
    }
    // Its neighbors in the bucket point back at it, and stand in the same bucket.
    bool is_linked(std::size_t v) const {
        const std::int32_t before = previous_[v];
        const std::int32_t after = next_[v];
        const auto vertex = static_cast<std::int32_t>(v);
        const bool begins = before == kAbsent ? first_[static_cast<std::size_t>(bucket_[v])] == vertex
                                              : next_[index(before)] == vertex;
        return begins && (after == kAbsent ||
                          (previous_[index(after)] == vertex && bucket_[index(after)] == bucket_[v]));
    }

    std::int64_t offset_ = 0;
    std::int64_t top_ = -1;            // the highest bucket that may hold a vertex; -1: none does
    std::vector<std::int32_t> first_;  // of each bucket
    std::vector<std::int32_t> next_;   // of each vertex, in its bucket
    std::vector<std::int32_t> previous_;
    std::vector<std::int64_t> bucket_;  // of each vertex
};

// A binary heap that knows where each vertex is; of equal gains the smallest vertex is first. Keeps the order
// of any 64-bit gains.
class HeapQueue {
  public:
    void reset(std::size_t num_vertices, std::int64_t /*largest_gain*/) {
        heap_.clear();
        if (place_.size() < num_vertices) place_.resize(num_vertices);
    }
    void clear() { heap_.clear(); }
    void append(std::int32_t vertex, std::int64_t gain) {
        place_[index(vertex)] = heap_.size();
        heap_.push_back({gain, vertex});
    }
    // Makes the heap of what was appended, in linear time.
    void arrange() {
        for (std::size_t i = heap_.size() / 2; i-- > 0;) sink(i);
        TOPOPLACE_ASSERT(is_heap());
    }

    void insert(std::int32_t vertex, std::int64_t gain) {
        append(vertex, gain);
        rise(heap_.size() - 1);
    }

    std::int32_t top() const { return heap_.empty() ? kAbsent : heap_.front().vertex; }
    void remove(std::int32_t vertex) {
        const std::size_t i = place_[index(vertex)];
        TOPOPLACE_ASSERT(i < heap_.size() && heap_[i].vertex == vertex);
        const Entry last = heap_.back();
        heap_.pop_back();
        if (i == heap_.size()) return;
        put(i, last);
        rise(i);
        sink(i);
    }
    void change(std::int32_t vertex, std::int64_t gain) {
        const std::size_t i = place_[index(vertex)];
        TOPOPLACE_ASSERT(i < heap_.size() && heap_[i].vertex == vertex);
        const bool rises = gain > heap_[i].gain;
        heap_[i].gain = gain;
        if (rises) {
            rise(i);
        } else {
            sink(i);
        }
    }

  private:
    struct Entry {
        std::int64_t gain;
        std::int32_t vertex;

        bool before(const Entry& other) const {
            return gain != other.gain ? gain > other.gain : vertex < other.vertex;
        }
    };

    void put(std::size_t i, const Entry& entry) {
        heap_[i] = entry;
        place_[index(entry.vertex)] = i;
    }
    void rise(std::size_t i) {
        const Entry entry = heap_[i];
        for (; i > 0 && entry.before(heap_[(i - 1) / 2]); i = (i - 1) / 2) put(i, heap_[(i - 1) / 2]);
        put(i, entry);
        TOPOPLACE_ASSERT(i == 0 || !heap_[i].before(heap_[(i - 1) / 2]));
    }
    void sink(std::size_t i) {
        const Entry entry = heap_[i];
        for (std::size_t child = 2 * i + 1; child < heap_.size(); child = 2 * i + 1) {
            if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
            if (!heap_[child].before(entry)) break;
            put(i, heap_[child]);
            i = child;
        }
        put(i, entry);
    }
    // No entry comes before its parent, and every vertex knows its place.
    bool is_heap() const {
        for (std::size_t i = 0; i < heap_.size(); ++i) {
            if (place_[index(heap_[i].vertex)] != i) return false;
            if (i > 0 && heap_[i].before(heap_[(i - 1) / 2])) return false;
        }
        return true;
    }

    std::vector<Entry> heap_;
    std::vector<std::size_t> place_;  // of each vertex, while it is in the heap
};

static_assert(GainQueue<BucketQueue> && GainQueue<HeapQueue>);

}  // namespace topoplace::partition
