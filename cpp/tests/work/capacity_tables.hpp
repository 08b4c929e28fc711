// Tables of jobs for what capacity planning costs.
#pragma once

#include <cmath>
#include <cstdint>

#include "oracles/capacity_oracle.hpp"
#include "work/work.hpp"

namespace work {

// Jobs that run the faster the more GPUs they get, on types of which the larger are dearer.
inline oracle::Capacity capacity_tables(Random& random, std::int32_t jobs) {
    oracle::Capacity c;
    c.gpus = {1, 2, 4};
    c.open = {5, 3, 0};
    c.most_gpus = 4;
    for (std::int32_t job = 0; job < jobs; ++job) {
        const double length = 1 + random.below(20), weight = 1 + random.below(4);
        c.wait.push_back(weight * (length + random.below(30)));
        for (std::size_t type = 0; type < c.gpus.size(); ++type) {
            for (std::int32_t given = 1; given <= c.most_gpus; ++given) {
                const bool runs = given <= c.gpus[type] && (job % 5 != 0 || type > 0);
                const double time = length * (type == 2 ? 0.7 : 1.0) / (0.4 + 0.6 * given);
                c.run.push_back(runs ? weight * std::floor(time) : oracle::kNever);
                c.pay.push_back(runs ? std::floor(time * (1 + 1.5 * double(type))) : oracle::kNever);
            }
        }
    }
    return c;
}

}  // namespace work
