// Binds the conditions of machines, and their rankings.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"
#include "topoplace/domain_fill.hpp"
#include "topoplace/machine_conditions.hpp"
#include "topoplace/machine_ranking.hpp"

namespace py = pybind11;

template <>
class pybind11::detail::type_caster<topoplace::ClusterState>
    : public topoplace::bindings::HandleCaster<topoplace::ClusterState> {};

namespace topoplace::bindings {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;
using Described =
    std::tuple<std::int32_t, py::int_, std::vector<std::tuple<std::int64_t, std::int64_t, py::int_>>, bool,
               py::typing::Tuple<int, py::ellipsis>, std::int64_t,
               std::vector<std::tuple<std::int32_t, std::uint32_t, std::uint32_t, bool>>>;

py::int_ as_int(const MachineConditions::Words& words) {
    if (words.size() == 1) return py::int_(words[0]);
    py::int_ mask(0);
    for (std::size_t i = words.size(); i > 0; --i)
        mask = py::int_((mask << py::int_(64)) | py::int_(words[i - 1]));
    return mask;
}

std::unique_ptr<MachineConditions> make(const ClusterState& state, Lists gpus_of,
                                        std::vector<std::int32_t> template_of, Lists socket_of,
                                        bool sees_jobs, bool shared, bool sees_gpu_use, bool sees_processes,
                                        bool sees_shares, bool sees_cpus) {
    MachineLayout layout{std::move(gpus_of), std::move(template_of), std::move(socket_of)};
    require(MachineConditions::check(layout, state.num_gpus()));
    return std::make_unique<MachineConditions>(state, std::move(layout),
                                               Sight{.jobs = sees_jobs,
                                                     .gpu_use = sees_gpu_use,
                                                     .processes = sees_processes,
                                                     .machine = !shared,
                                                     .shares = sees_shares,
                                                     .cpus = sees_cpus});
}

std::int32_t condition_of(MachineConditions& conditions, std::int32_t machine) {
    if (machine < 0 || machine >= conditions.num_machines())
        throw py::index_error("machine = " + std::to_string(machine));
    conditions.refresh();
    return conditions.condition_of(machine);
}

py::array_t<std::int32_t> of_machines(MachineConditions& conditions) {
    conditions.refresh();
    std::vector<std::int32_t> numbers;
    for (std::int32_t machine = 0; machine < conditions.num_machines(); ++machine)
        numbers.push_back(conditions.condition_of(machine));
    return to_row(std::move(numbers));
}

std::int32_t known(const MachineConditions& conditions, std::int32_t condition) {
    if (condition < 0 || condition >= conditions.num_conditions())
        throw py::index_error("condition = " + std::to_string(condition));
    return condition;
}

Described describe(const MachineConditions& conditions, std::int32_t number) {
    const MachineConditions::Condition& condition = conditions.condition(known(conditions, number));
    std::vector<std::tuple<std::int64_t, std::int64_t, py::int_>> jobs;
    for (const auto& job : condition.jobs) jobs.emplace_back(job.kind, job.num_gpus, as_int(job.sockets));
    py::tuple left(condition.left.size());
    for (std::size_t i = 0; i < condition.left.size(); ++i) left[i] = condition.left[i];
    std::vector<std::tuple<std::int32_t, std::uint32_t, std::uint32_t, bool>> slices;
    for (const auto& [gpu, slice, is_held] : condition.slices)
        slices.emplace_back(gpu, slice.parts, slice.compute, is_held);
    return {condition.machine_template, as_int(condition.free), std::move(jobs),
            condition.is_used,          std::move(left),        condition.cpus,
            std::move(slices)};
}

// (conditions,) templates and free thousandths of CPUs, and (conditions, most GPUs) thousandths left.
std::tuple<py::array_t<std::int32_t>, py::array_t<std::int64_t>, py::array_t<std::int32_t>> left_of(
    const MachineConditions& conditions, const std::vector<std::int32_t>& numbers) {
    std::size_t width = 0;
    for (const std::int32_t number : numbers)
        width = std::max(width, conditions.condition(known(conditions, number)).left.size());
    const auto count = static_cast<py::ssize_t>(numbers.size());
    py::array_t<std::int32_t> templates(count);
    py::array_t<std::int64_t> cpus(count);
    py::array_t<std::int32_t> left({count, static_cast<py::ssize_t>(width)});
    std::fill(left.mutable_data(), left.mutable_data() + left.size(), 0);
    for (py::ssize_t i = 0; i < count; ++i) {
        const MachineConditions::Condition& one = conditions.condition(numbers[static_cast<std::size_t>(i)]);
        templates.mutable_at(i) = one.machine_template;
        cpus.mutable_at(i) = one.cpus;
        std::copy(one.left.begin(), one.left.end(), left.mutable_data(i, 0));
    }
    return {std::move(templates), std::move(cpus), std::move(left)};
}

std::vector<std::int32_t> machines(const MachineConditions& conditions, std::int32_t number,
                                   std::int64_t cpus, std::int64_t megabytes) {
    std::vector<std::int32_t> found;
    for (const std::int32_t machine : conditions.machines(known(conditions, number))) {
        if (conditions.has(machine, {cpus, megabytes})) found.push_back(machine);
    }
    return found;
}

std::vector<std::int32_t> present(MachineConditions& conditions) {
    conditions.refresh();
    std::vector<std::int32_t> numbers;
    for (std::int32_t number = 0; number < conditions.num_conditions(); ++number) {
        if (!conditions.machines(number).empty()) numbers.push_back(number);
    }
    return numbers;
}

std::vector<std::pair<std::int32_t, std::int32_t>> pairs(const std::vector<MachineRanking::Ranked>& ranked) {
    std::vector<std::pair<std::int32_t, std::int32_t>> found;
    found.reserve(ranked.size());
    for (const auto& one : ranked) found.emplace_back(one.machine, one.condition);
    return found;
}

std::pair<std::int32_t, std::int32_t> best(const MachineRanking& ranking, std::int64_t cpus,
                                           std::int64_t megabytes) {
    const MachineRanking::Ranked found = ranking.best({cpus, megabytes});
    return {found.machine, found.condition};
}

std::vector<std::pair<std::int32_t, std::int32_t>> in_order(const MachineRanking& ranking, std::int32_t count,
                                                            const MachineRanking::Key& last,
                                                            std::int64_t cpus, std::int64_t megabytes) {
    return pairs(ranking.in_order(std::max(count, 0), {cpus, megabytes}, last));
}

std::vector<std::int64_t> free_of_level(const DomainFill& domains, std::int32_t level) {
    if (level < 0 || level >= domains.num_levels()) throw py::index_error("level = " + std::to_string(level));
    return domains.free_of_level(level);
}

std::pair<std::int32_t, std::int32_t> best_by_domain(const MachineRanking& ranking, DomainFill& domains,
                                                     std::size_t prefix, std::int64_t cpus,
                                                     std::int64_t megabytes) {
    const MachineRanking::Ranked found = ranking.best_by_domain(domains, prefix, {cpus, megabytes});
    return {found.machine, found.condition};
}

// None while a condition with machines has no key.
std::optional<std::pair<std::int32_t, std::int32_t>> known_best(MachineRanking& ranking, std::int64_t cpus,
                                                                std::int64_t megabytes) {
    if (!ranking.unknown().empty()) return std::nullopt;
    return best(ranking, cpus, megabytes);
}

std::optional<std::pair<std::int32_t, std::int32_t>> known_best_by_domain(MachineRanking& ranking,
                                                                          DomainFill& domains,
                                                                          std::size_t prefix,
                                                                          std::int64_t cpus,
                                                                          std::int64_t megabytes) {
    if (!ranking.unknown().empty()) return std::nullopt;
    return best_by_domain(ranking, domains, prefix, cpus, megabytes);
}

py::array_t<std::int32_t> up_to(const MachineRanking& ranking, const MachineRanking::Key& last,
                                std::int64_t cpus, std::int64_t megabytes) {
    return to_row(ranking.up_to(last, {cpus, megabytes}));
}

std::optional<MachineRanking::Key> key_of(const MachineRanking& ranking, std::int32_t condition) {
    if (!ranking.knows(condition)) throw py::index_error("condition = " + std::to_string(condition));
    return ranking.key(condition);
}

std::vector<std::pair<std::int32_t, std::int32_t>> first(const MachineRanking& ranking, std::int32_t count,
                                                         std::int64_t cpus, std::int64_t megabytes) {
    return pairs(ranking.first(std::max(count, 0), {cpus, megabytes}));
}

void register_domains(py::module_& module) {
    py::class_<DomainFill>(module, "DomainFill", "How full the domains of each level are.")
        .def(py::init([](MachineConditions& conditions, const Lists& domain_of) {
                 require(DomainFill::check(conditions.num_machines(), domain_of));
                 return std::make_unique<DomainFill>(conditions, domain_of);
             }),
             py::keep_alive<1, 2>(), py::arg("conditions"), py::arg("domain_of"),
             "domain_of: of each level, the outermost first, the domain of each machine.")
        .def("refresh", &DomainFill::refresh)
        .def("free_of_level", &free_of_level, py::arg("level"),
             "The free GPUs of each domain of a level, by number.");
}

void register_ranking(py::module_& module) {
    py::class_<MachineRanking>(module, "MachineRanking", "Machines in the order of their conditions' keys.")
        .def(py::init<MachineConditions&>(), py::keep_alive<1, 2>(), py::arg("conditions"))
        .def("unknown", &MachineRanking::unknown, "The conditions that have machines, but no key yet.")
        .def("set", &MachineRanking::set, py::arg("condition"), py::arg("key"),
             "Sets the key of a condition; None for machines that cannot take the job.")
        .def("key", &key_of, py::arg("condition"), "The key of a condition; None where it has none.")
        .def("best", &best, py::arg("cpus") = -1, py::arg("megabytes") = -1,
             "(machine, condition) of the smallest key among machines with these amounts free, or (-1, -1).")
        .def("best_by_domain", &best_by_domain, py::arg("domains"), py::arg("prefix"), py::arg("cpus") = -1,
             py::arg("megabytes") = -1,
             "As best, but of machines whose keys begin with the same `prefix` numbers, those in the fullest "
             "domains come first, and then those of the smallest key.")
        .def("known_best", &known_best, py::arg("cpus"), py::arg("megabytes"),
             "As best; None while a condition with machines has no key.")
        .def("known_best_by_domain", &known_best_by_domain, py::arg("domains"), py::arg("prefix"),
             py::arg("cpus"), py::arg("megabytes"), "As best_by_domain, and as known_best.")
        .def("in_order", &in_order, py::arg("count"), py::arg("last"), py::arg("cpus") = -1,
             py::arg("megabytes") = -1,
             "(machine, condition) of the first `count` machines with these amounts free and no key above "
             "`last`, by key, then by number.")
        .def("up_to", &up_to, py::arg("last"), py::arg("cpus") = -1, py::arg("megabytes") = -1,
             "(n,) all machines with these amounts free and no key above `last`, ascending.")
        .def("counts", &MachineRanking::counts, "(key, number of machines) of each key, ascending.")
        .def(
            "first", &first, py::arg("count"), py::arg("cpus") = -1, py::arg("megabytes") = -1,
            "(machine, condition) for the first conditions: of each, the lowest machine with these amounts.");
}

}  // namespace

