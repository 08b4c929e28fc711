// The least assignment of rows to distinct columns, by shortest augmenting paths, with its dual solution.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace topoplace::mapping {

class Assignment {
  public:
    // `costs`: rows x columns, row-major, at least as many columns as rows. Returns the least total.
    double solve(std::span<const double> costs, std::size_t rows, std::size_t columns) {
        costs_ = costs;
        columns_ = columns;
        row_price_.assign(rows, 0);
        column_price_.assign(columns, 0);
        row_of_.assign(columns, kNone);
        for (std::size_t row = 0; row < rows; ++row) {
            if (!take_cheapest(row)) augment(row);
        }
        double total = 0;
        for (const double price : row_price_) total += price;
        for (const double price : column_price_) total += price;
        return total;
    }
    // Any assignment with this pair costs at least so much more than the least one.
    double reduced(std::size_t row, std::size_t column) const {
        return costs_[row * columns_ + column] - row_price_[row] - column_price_[column];
    }

  private:
    bool take_cheapest(std::size_t row) {
        std::size_t cheapest = 0;
        for (std::size_t column = 1; column < columns_; ++column) {
            if (reduced(row, column) < reduced(row, cheapest)) cheapest = column;
        }
        row_price_[row] = reduced(row, cheapest);
        if (row_of_[cheapest] != kNone) return false;
        row_of_[cheapest] = row;
        return true;
    }

    void augment(std::size_t first) {
        slack_.assign(columns_, std::numeric_limits<double>::infinity());
        from_.assign(columns_, kNone);
        reached_.clear();
        seen_.assign(columns_, 0);
        std::size_t row = first;
        std::size_t column = kNone;
        double length = 0;
        do {
            scan(row, column, length);
            column = nearest();
            length = slack_[column];
            seen_[column] = 1;
            reached_.push_back(column);
            row = row_of_[column];
        } while (row != kNone);
        reprice(first, length);
        while (column != kNone) {
            const std::size_t before = from_[column];
            row_of_[column] = before == kNone ? first : row_of_[before];
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
        std::size_t best = kNone;
        for (std::size_t column = 0; column < columns_; ++column) {
            if (seen_[column] == 0 && (best == kNone || slack_[column] < slack_[best])) best = column;
        }
        return best;
    }
    void reprice(std::size_t first, double length) {
        row_price_[first] += length;
        for (const std::size_t column : reached_) {
            const double change = length - slack_[column];
            column_price_[column] -= change;
            if (row_of_[column] != kNone) row_price_[row_of_[column]] += change;
        }
    }

    static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    std::span<const double> costs_;
    std::size_t columns_ = 0;
    std::vector<double> row_price_;
    std::vector<double> column_price_;  // never above 0
    std::vector<std::size_t> row_of_;   // by column
    std::vector<double> slack_;         // by column, the length of the shortest path to it
    std::vector<std::size_t> from_;     // by column, the one before it on that path
    std::vector<std::size_t> reached_;
    std::vector<std::uint8_t> seen_;
};

}  // namespace topoplace::mapping
