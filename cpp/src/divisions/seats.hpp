// The GPU of each task once it is known what each machine has.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "divisions/program.hpp"

namespace topoplace::divisions {

std::vector<std::int32_t> seats(const DivideParams& params, const Machines& machines,
                                std::span<const Part> parts);

}  // namespace topoplace::divisions
