#pragma once
#include <pybind11/pybind11.h>

namespace topoplace::bindings {

void register_capacity(pybind11::module_& module);
void register_flow(pybind11::module_& module);
void register_flow_network(pybind11::module_& module);
void register_kernels(pybind11::module_& module);
void register_mapping(pybind11::module_& module);
void register_cluster(pybind11::module_& module);

}  // namespace topoplace::bindings
