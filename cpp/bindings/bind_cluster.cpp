// Binds the state of a cluster.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "register.hpp"
#include "topoplace/cluster_state.hpp"

namespace py = pybind11;

template <>
class pybind11::detail::type_caster<topoplace::ClusterState>
    : public topoplace::bindings::HandleCaster<topoplace::ClusterState> {};

namespace topoplace::bindings {
namespace {

using IntTuple = py::typing::Tuple<int, py::ellipsis>;

IntTuple as_tuple(const std::vector<std::int32_t>& values) {
    py::tuple result(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) result[i] = values[i];
    return result;
}

std::int32_t known(const ClusterState& state, std::int32_t gpu) {
    if (!state.knows(gpu)) throw py::index_error("gpu = " + std::to_string(gpu));
    return gpu;
}

std::uint64_t num_changes(const ClusterState& state) { return state.changes().end(); }

std::optional<IntTuple> changed_since(const ClusterState& state, std::uint64_t position) {
    if (position > num_changes(state)) throw py::index_error("position = " + std::to_string(position));
    const auto found = state.changes().since(position);
    if (!found) return std::nullopt;
    return as_tuple(std::vector(found->begin(), found->end()));
}

std::optional<std::string> owner(const ClusterState& state, std::int32_t gpu) {
    const ClusterState::Job* job = state.owner(known(state, gpu));
    return job == nullptr ? std::nullopt : std::optional(job->first);
}

using Held = py::typing::Dict<py::str, IntTuple>;

py::typing::Tuple<IntTuple, Held> occupants(const ClusterState& state,
                                            const std::vector<std::int32_t>& gpus) {
    std::vector<std::int32_t> free;
    std::map<std::string, std::vector<std::int32_t>> held;
    for (const std::int32_t gpu : gpus) {
        const ClusterState::Job* job = state.owner(known(state, gpu));
        if (job != nullptr) held[job->first].push_back(gpu);
        for (const auto& sharer : state.sharers(gpu)) held[sharer.job->first].push_back(gpu);
        for (const auto& entry : state.slices(gpu)) {
            if (entry.job != nullptr) held[entry.job->first].push_back(gpu);
        }
        if (state.is_free(gpu)) free.push_back(gpu);
    }
    Held by_job;
    for (const auto& [job, its] : held) by_job[py::str(job)] = as_tuple(its);
    return py::make_tuple(as_tuple(free), by_job);
}

// Thousandths by job, in the order of their allocation; for a slice, those of the memory that it takes.
py::typing::Dict<py::str, int> shares_of(const ClusterState& state, std::int32_t gpu) {
    const auto found = state.sharers(known(state, gpu));
    std::vector<GpuShares<ClusterState::Job>::Holder> sharers(found.begin(), found.end());
    if (const ClusterState::Job* job = state.owner(gpu)) sharers.push_back({job, kWholeGpu});
    for (const auto& entry : state.slices(gpu)) {
        if (entry.job != nullptr) sharers.push_back({entry.job, entry.slice.eighths() * kWholeGpu / 8});
    }
    std::sort(sharers.begin(), sharers.end(),
              [](const auto& a, const auto& b) { return a.job->second.sequence < b.job->second.sequence; });
    py::typing::Dict<py::str, int> result;
    for (const auto& [job, share] : sharers) result[py::str(job->first)] = share;
    return result;
}

IntTuple gpus_with(const ClusterState& state, std::int32_t share) {
    std::vector<std::int32_t> found;
    for (std::int32_t gpu = 0; gpu < state.num_gpus(); ++gpu) {
        if (state.share_left(gpu) >= share) found.push_back(gpu);
    }
    return as_tuple(found);
}

using Slices = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // parts and compute of each

std::vector<MigSlice> slices_from(const Slices& given) {
    std::vector<MigSlice> slices;
    for (const auto& [parts, compute] : given) slices.push_back({parts, compute});
    return slices;
}

std::vector<std::tuple<std::uint32_t, std::uint32_t, std::optional<std::string>>> slices(
    const ClusterState& state, std::int32_t gpu) {
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::optional<std::string>>> found;
    for (const auto& [slice, job] : state.slices(known(state, gpu)))
        found.emplace_back(slice.parts, slice.compute,
                           job == nullptr ? std::nullopt : std::optional(job->first));
    return found;
}

Slices slices_of(const ClusterState& state, const std::string& job) {
    Slices found;
    if (const ClusterState::Job* held = state.find(job)) {
        for (const MigSlice& slice : held->second.slices) found.emplace_back(slice.parts, slice.compute);
    }
    return found;
}

IntTuple gpus_of(const ClusterState& state, const std::string& job) {
    const ClusterState::Job* found = state.find(job);
    return found == nullptr ? py::tuple() : as_tuple(found->second.gpus);
}

Held allocations(const ClusterState& state) {
    Held result;
    for (const ClusterState::Job* job : state.jobs()) {
        if (!job->second.gpus.empty()) result[py::str(job->first)] = as_tuple(job->second.gpus);
    }
    return result;
}

std::vector<std::string> job_ids(const ClusterState& state) {
    std::vector<std::string> ids;
    for (const ClusterState::Job* job : state.jobs()) ids.push_back(job->first);
    return ids;
}

// ---- host resources
// ------------------------------------------------------------------------------------------------

using Capacity = std::vector<HostState::Amounts>;
using Processes = std::vector<std::tuple<std::int32_t, std::int64_t, std::int64_t>>;

HostNeeds host_needs(const Processes& processes, std::vector<std::int32_t> drives) {
    HostNeeds needs{{}, std::move(drives)};
    for (const auto& [machine, cpus, megabytes] : processes)
        needs.processes.push_back({machine, cpus, megabytes});
    return needs;
}

// Objects are released under the lock: every path that ends a note is a call from Python.
ClusterState::Note note_of(const py::object& object) {
    return {new py::object(object), [](const void* held) { delete static_cast<const py::object*>(held); }};
}

py::object note(const ClusterState& state, const std::string& job) {
    const ClusterState::Job* found = state.find(job);
    if (found == nullptr || found->second.note == nullptr) return py::none();
    return *static_cast<const py::object*>(found->second.note.get());
}

// A read-only array over the memory of the state, which it keeps alive.
py::array_t<std::int64_t> read_only(ClusterState& state, std::vector<py::ssize_t> shape,
                                    const std::int64_t* data) {
    py::array_t<std::int64_t> array(std::move(shape), data, py::cast(&state));
    array.attr("flags").attr("writeable") = false;
    return array;
}

py::array_t<std::int64_t> host_free(ClusterState& state) {
    const auto free = state.hosts().free();
    return read_only(state, {static_cast<py::ssize_t>(free.size()), 3},
                     reinterpret_cast<const std::int64_t*>(free.data()));
}

py::array_t<std::int64_t> num_processes(ClusterState& state) {
    const auto counts = state.hosts().num_processes();
    return read_only(state, {static_cast<py::ssize_t>(counts.size())}, counts.data());
}

// The machines whose withdrawal is such.
template <class Test>
std::vector<std::int32_t> machines_with(const ClusterState& state, const Test& test) {
    std::vector<std::int32_t> found;
    for (std::int32_t machine = 0; machine < state.hosts().num_machines(); ++machine) {
        if (test(state.hosts().withdrawal(machine))) found.push_back(machine);
    }
    return found;
}

// Reasons by GPU and by machine.
std::pair<py::typing::Dict<int, py::str>, py::typing::Dict<int, py::str>> held(const ClusterState& state) {
    std::pair<py::typing::Dict<int, py::str>, py::typing::Dict<int, py::str>> found;
    for (const auto& [reason, its] : state.held_back()) {
        const py::str text(reason.data(), reason.size());
        for (const std::int32_t gpu : its.gpus) found.first[py::int_(gpu)] = text;
        for (const std::int32_t machine : its.machines) found.second[py::int_(machine)] = text;
    }
    return found;
}

std::int32_t known_machine(const ClusterState& state, std::int32_t machine) {
    if (machine < 0 || machine >= state.hosts().num_machines())
        throw py::index_error("machine = " + std::to_string(machine));
    return machine;
}

using Numbers = std::vector<std::int32_t>;

void check_known(const ClusterState& state, const Numbers& gpus, const Numbers& machines) {
    for (const std::int32_t gpu : gpus) static_cast<void>(known(state, gpu));
    for (const std::int32_t machine : machines) static_cast<void>(known_machine(state, machine));
}

// ---- changes
// -------------------------------------------------------------------------------------------------------

ClusterState restore(const py::bytes& snapshot, std::int32_t num_gpus, std::vector<std::int32_t> first_gpu,
                     Capacity capacity) {
    Fault fault;
    auto state = ClusterState::restore(std::string_view(snapshot), num_gpus,
                                       {std::move(first_gpu), std::move(capacity)}, fault);
    require(fault);
    return *std::move(state);
}

std::pair<std::string_view, std::int32_t> allocate(ClusterState& state, const std::string& job,
                                                   const std::vector<std::int32_t>& gpus,
                                                   const Processes& processes,
                                                   std::vector<std::int32_t> drives, const py::object& kept,
                                                   std::int64_t kind, std::int32_t share,
                                                   const Slices& slices, bool may_reslice, bool runs) {
    if (share < 1 || share > kWholeGpu) throw py::value_error("share = " + std::to_string(share));
    if (!slices.empty() && (slices.size() != gpus.size() || share != kWholeGpu))
        throw py::value_error("slices: one for each GPU, and no share");
    GpuParts parts{share, slices_from(slices), may_reslice, runs};
    for (const MigSlice& slice : parts.slices) {
        if (slice.eighths() == 0 || (slice.parts & ~MigSlice::kAll) != 0)
            throw py::value_error("slices: parts = " + std::to_string(slice.parts));
    }
    const AllocationResult result = state.allocate(job, gpus, host_needs(processes, std::move(drives)),
                                                   note_of(kept), kind, std::move(parts));
    return {name(result.status), result.position};
}

std::string_view release(ClusterState& state, const std::string& job) {
    return name(state.release(job).status);
}

std::string_view attach(ClusterState& state, const std::string& job, const Processes& processes,
                        std::vector<std::int32_t> drives, const py::object& kept, std::int64_t kind) {
    return name(state.attach(job, host_needs(processes, std::move(drives)), note_of(kept), kind).status);
}

// The context manager of a block whose changes are undone, always or where it ends with an exception.
//
// It is native so that no interrupt can come between the end of the block and the rollback: Python handles
// signals only between its own instructions.
class Transaction {
  public:
    Transaction(py::object cluster, ClusterState& state, bool always_undo)
        : cluster_(std::move(cluster)), state_(&state), always_undo_(always_undo) {}

