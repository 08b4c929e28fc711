// Binds networks that are kept and changed between solutions.
#include <pybind11/stl.h>

#include <atomic>

#include "convert.hpp"
#include "flow_convert.hpp"
#include "register.hpp"
#include "topoplace/flow_network.hpp"

namespace py = pybind11;

namespace topoplace::bindings {

// One thread at a time: `solve` runs without the GIL.
class SharedNetwork {
  public:
    // Applies `use` to the network; RuntimeError while another thread uses it.
    template <class Use>
    auto with(Use&& use) {
        if (busy_.test_and_set()) throw std::runtime_error("the network is in use in another thread");
        const Free free{busy_};
        return use(network_);
    }

  private:
    struct Free {
        std::atomic_flag& busy;
        ~Free() { busy.clear(); }
    };
    flow::FlowNetwork network_;
    std::atomic_flag busy_;
};

}  // namespace topoplace::bindings

template <>
class pybind11::detail::type_caster<topoplace::bindings::SharedNetwork>
    : public topoplace::bindings::HandleCaster<topoplace::bindings::SharedNetwork> {};

namespace topoplace::bindings {
namespace {

using flow::FlowNetwork;
using Units = Array<std::int64_t>;
using Ends = Array<std::int32_t>;

Indices add_arcs(SharedNetwork& shared, const Ends& tail, const Ends& head, const Units& capacity,
                 const Units& cost) {
    return to_row(shared.with([&](FlowNetwork& network) {
        std::vector<std::int32_t> arcs;
        require(network.add_arcs(as_span(tail), as_span(head), as_span(capacity), as_span(cost), arcs));
        return arcs;
    }));
}

template <class T>
Array<T> copied(std::span<const T> values) {
    return Array<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

// Tail, head, capacity, cost, supply.
using Columns = py::typing::Tuple<Ends, Ends, Units, Units, Units>;

Columns columns(SharedNetwork& shared) {
    return shared.with([](const FlowNetwork& network) -> Columns {
        const flow::Network view = network.network();
        return py::make_tuple(copied(view.tail), copied(view.head), copied(view.capacity), copied(view.cost),
                              copied(view.supply));
    });
}

FlowAnswer solve(SharedNetwork& shared, const std::string& algorithm, std::optional<double> timeout,
                 std::optional<std::uint64_t> max_nodes) {
    flow::FlowParams params;
    params.algorithm = to_algorithm(algorithm);
    params.stop = to_stop_condition(timeout, max_nodes);
    return shared.with([&](FlowNetwork& network) {
        return to_answer(without_gil<flow::FlowResult>([&] { return network.solve(params); }));
    });
}

// A method of the network that takes rows of numbers.
template <class... Rows>
auto change(Fault (FlowNetwork::*method)(std::span<const Rows>...)) {
    return [method](SharedNetwork& shared, const Array<Rows>&... rows) {
        shared.with([&](FlowNetwork& network) { require((network.*method)(as_span(rows)...)); });
    };
}

template <class Value>
auto reading(Value (FlowNetwork::*method)() const) {
    return [method](SharedNetwork& shared) {
        return shared.with([&](const FlowNetwork& network) { return (network.*method)(); });
    };
}

}  // namespace

void register_flow_network(py::module_& module) {
    py::class_<SharedNetwork>(module, "FlowNetwork", "A network that is kept and changed between solutions.")
        .def(py::init<>())
        .def("add_nodes",
             [](SharedNetwork& shared, const Units& supply) {
                 std::vector<std::int32_t> nodes;
                 shared.with(
                     [&](FlowNetwork& network) { require(network.add_nodes(as_span(supply), nodes)); });
                 return to_row(std::move(nodes));
             })
        .def("add_arcs", &add_arcs)
        .def("remove_nodes", change(&FlowNetwork::remove_nodes))
        .def("remove_arcs", change(&FlowNetwork::remove_arcs))
        .def("set_supply", change(&FlowNetwork::set_supply))
        .def("set_capacity", change(&FlowNetwork::set_capacity))
        .def("set_cost", change(&FlowNetwork::set_cost))
        .def_property_readonly("num_nodes", reading(&FlowNetwork::num_nodes))
        .def_property_readonly("num_arcs", reading(&FlowNetwork::num_arcs))
        .def_property_readonly("version", reading(&FlowNetwork::version))
        .def("columns", &columns)
        .def("solve", &solve);
}

}  // namespace topoplace::bindings
