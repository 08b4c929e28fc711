// Sums of so many of the first values, one value after the other, as rows of bits: one row for each count.
// All values are divided by their greatest common divisor first, for rooms are often multiples of 8.
#include "tree_mapping/least_sum.hpp"

#include <algorithm>
#include <numeric>

namespace topoplace::tree_mapping {
namespace {

constexpr std::size_t kMostWork = std::size_t{1} << 21;  // words of bits: about a millisecond
constexpr std::size_t kMostSums = std::size_t{1} << 21;  // of all counts
constexpr std::size_t kBits = 64;
constexpr std::int32_t kNone = -1;

class Sums {
  public:
    Sums(std::size_t count, std::size_t most)
        : count_(count),
          most_(most),
          words_(most / kBits + 1),
          reached_((count + 1) * words_, 0),
          first_((count + 1) * (most + 1), kNone) {
        reached_[0] = 1;
    }

    // Adds a value to the sums so far; the largest counts first, which still lack it.
    void add(std::int32_t place, std::size_t value) {
        const auto before = std::min(count_, static_cast<std::size_t>(place) + 1);
        for (std::size_t count = before; count > 0; --count) add_to(count, place, value);
    }

    bool has(std::size_t sum) const { return first_[count_ * (most_ + 1) + sum] != kNone; }

    // Each sum was reached first by the value that it names, and the rest of it by earlier ones.
    std::vector<std::size_t> places(std::size_t sum, std::span<const std::size_t> values) const {
        std::vector<std::size_t> found(count_);
        for (std::size_t count = count_; count > 0; --count) {
            const auto place = static_cast<std::size_t>(first_[count * (most_ + 1) + sum]);
            found[count - 1] = place;
            sum -= values[place];
        }
        return found;
    }

  private:
    void add_to(std::size_t count, std::int32_t place, std::size_t value) {
        const std::uint64_t* from = &reached_[(count - 1) * words_];
        std::uint64_t* to = &reached_[count * words_];
        const std::size_t whole = value / kBits, bits = value % kBits;
        for (std::size_t word = words_; word-- > whole;) {
            std::uint64_t moved = from[word - whole] << bits;
            if (bits > 0 && word > whole) moved |= from[word - whole - 1] >> (kBits - bits);
            moved &= ~to[word];
            if (moved == 0) continue;
            to[word] |= moved;
            name(count, word * kBits, moved, place);
        }
    }

    void name(std::size_t count, std::size_t sum, std::uint64_t bits, std::int32_t place) {
        for (; bits != 0; bits >>= 1, ++sum) {
            if ((bits & 1) != 0 && sum <= most_) first_[count * (most_ + 1) + sum] = place;
        }
    }

    std::size_t count_, most_, words_;
    std::vector<std::uint64_t> reached_;  // [count][sum]
    std::vector<std::int32_t> first_;     // [count][sum] the last of the first values that reach it
};

// False if there is more work than is allowed, or nothing to find.
bool is_worth_it(std::size_t values, std::size_t count, std::size_t least, std::size_t most) {
    if (count == 0 || count > values || most < least || most >= kMostSums) return false;
    return count + 1 <= kMostSums / (most + 1) && values <= kMostWork / ((most / kBits + 1) * count);
}

std::vector<std::size_t> divided(std::span<const std::int64_t> values, std::int64_t unit) {
    std::vector<std::size_t> found;
    for (const std::int64_t value : values) found.push_back(static_cast<std::size_t>(value / unit));
    return found;
}

}  // namespace

std::vector<std::size_t> least_sum(std::span<const std::int64_t> values, std::size_t count,
                                   std::int64_t enough, std::int64_t below) {
    std::int64_t unit = 0;
    for (const std::int64_t value : values) unit = std::gcd(unit, value);
    if (unit == 0 || below <= enough) return {};
    const auto least = static_cast<std::size_t>((enough + unit - 1) / unit);
    const auto most = static_cast<std::size_t>((below - 1) / unit);
    if (!is_worth_it(values.size(), count, least, most)) return {};
    const std::vector<std::size_t> scaled = divided(values, unit);
    Sums sums(count, most);
    for (std::size_t i = 0; i < scaled.size() && !sums.has(least); ++i) {
        if (scaled[i] <= most) sums.add(static_cast<std::int32_t>(i), scaled[i]);
    }
    std::size_t sum = least;
    while (sum <= most && !sums.has(sum)) ++sum;
    return sum > most ? std::vector<std::size_t>{} : sums.places(sum, scaled);
}

}  // namespace topoplace::tree_mapping
