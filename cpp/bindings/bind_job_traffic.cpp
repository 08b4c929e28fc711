// Binds what the collectives of a job send, and how long it takes.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace topoplace::bindings {
namespace {

using traffic::CollectiveNetwork;
using traffic::JobFlows;
using Ints = Array<std::int32_t>;
using Longs = Array<std::int64_t>;
using Reals = Array<double>;
using Flags = Array<std::uint8_t>;
// Seconds, collective, one of its vertices, whether switches reduce.
using Rings = std::tuple<double, std::int64_t, std::int32_t, bool>;
// Seconds of ports, the slowest hop, port-seconds; the slowest rings.
using PhaseRow = std::tuple<double, std::int32_t, double, Rings>;

template <class T>
std::vector<T> copy_of(const Array<T>& array) {
    const auto values = as_span(array);
    return {values.begin(), values.end()};
}

std::unique_ptr<CollectivesHandle> make_collectives(const Longs& phase_ends, const Flags& kinds,
                                                    const Longs& ends, const Ints& tasks,
                                                    const Reals& gigabytes, const Reals& received,
                                                    const Longs& batch_ends) {
    return std::make_unique<CollectivesHandle>(
        CollectivesHandle{copy_of(phase_ends), copy_of(ends), copy_of(kinds), copy_of(tasks),
                          copy_of(gigabytes), copy_of(received), copy_of(batch_ends)});
}

// Kind, (c, n) tasks, (c) GB, (c, n) GB received or None.
using BatchRow = std::tuple<std::uint8_t, Array<std::int64_t>, Array<double>, std::optional<Array<double>>>;

traffic::Batch batch_of(const BatchRow& row) {
    const auto& [kind, tasks, gigabytes, received] = row;
    if (kind > static_cast<std::uint8_t>(traffic::Kind::kSends))
        throw std::invalid_argument("an unknown kind");
    check_shape(tasks, "tasks", {gigabytes.size(), -1});
    if (received) check_shape(*received, "received", {tasks.shape(0), tasks.shape(1)});
    return {.kind = static_cast<traffic::Kind>(kind),
            .size = static_cast<std::size_t>(tasks.shape(1)),
            .tasks = as_span(tasks),
            .gigabytes = as_span(gigabytes),
            .received = received ? as_span(*received) : std::span<const double>()};
}

std::unique_ptr<CollectivesHandle> of_batches(const std::vector<std::vector<BatchRow>>& phases) {
    std::vector<std::vector<traffic::Batch>> made;
    for (const auto& rows : phases) {
        made.emplace_back();
        for (const BatchRow& row : rows) made.back().push_back(batch_of(row));
    }
    return std::make_unique<CollectivesHandle>(traffic::joined(made));
}

// Each edge (a, b, GB) is a send; all are in one phase.
std::unique_ptr<CollectivesHandle> of_sends(
    const std::vector<std::tuple<std::int32_t, std::int32_t, double>>& edges) {
    std::vector<std::int64_t> tasks;
    std::vector<double> gigabytes;
    for (const auto& [a, b, carried] : edges) {
        tasks.insert(tasks.end(), {a, b});
        gigabytes.push_back(carried);
    }
    std::vector<std::vector<traffic::Batch>> phases;
    if (!edges.empty()) phases.push_back({{.size = 2, .tasks = tasks, .gigabytes = gigabytes}});
    return std::make_unique<CollectivesHandle>(traffic::joined(phases));
}

// The number of the kind, the tasks in their order, GB between neighbours.
using OnlyRing = std::tuple<std::uint8_t, std::vector<std::int32_t>, double>;

std::optional<OnlyRing> only_ring(const CollectivesHandle& job, std::size_t num_tasks) {
    const bool is_only = job.kinds.size() == 1 && job.tasks.size() == num_tasks;
    if (!is_only || !traffic::is_ring(static_cast<traffic::Kind>(job.kinds[0]))) return std::nullopt;
    return OnlyRing(job.kinds[0], job.tasks, job.gigabytes[0]);
}

// places: machine, local, domain, adapter, rail, near, switches. rings: switched, reduced, most_reduced.
std::unique_ptr<CollectiveNetwork> make_collective_network(
    const ports::PortNetwork& network, const std::vector<Ints>& places, const std::vector<Reals>& rings,
    const Flags& has_links, const Ints& rates_of, const std::vector<const collective::RingRates*>& rates) {
    if (places.size() != 7 || rings.size() != 3) throw std::invalid_argument("places or rings are missing");
    const traffic::CollectiveNetworkParams params{.machine = as_span(places[0]),
                                                  .local = as_span(places[1]),
                                                  .domain = as_span(places[2]),
                                                  .adapter = as_span(places[3]),
                                                  .rail = as_span(places[4]),
                                                  .near = as_span(places[5]),
                                                  .switches = as_span(places[6]),
                                                  .switched = as_span(rings[0]),
                                                  .reduced = as_span(rings[1]),
                                                  .most_reduced = as_span(rings[2]),
                                                  .has_links = as_span(has_links),
                                                  .rates_of = as_span(rates_of),
                                                  .rates = rates};
    require(CollectiveNetwork::check(network, params));
    return std::make_unique<CollectiveNetwork>(network, params);
}

Rings row_of(const JobFlows::Rings& rings) {
    return {rings.seconds, rings.collective, rings.vertex, rings.by_switches};
}

std::vector<PhaseRow> traffic_times(const CollectiveNetwork& network, const CollectivesHandle& job,
                                    const Ints& vertex_of, bool planned, const py::object& beside) {
    const ports::FlowCounts* const others = others_of(beside);
    JobFlows flows;
    const auto times = without_gil<std::vector<ports::PhaseTime>>([&] {
        require(traffic::check(network, job.view(), as_span(vertex_of)));
        flows = traffic::flows_of(network, job.view(), as_span(vertex_of), planned);
        return ports::phase_times(network.ports(), flows.phase_ends, flows.flows(), others);
    });
    std::vector<PhaseRow> rows;
    for (std::size_t i = 0; i < times.size(); ++i) {
        const ports::PhaseTime& one = times[i];
        rows.emplace_back(one.seconds, one.slowest, one.port_seconds, row_of(flows.rings[i]));
    }
    return rows;
}

// Seconds of a job alone, and beside others.
std::pair<double, double> seconds_of(const CollectiveNetwork& network, const CollectivesHandle& job,
                                     const Ints& vertex_of, const py::object& beside) {
    const ports::FlowCounts* const others = others_of(beside);
    return without_gil<std::pair<double, double>>([&] {
        require(traffic::check(network, job.view(), as_span(vertex_of)));
        const JobFlows flows = traffic::flows_of(network, job.view(), as_span(vertex_of));
        const double alone = traffic::time_of(network, flows).seconds;
        return std::pair(alone, others == nullptr ? alone : traffic::time_of(network, flows, others).seconds);
    });
}

// Phase ends, from, to, there, back, the slowest rings of each phase.
std::tuple<std::vector<std::int64_t>, py::array_t<std::int32_t>, py::array_t<std::int32_t>,
           py::array_t<double>, py::array_t<double>, std::vector<Rings>>
flows_of(const CollectiveNetwork& network, const CollectivesHandle& job, const Ints& vertex_of,
         bool planned) {
    auto found = without_gil<JobFlows>([&] {
        require(traffic::check(network, job.view(), as_span(vertex_of)));
        return traffic::flows_of(network, job.view(), as_span(vertex_of), planned);
    });
    std::vector<Rings> rings;
    for (const JobFlows::Rings& one : found.rings) rings.push_back(row_of(one));
    return {std::move(found.phase_ends),    to_row(std::move(found.from)), to_row(std::move(found.to)),
            to_row(std::move(found.there)), to_row(std::move(found.back)), std::move(rings)};
}

}  // namespace

