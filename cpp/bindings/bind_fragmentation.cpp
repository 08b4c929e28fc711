// Binds the expected fragmentation of machines.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "register.hpp"
#include "topoplace/fragmentation.hpp"

namespace py = pybind11;

template <>
class pybind11::detail::type_caster<topoplace::Fragmentation>
    : public topoplace::bindings::HandleCaster<topoplace::Fragmentation> {};

namespace topoplace::bindings {
namespace {

using Jobs = std::vector<std::tuple<std::int64_t, std::int32_t, std::int32_t, double, std::vector<bool>>>;

std::unique_ptr<Fragmentation> make(const Jobs& jobs, double stranded) {
    std::vector<TypicalJob> typical;
    for (const auto& [cpus, tasks, share, weight, suits] : jobs) {
        typical.push_back({cpus, tasks, share, weight, {suits.begin(), suits.end()}});
    }
    require(Fragmentation::check(typical, stranded));
    return std::make_unique<Fragmentation>(std::move(typical), stranded);
}

struct Machines {
    std::span<const std::int32_t> classes;
    std::span<const std::int64_t> cpus;
    std::span<const std::int32_t> gpus;
    std::size_t width;

    MachineLeft at(std::size_t i) const { return {classes[i], cpus[i], gpus.subspan(i * width, width)}; }
};

Machines machines_of(const Fragmentation& model, const Array<std::int32_t>& classes,
                     const Array<std::int64_t>& cpus, const Array<std::int32_t>& left) {
    check_shape(classes, "classes", {-1});
    check_shape(cpus, "cpus", {classes.shape(0)});
    check_shape(left, "left", {classes.shape(0), -1});
    check_vertices(as_span(classes), "classes", model.num_classes());
    return {as_span(classes), as_span(cpus), as_span(left), static_cast<std::size_t>(left.shape(1))};
}

py::array_t<double> expected(const Fragmentation& model, const Array<std::int32_t>& classes,
                             const Array<std::int64_t>& cpus, const Array<std::int32_t>& left) {
    const Machines machines = machines_of(model, classes, cpus, left);
    py::array_t<double> found(classes.shape(0));
    for (py::ssize_t i = 0; i < found.size(); ++i)
        found.mutable_at(i) = model.expected(machines.at(static_cast<std::size_t>(i)));
    return found;
}

std::pair<py::array_t<double>, py::array_t<std::int32_t>> best_steps(
    const Fragmentation& model, const Array<std::int32_t>& classes, const Array<std::int64_t>& cpus,
    const Array<std::int32_t>& left, std::int64_t needed_cpus, std::int32_t tasks, std::int32_t share,
    bool rounded) {
    const Machines machines = machines_of(model, classes, cpus, left);
    py::array_t<double> scores(classes.shape(0));
    py::array_t<std::int32_t> gpus(classes.shape(0));
    for (py::ssize_t i = 0; i < scores.size(); ++i) {
        const Fragmentation::Step step =
            model.best_step(machines.at(static_cast<std::size_t>(i)), needed_cpus, tasks, share, rounded);
        scores.mutable_at(i) = step.score;
        gpus.mutable_at(i) = step.gpu;
    }
    return {std::move(scores), std::move(gpus)};
}

}  // namespace

void register_fragmentation(py::module_& module) {
    py::class_<Fragmentation>(module, "Fragmentation",
                              "How much of machines' GPUs typical jobs could not use.")
        .def(py::init(&make), py::arg("jobs"), py::arg("stranded") = 0.0,
             "jobs: thousandths of CPUs, GPUs, thousandths of each GPU, weight, and which classes suit. "
             "stranded: "
             "the weight of GPUs that lack of CPUs strands.")
        .def("expected", &expected, py::arg("classes"), py::arg("cpus"), py::arg("left"),
             "(machines,) thousandths of GPUs. classes, cpus: (machines,); left: (machines, GPUs) "
             "thousandths.")
        .def(
            "best_steps", &best_steps, py::arg("classes"), py::arg("cpus"), py::arg("left"),
            py::arg("needed_cpus"), py::arg("tasks"), py::arg("share"), py::arg("rounded"),
            "(machines,) scores of placing a job, -1 where it does not fit, and (machines,) the GPU of a job "
            "that shares one, else -1.");
}

}  // namespace topoplace::bindings
