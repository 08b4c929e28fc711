// The least assignment of rows to distinct columns, by shortest augmenting paths, with its dual solution.
//
// Reference: Jonker and Volgenant, Computing 38 (1987).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "topoplace/assert.hpp"

namespace topoplace::mapping {

class Assignment {
  public:
    // `costs`: rows x columns, row-major, at least as many columns as rows. Returns the least total.
    double solve(std::span<const double> costs, std::size_t rows, std::size_t columns) {
        TOPOPLACE_ASSERT(rows <= columns && costs.size() == rows * columns);
        costs_ = costs;
        columns_ = columns;
        row_price_.assign(rows, 0);
        column_price_.assign(columns, 0);
        row_of_.assign(columns, kNoLine);
        for (std::size_t row = 0; row < rows; ++row) {
            if (!take_cheapest(row)) augment(row);
        }
        double total = 0;
        for (const double price : row_price_) total += price;
        for (const double price : column_price_) total += price;
        TOPOPLACE_ASSERT(is_optimal(total));
        return total;
    }
    // Any assignment with this pair costs at least so much more than the least one.
    double reduced(std::size_t row, std::size_t column) const {
        return costs_[row * columns_ + column] - row_price_[row] - column_price_[column];
    }

  private:
    // What sums and differences of costs may lose, prices and lengths of paths near 0 included.
    double rounding() const {
        double largest = 0;
        for (const double cost : costs_) largest = std::max(largest, std::abs(cost));
        return 1e-9 * largest;
    }
    // Every row has its own column; prices are a dual solution, tight where rows are assigned. Roundings
    // aside.
    bool is_optimal(double total) const {
        const double rounding = this->rounding();
        std::vector<bool> assigned(row_price_.size(), false);
        double sum = 0;
        for (std::size_t column = 0; column < columns_; ++column) {
            const std::size_t row = row_of_[column];
            if (column_price_[column] > rounding) return false;
            if (row == kNoLine) continue;
            if (assigned[row] || std::abs(reduced(row, column)) > rounding) return false;
            assigned[row] = true;
            sum += costs_[row * columns_ + column];
        }
        for (std::size_t i = 0; i < costs_.size(); ++i) {
            if (!assigned[i / columns_] || reduced(i / columns_, i % columns_) < -rounding) return false;
        }
        return std::abs(sum - total) <= rounding * static_cast<double>(1 + row_price_.size());
    }

    bool take_cheapest(std::size_t row) {
        std::size_t cheapest = 0;
        for (std::size_t column = 1; column < columns_; ++column) {
            if (reduced(row, column) < reduced(row, cheapest)) cheapest = column;
        }
        row_price_[row] = reduced(row, cheapest);
        if (row_of_[cheapest] != kNoLine) return false;
        row_of_[cheapest] = row;
        return true;
    }

    void augment(std::size_t first) {
        slack_.assign(columns_, std::numeric_limits<double>::infinity());
        from_.assign(columns_, kNoLine);
        reached_.clear();
        seen_.assign(columns_, 0);
        std::size_t row = first;
        std::size_t column = kNoLine;
        double length = 0;
        do {
            scan(row, column, length);
            column = nearest();
            TOPOPLACE_ASSERT(column != kNoLine && slack_[column] >= length - rounding());
            length = slack_[column];
            seen_[column] = 1;
            reached_.push_back(column);
            row = row_of_[column];
        } while (row != kNoLine);
        reprice(first, length);
        while (column != kNoLine) {
            const std::size_t before = from_[column];
            row_of_[column] = before == kNoLine ? first : row_of_[before];
            column = before;
        }
    }
    // Paths that go on from `row`, which was reached through `column`.
    void scan(std::size_t row, std::size_t column, double length) {
        for (std::size_t next = 0; next < columns_; ++next) {
            if (seen_[next] != 0) continue;
            const double through = length + reduced(row, next);
            if (through >= slack_[next]) continue;
            slack_[next] = through;
            from_[next] = column;
        }
    }
    std::size_t nearest() const {
        std::size_t best = kNoLine;
        for (std::size_t column = 0; column < columns_; ++column) {
            if (seen_[column] == 0 && (best == kNoLine || slack_[column] < slack_[best])) best = column;
        }
        return best;
    }
    void reprice(std::size_t first, double length) {
        row_price_[first] += length;
        for (const std::size_t column : reached_) {
            const double change = length - slack_[column];
            column_price_[column] -= change;
            if (row_of_[column] != kNoLine) row_price_[row_of_[column]] += change;
        }
    }

    // Neither a row nor a column.
    static constexpr std::size_t kNoLine = std::numeric_limits<std::size_t>::max();
    std::span<const double> costs_;
    std::size_t columns_ = 0;
    std::vector<double> row_price_;
    std::vector<double> column_price_;  // never above 0, roundings aside
    std::vector<std::size_t> row_of_;   // by column
    std::vector<double> slack_;         // by column, the length of the shortest path to it
    std::vector<std::size_t> from_;     // by column, the one before it on that path
    std::vector<std::size_t> reached_;
    std::vector<std::uint8_t> seen_;
};

}  // namespace topoplace::mapping