void register_job_traffic(py::module_& module) {
    py::class_<CollectivesHandle>(module, "JobCollectives", "What the tasks of a job exchange.")
        .def(py::init(&make_collectives), py::arg("phase_ends").noconvert(), py::arg("kinds").noconvert(),
             py::arg("ends").noconvert(), py::arg("tasks").noconvert(), py::arg("gigabytes").noconvert(),
             py::arg("received").noconvert(), py::arg("batch_ends").noconvert())
        .def_static(
            "of_batches", &of_batches, py::arg("phases"),
            "phases: of each phase its batches: kind, (c, n) tasks, (c,) GB, and (c, n) GB received or "
            "None.")
        .def_static("of_sends", &of_sends, py::arg("edges"),
                    "edges: (a, b, GB) of each send; all run at the same time.")
        .def("only_ring", &only_ring, py::arg("num_tasks"),
             "The kind, the tasks, and GB between neighbours of the only collective if that is a ring of all "
             "tasks; else None.");
    py::class_<CollectiveNetwork>(module, "CollectiveNetwork", "Ports, and the rings among their vertices.")
        .def(py::init(&make_collective_network), py::keep_alive<1, 2>(), py::keep_alive<1, 7>(),
             py::arg("network"), py::arg("places"), py::arg("rings"), py::arg("has_links").noconvert(),
             py::arg("rates_of").noconvert(), py::arg("rates"));
    module.def("traffic_times", &traffic_times, py::arg("network"), py::arg("job"),
               py::arg("vertex_of").noconvert(), py::arg("planned"), py::arg("others"));
    module.def("seconds_of", &seconds_of, py::arg("network"), py::arg("job"),
               py::arg("vertex_of").noconvert(), py::arg("others"),
               "Seconds of the job alone, and beside others.");
    module.def("flows_of", &flows_of, py::arg("network"), py::arg("job"), py::arg("vertex_of").noconvert(),
               py::arg("planned"));
}

}  // namespace topoplace::bindings
