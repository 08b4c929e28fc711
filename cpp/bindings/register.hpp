// The parts of the extension, one for each bind_*.cpp.
#pragma once

#include <pybind11/pybind11.h>

namespace topoplace::bindings {

void register_capacity(pybind11::module_& module);
void register_cluster(pybind11::module_& module);
void register_collective(pybind11::module_& module);
void register_decide(pybind11::module_& module);
void register_divisions(pybind11::module_& module);
void register_flow(pybind11::module_& module);
void register_flow_network(pybind11::module_& module);
void register_fragmentation(pybind11::module_& module);
void register_gang_bounds(pybind11::module_& module);
void register_gang_mapping(pybind11::module_& module);
void register_gang_room(pybind11::module_& module);
void register_gang_search(pybind11::module_& module);
void register_graph(pybind11::module_& module);
void register_groups(pybind11::module_& module);
void register_job_traffic(pybind11::module_& module);
void register_least_time(pybind11::module_& module);
void register_machines(pybind11::module_& module);
void register_mapping(pybind11::module_& module);
void register_match(pybind11::module_& module);
void register_partition(pybind11::module_& module);
void register_ports(pybind11::module_& module);
void register_task_groups(pybind11::module_& module);
void register_tree_mapping(pybind11::module_& module);

}  // namespace topoplace::bindings
