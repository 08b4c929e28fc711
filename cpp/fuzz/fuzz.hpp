// What fuzz bodies share: bytes read as small numbers, and a requirement that stops the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "topoplace/graph.hpp"

namespace fuzz {

// Reads numbers off the input; past its end every number is 0, so that each input is a complete case.
class Bytes {
  public:
    Bytes(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

    bool empty() const { return rest_.empty(); }
    // A number in 0 .. bound-1.
    std::int32_t below(std::int32_t bound) {
        if (rest_.empty()) return 0;
        const std::int32_t value = rest_.front() % bound;
        rest_ = rest_.subspan(1);
        return value;
    }

  private:
    std::span<const std::uint8_t> rest_;
};

// A graph of `lonely` vertices without edges, then at most `most` whose edges weigh 1 .. 3: few weights, many
// ties.
inline topoplace::Graph graph(Bytes& bytes, std::int32_t most, std::int32_t lonely = 0) {
    const std::int32_t size = lonely + 1 + bytes.below(most);
    std::vector<topoplace::Edge> edges;
    for (std::int32_t u = lonely; u < size; ++u) {
        for (std::int32_t v = u + 1; v < size; ++v) {
            if (const std::int32_t weight = bytes.below(4); weight > 0)
                edges.push_back({u, v, double(weight)});
        }
    }
    return topoplace::Graph(size, edges);
}

}  // namespace fuzz

#define REQUIRE(condition)                                                                 \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                  \
        }                                                                                  \
    } while (false)
