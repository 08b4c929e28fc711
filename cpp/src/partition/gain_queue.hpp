// What keeps the free vertices of one side in the order of their gains: buckets or an indexed heap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace topoplace::partition {

// A bucket for each gain, doubly linked; of equal gains the vertex that came last is first. Every operation
// is constant time, but for the search down from the top, which moves no further than gains have risen.
class BucketQueue {
  public:
    // Empties the queue, for gains up to `largest_gain` and vertices below `num_vertices`.
    void reset(std::size_t num_vertices, std::int64_t largest_gain) {
        offset_ = largest_gain;
        top_ = -1;
        const auto buckets = static_cast<std::size_t>(2 * largest_gain + 1);
        if (first_.size() < buckets) first_.resize(buckets, kNone);
        if (next_.size() < num_vertices) {
            next_.resize(num_vertices);
            previous_.resize(num_vertices);
            bucket_.resize(num_vertices);
        }
    }
    // Called between reset or clear and the first question.
    void append(std::int32_t vertex, std::int64_t gain) { link(vertex, gain + offset_); }
    void arrange() {}
    void insert(std::int32_t vertex, std::int64_t gain) { link(vertex, gain + offset_); }
    void clear() {
        for (; top_ >= 0; --top_) first_[static_cast<std::size_t>(top_)] = kNone;
    }

    // kNone where the queue is empty.
    std::int32_t top() {
        while (top_ >= 0 && first_[static_cast<std::size_t>(top_)] == kNone) --top_;
        return top_ < 0 ? kNone : first_[static_cast<std::size_t>(top_)];
    }
    void remove(std::int32_t vertex) {
        const auto v = static_cast<std::size_t>(vertex);
        const std::int32_t before = previous_[v];
        const std::int32_t after = next_[v];
        (before == kNone ? first_[static_cast<std::size_t>(bucket_[v])]
                         : next_[static_cast<std::size_t>(before)]) = after;
        if (after != kNone) previous_[static_cast<std::size_t>(after)] = before;
    }
    void change(std::int32_t vertex, std::int64_t gain) {
        remove(vertex);
        link(vertex, gain + offset_);
    }

    static constexpr std::int32_t kNone = -1;

  private:
    void link(std::int32_t vertex, std::int64_t bucket) {
        const auto v = static_cast<std::size_t>(vertex);
        std::int32_t& first = first_[static_cast<std::size_t>(bucket)];
        bucket_[v] = bucket;
        previous_[v] = kNone;
        next_[v] = first;
        if (first != kNone) previous_[static_cast<std::size_t>(first)] = vertex;
        first = vertex;
        top_ = std::max(top_, bucket);
    }

    std::int64_t offset_ = 0;
    std::int64_t top_ = -1;
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
        place_[static_cast<std::size_t>(vertex)] = heap_.size();
        heap_.push_back({gain, vertex});
    }
    // Makes the heap of what was appended, in linear time.
    void arrange() {
        for (std::size_t i = heap_.size() / 2; i-- > 0;) sink(i);
    }

    void insert(std::int32_t vertex, std::int64_t gain) {
        append(vertex, gain);
        rise(heap_.size() - 1);
    }

    std::int32_t top() const { return heap_.empty() ? kNone : heap_.front().vertex; }
    void remove(std::int32_t vertex) {
        const std::size_t i = place_[static_cast<std::size_t>(vertex)];
        const Entry last = heap_.back();
        heap_.pop_back();
        if (i == heap_.size()) return;
        put(i, last);
        rise(i);
        sink(i);
    }
    void change(std::int32_t vertex, std::int64_t gain) {
        const std::size_t i = place_[static_cast<std::size_t>(vertex)];
        const bool rises = gain > heap_[i].gain;
        heap_[i].gain = gain;
        if (rises) {
            rise(i);
        } else {
            sink(i);
        }
    }

    static constexpr std::int32_t kNone = -1;

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
        place_[static_cast<std::size_t>(entry.vertex)] = i;
    }
    void rise(std::size_t i) {
        const Entry entry = heap_[i];
        for (; i > 0 && entry.before(heap_[(i - 1) / 2]); i = (i - 1) / 2) put(i, heap_[(i - 1) / 2]);
        put(i, entry);
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

    std::vector<Entry> heap_;
    std::vector<std::size_t> place_;  // of each vertex, while it is in the heap
};

}  // namespace topoplace::partition
