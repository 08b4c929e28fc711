// The pieces that a forest falls into when it is spread over machines: connected parts of a few vertices,
// distinguished by their shapes.
//
// A piece hangs from its topmost vertex. It is a piece of one vertex less a branch, and the piece at the end
// of that branch; so every shape but the single vertex is made of two smaller ones. Two shapes have the same
// form if they are the same tree with another vertex on top.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/index.hpp"
#include "match/graphs/pattern.hpp"

namespace topoplace::match {

class PieceShapes {
  public:
    // Beyond this, tables take too long.
    static constexpr std::size_t kMostShapes = 256;

    struct Shape {
        std::int32_t size;
        std::int32_t rest;   // without its last branch, kAbsent in a single vertex
        std::int32_t child;  // at the end of this branch
        std::int32_t form;
    };
    // The piece with some vertex on top grows by a branch to the piece below, or that piece is closed.
    struct Join {
        std::int32_t before;
        std::int32_t below;  // kAbsent: closed
        std::int32_t after;
    };
    struct Step {
        std::int32_t top;
        std::int32_t child;
        std::vector<Join> joins{};
    };

    // Of pieces of up to `largest` vertices. None where the pattern has a cycle other than the whole of it,
    // or too many shapes. A pattern that is one cycle is cut at one edge, so it has to be larger than a
    // piece.
    PieceShapes(const Pattern::Impl& pattern, std::int32_t largest);

    bool empty() const { return shapes_.empty(); }
    // Each after those it is made of; the first is the single vertex.
    std::span<const Shape> shapes() const { return shapes_; }
    std::int32_t num_forms() const { return num_forms_; }
    // A shape of each form.
    std::span<const std::int32_t> shape_of_form() const { return shape_of_form_; }
    // Each vertex after all vertices below it; a vertex has one step for each branch.
    std::span<const Step> steps() const { return steps_; }
    std::span<const std::int32_t> roots() const { return roots_; }
    // Edges that were left out, which join pieces.
    std::int32_t num_cut() const { return num_cut_; }

  private:
    class Builder;

    std::vector<Shape> shapes_;
    std::vector<std::int32_t> shape_of_form_;
    std::vector<Step> steps_;
    std::vector<std::int32_t> roots_;
    std::int32_t num_forms_ = 0;
    std::int32_t num_cut_ = 0;
};

}  // namespace topoplace::match