    py::object enter() {
        if (mark_) throw std::runtime_error("the transaction is already open");
        mark_ = state_->begin();
        return cluster_;
    }

    void exit(const py::object& kind, const py::object&, const py::object&) {
        if (!mark_) throw std::runtime_error("the transaction is not open");
        const ClusterState::Mark mark = *std::exchange(mark_, std::nullopt);
        if (!always_undo_ && kind.is_none()) return state_->commit();
        state_->rollback(mark);
    }

  private:
    py::object cluster_;
    ClusterState* state_;  // kept alive by the binding
    bool always_undo_;
    std::optional<ClusterState::Mark> mark_;  // while open
};

}  // namespace

namespace {

void register_shares(py::class_<ClusterState>& bound) {
    bound
        .def_property_readonly("num_divided", &ClusterState::num_divided,
                               "The number of GPUs that jobs share or that are cut into slices.")
        .def("shares_of", &shares_of, py::arg("gpu"),
             "Thousandths of the GPU by job, in order of allocation.")
        .def(
            "share_left",
            [](const ClusterState& state, std::int32_t gpu) { return state.share_left(known(state, gpu)); },
            py::arg("gpu"), "The thousandths of the GPU that a new job can get.")
        .def(
            "slices", &slices, py::arg("gpu"),
            "(parts, compute slices, job or None) of each slice of the GPU; parts: bit i for the i-th eighth "
            "of its memory, bit 8 for the media engines.")
        .def(
            "sliced_gpus", [](const ClusterState& state) { return as_tuple(state.sliced_gpus()); },
            "The GPUs that are cut into slices, ascending.")
        .def("slices_of", &slices_of, py::arg("job"), "(parts, compute slices) of each of its GPUs, or none.")
        .def(
            "set_slices",
            [](ClusterState& state, std::int32_t gpu, const Slices& slices) {
                return name(state.set_slices(known(state, gpu), slices_from(slices)).status);
            },
            py::arg("gpu"), py::arg("slices"), "Cuts a GPU into slices, or makes it whole; returns a status.")
        .def("gpus_with", &gpus_with, py::arg("share"), "GPUs with this many thousandths left, ascending.");
}

void register_hosts(py::class_<ClusterState>& bound) {
    bound.def_property_readonly("host_free", &host_free, "(machines, 3) CPUs, MB and drives; a view.")
        .def_property_readonly("num_processes", &num_processes, "(machines,) processes; a view.")
        .def(
            "accepts_processes",
            [](const ClusterState& state, std::int32_t machine) {
                return state.hosts().accepts(known_machine(state, machine));
            },
            py::arg("machine"))
        .def(
            "withdrawn_machines",
            [](const ClusterState& state) {
                return machines_with(state, [](const Withdrawal& its) { return !its.in_service(); });
            },
            "Machines that accept no processes, ascending.")
        .def(
            "drained_machines",
            [](const ClusterState& state) {
                return machines_with(state, [](const Withdrawal& its) { return its.drained; });
            },
            "Ascending.");
}

// All check numbers first, so that nothing has changed where one is unknown.
void register_service(py::class_<ClusterState>& bound) {
    bound
        .def(
            "out_of_service", [](const ClusterState& state) { return as_tuple(state.out_of_service()); },
            "The GPUs that no new job gets: drained, held or unhealthy; ascending.")
        .def("drained_gpus", [](const ClusterState& state) { return as_tuple(state.drained_gpus()); })
        .def("held", &held, "The reasons to hold GPUs by GPU, and those to hold machines by machine.")
        .def(
            "drain",
            [](ClusterState& state, const Numbers& gpus, const Numbers& machines) {
                check_known(state, gpus, machines);
                return state.drain(gpus, machines);
            },
            py::arg("gpus"), py::arg("machines") = Numbers())
        .def(
            "undrain",
            [](ClusterState& state, const Numbers& gpus, const Numbers& machines) {
                check_known(state, gpus, machines);
                return state.undrain(gpus, machines);
            },
            py::arg("gpus"), py::arg("machines") = Numbers())
        .def(
            "hold",
            [](ClusterState& state, const std::string& reason, const Numbers& gpus, const Numbers& machines) {
                check_known(state, gpus, machines);
                require(state.check_reason(reason));
                return state.hold(reason, gpus, machines);
            },
            py::arg("reason"), py::arg("gpus"), py::arg("machines") = Numbers())
        .def(
            "unhold",
            [](ClusterState& state, const Numbers& gpus, const Numbers& machines) {
                check_known(state, gpus, machines);
                return state.unhold(gpus, machines);
            },
            py::arg("gpus"), py::arg("machines") = Numbers())
        .def(
            "set_unhealthy",
            [](ClusterState& state, const Numbers& gpus, bool unhealthy) {
                check_known(state, gpus, {});
                return state.set_unhealthy(gpus, unhealthy);
            },
            py::arg("gpus"), py::arg("unhealthy"));
}

void register_transaction(py::module_& module) {
    py::class_<Transaction>(module, "Transaction", "A block whose changes to a cluster are undone.")
        .def(py::init<py::object, ClusterState&, bool>(), py::keep_alive<1, 3>(), py::arg("cluster"),
             py::arg("state"), py::arg("always_undo"),
             "always_undo: also where the block ends without an exception.")
        .def("__enter__", &Transaction::enter)
        .def("__exit__", &Transaction::exit, py::arg("kind"), py::arg("value"), py::arg("traceback"));
}

}  // namespace

void register_cluster(py::module_& module) {
    py::class_<ClusterState> bound(module, "ClusterState",
                                   "Which job holds which GPU; see topoplace.Cluster.");
    bound
        .def(py::init([](std::int32_t num_gpus, std::vector<std::int32_t> first_gpu, Capacity capacity) {
                 Machines machines{std::move(first_gpu), std::move(capacity)};
                 require(ClusterState::check(num_gpus, machines));
                 return std::make_unique<ClusterState>(num_gpus, std::move(machines));
             }),
             py::arg("num_gpus"), py::arg("first_gpu") = std::vector<std::int32_t>(),
             py::arg("capacity") = Capacity(),
             "first_gpu: a GPU of each machine; capacity: its CPUs, MB and drives, or none for no limits.")
        .def_property_readonly("num_gpus", &ClusterState::num_gpus)
        .def_property_readonly("num_free", &ClusterState::num_free)
        .def_property_readonly("num_jobs", &ClusterState::num_jobs)
        .def_property_readonly("num_changes", &num_changes,
                               "Rises with every change, also when it is undone.")
        .def("free_gpus", [](const ClusterState& state) { return as_tuple(state.free_gpus()); })
        .def("owner", &owner, py::arg("gpu"), "The job that holds the whole GPU, or None.")
        .def("occupants", &occupants, py::arg("gpus"),
             "Of these GPUs, the free ones, and those that jobs hold by job, jobs in the order of their ids.")
        .def("gpus_of", &gpus_of, py::arg("job"), "The GPUs of a job in task order; () where it holds none.")
        .def("allocations", &allocations, "GPUs in task order by job, in the order of allocation.")
        .def("job_ids", &job_ids, "All jobs, in the order of allocation.")
        .def("note", &note, py::arg("job"), "The object kept with the job, or None.")
        .def("changed_since", &changed_since, py::arg("position"),
             "GPUs that may have changed since `num_changes` was `position`, and one of each machine whose "
             "hosts "
             "did, oldest first and repeated; None if so many have changed that the first are forgotten.")
        .def("allocate", &allocate, py::arg("job"), py::arg("gpus"), py::arg("processes") = Processes(),
             py::arg("drives") = std::vector<std::int32_t>(), py::arg("note") = py::none(),
             py::arg("kind") = 0, py::arg("share") = kWholeGpu, py::arg("slices") = Slices(),
             py::arg("may_reslice") = false, py::arg("runs") = false,
             "(status, position of the first GPU refused or -1); the state changes only where the status is "
             "ok. share: thousandths of each GPU. slices: the parts and compute slices of one slice of each "
             "GPU, or "
             "none. may_reslice: its GPUs may be sliced otherwise, idle slices given up. runs: it runs "
             "already, so "
             "that GPUs and machines may be out of service. processes: machine, "
             "CPUs and MB of each. drives: the "
             "machine of each.")
        .def("attach", &attach, py::arg("job"), py::arg("processes"), py::arg("drives"), py::arg("note"),
             py::arg("kind") = 0,
             "Gives a job of a restored state its host resources and note; returns a status.")
        .def("release", &release, py::arg("job"))
        .def("snapshot", [](const ClusterState& state) { return py::bytes(state.snapshot()); })
        .def_static("restore", &restore, py::arg("snapshot"), py::arg("num_gpus"),
                    py::arg("first_gpu") = std::vector<std::int32_t>(), py::arg("capacity") = Capacity(),
                    "ValueError for bytes that are no snapshot of a cluster of that size.")
        .def("copy", [](const ClusterState& state) { return std::make_unique<ClusterState>(state); });

    register_shares(bound);
    register_hosts(bound);
    register_service(bound);
    register_transaction(module);
}

}  // namespace topoplace::bindings
