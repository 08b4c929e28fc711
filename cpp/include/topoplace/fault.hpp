// The answer of a verifier, and of a check of arguments.
#pragma once

#include <optional>
#include <string>

namespace topoplace {

// The first thing found wrong, as a sentence; none where everything is right.
using Fault = std::optional<std::string>;

}  // namespace topoplace
