// The former names of what stops a search, for kernels that still use them.
#pragma once

#include "topoplace/stop_condition.hpp"

namespace topoplace {

using Deadline = StopCondition;
using NodeCounter = WorkMeter;

}  // namespace topoplace
