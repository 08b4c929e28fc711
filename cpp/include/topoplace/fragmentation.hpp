// How much of a machine's free GPUs typical jobs could not use (fragmentation gradient descent, ATC'23).
//
// For one typical job the fragment of a machine is all that is left of its GPUs where the job does not fit
// the machine, and otherwise what is left of those GPUs that are too full for a task of it. The expected
// fragment is the mean over the typical jobs, weighted by how common they are.
//
// What is stranded is a second measure: with jobs of one kind alone, that can be cut as small as one likes,
// the CPUs of a machine are used up before its GPUs; the GPUs that then remain are stranded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topoplace/fault.hpp"

namespace topoplace {

struct TypicalJob {
    std::int64_t cpus = 0;   // thousandths
    std::int32_t tasks = 0;  // GPUs; 0 for a job that needs none, for which all that is left is a fragment
    std::int32_t share = 0;  // thousandths of each GPU
    double weight = 0;
    std::vector<std::uint8_t> suits;  // for each class of machines, whether its GPUs suit the job
};

// What is left of one machine.
struct MachineLeft {
    std::int32_t machine_class = 0;
    std::int64_t cpus = 0;               // thousandths
    std::span<const std::int32_t> gpus;  // thousandths of each GPU
};

class Fragmentation {
  public:
    // An amount below 0, a share that is not 1..1000 of a job with tasks, weights that do not add up to more
    // than 0, or jobs that know different numbers of classes.
    [[nodiscard]] static Fault check(std::span<const TypicalJob> jobs, double stranded);
    // stranded: the weight of what is stranded, in the mean over the jobs with tasks, in addition to the
    // fragment.
    explicit Fragmentation(std::vector<TypicalJob> jobs, double stranded = 0);

    std::int32_t num_classes() const { return static_cast<std::int32_t>(jobs_.front().suits.size()); }

    // Thousandths of a GPU: the expected fragment, and what is stranded times its weight.
    double expected(const MachineLeft& machine) const;

    struct Step {
        double score = -1;  // -1 where the job does not fit
        std::int32_t gpu =
            -1;  // of a job of one task that shares its GPU; otherwise the lowest GPUs are taken
    };
    // The score of placing a job: how much less fragment there is, in GPUs, as logistic(less) in 0..1, and in
    // whole hundredths, rounded down, if `rounded`. Of several GPUs the first one of the best score is taken.
    Step best_step(const MachineLeft& machine, std::int64_t cpus, std::int32_t tasks, std::int32_t share,
                   bool rounded) const;

  private:
    struct Shares {
        std::int32_t share;
        std::vector<std::size_t> jobs;
    };

    void group_by_share();

    std::vector<TypicalJob> jobs_;
    std::vector<Shares> by_share_;
    double without_tasks_ = 0;  // weight of the jobs that need no GPU
    double stranded_;
};

}  // namespace topoplace
