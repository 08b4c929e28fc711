// What each form of piece is worth on one machine: for each set of its vertices, the largest sum of weights
// over all ways to put the piece on exactly this set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "match/graphs/target.hpp"
#include "match/packing/piece_shapes.hpp"

namespace topoplace::match {

class PieceValues {
  public:
    // Of a machine; all its sets are looked at.
    static constexpr std::size_t kMostVertices = 8;

    struct Entry {
        std::int32_t form;
        std::uint32_t set;  // positions in the machine's list of vertices
        Fixed sum;
    };

    PieceValues(const PieceShapes& shapes, const Target::Impl& target, std::span<const std::int32_t> machine);

    std::span<const Entry> entries() const { return entries_; }
    std::int32_t size() const { return size_; }
    // How many changes of a table it took.
    std::uint64_t steps() const { return steps_; }

  private:
    class Builder;

    std::int32_t size_;
    std::uint64_t steps_ = 0;
    std::vector<Entry> entries_;
};

}  // namespace topoplace::match
