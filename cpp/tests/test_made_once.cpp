// What is made once: by one of the threads that ask, and again after a failure.
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "check.hpp"
#include "topoplace/made_once.hpp"

using topoplace::MadeOnce;

TEST(made_once_makes_no_second_value) {
    MadeOnce<int> made;
    CHECK(!made.is_made());
    CHECK_EQ(*made.get([] { return 3; }), 3);
    CHECK(made.is_made());
    CHECK_EQ(*made.get([] { return 4; }), 3);
    CHECK_EQ(made.value(), 3);
}

TEST(made_once_starts_over_where_nothing_was_made) {
    MadeOnce<int> made;
    for (int attempt = 0; attempt < 3; ++attempt) {
        CHECK(made.get([] { return std::optional<int>(); }) == nullptr);
        CHECK(!made.is_made());
    }
    CHECK_EQ(*made.get([] { return 5; }), 5);
}

TEST(made_once_is_made_by_one_of_many_threads) {
    for (int round = 0; round < 50; ++round) {
        MadeOnce<std::vector<int>> made;
        std::atomic<int> calls = 0;
        // The first one fails, so that another has to make the value.
        const auto make = [&] {
            return calls.fetch_add(1) == 0 ? std::nullopt : std::optional(std::vector<int>(100, 7));
        };
        std::vector<const std::vector<int>*> seen(4, nullptr);
        {
            std::vector<std::jthread> threads;
            for (auto& mine : seen) {
                threads.emplace_back([&] {
                    mine = made.get(make);
                    if (mine == nullptr) mine = made.get(make);
                });
            }
        }
        for (const auto* mine : seen) CHECK(mine == &made.value());
        CHECK_EQ(calls.load(), 2);
    }
}
