#include "register.hpp"

namespace topoplace::bindings {

void register_kernels(pybind11::module_& /*module*/) {}

}  // namespace topoplace::bindings