void register_machines(py::module_& module) {
    py::class_<MachineConditions>(module, "MachineConditions",
                                  "Machines grouped by template, free GPUs and, if wanted, jobs.")
        .def(py::init(&make), py::keep_alive<1, 2>(), py::arg("state"), py::arg("gpus_of"),
             py::arg("template_of"), py::arg("socket_of"), py::arg("sees_jobs"), py::arg("shared") = true,
             py::arg("sees_gpu_use") = false, py::arg("sees_processes") = false,
             py::arg("sees_shares") = false, py::arg("sees_cpus") = false,
             "gpus_of, template_of: of each machine. socket_of: of each template, the socket of each GPU. "
             "sees_jobs: machines with other jobs are in another condition. shared: machines may share one. "
             "sees_gpu_use, sees_processes: machines with and without jobs on their GPUs, or processes, are "
             "in "
             "different ones. sees_shares, sees_cpus: so are machines with other amounts left of a GPU, or "
             "other "
             "free CPUs.")
        .def_property_readonly("generation", &MachineConditions::generation,
                               "Increases when all conditions are renumbered.")
        .def("present", &present, "The conditions that have machines, ascending.")
        .def("condition_of", &condition_of, py::arg("machine"))
        .def("of_machines", &of_machines, "(machines,) the condition of each machine.")
        .def("describe", &describe, py::arg("condition"),
             "(template, mask of free GPUs, jobs, whether a job uses it); a job is its kind, number of GPUs "
             "and mask of sockets. Then the thousandths left of each GPU, () where shares are not seen, and "
             "the "
             "free thousandths of CPUs, 0 where these are not seen, and each slice: its GPU, parts, compute "
             "slices "
             "and whether a job holds it.")
        .def("left_of", &left_of, py::arg("conditions"),
             "Of each of these conditions: template, free thousandths of CPUs, and (conditions, GPUs) "
             "thousandths "
             "left of each GPU, 0 beyond the last; where the conditions do not see these, they are 0 or "
             "missing.")
        .def("machines", &machines, py::arg("condition"), py::arg("cpus") = -1, py::arg("megabytes") = -1,
             "The machines in this condition with at least these amounts free, ascending.");

    register_domains(module);
    register_ranking(module);
}

}  // namespace topoplace::bindings
