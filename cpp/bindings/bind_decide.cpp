// Binds the sets of a machine's GPUs that a job may get.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "handles.hpp"
#include "register.hpp"
#include "topoplace/condition_sets.hpp"
#include "topoplace/machine_ranking.hpp"
#include "topoplace/machine_sets.hpp"

namespace py = pybind11;

template <>
class pybind11::detail::type_caster<topoplace::collective::RatedSets>
    : public topoplace::bindings::HandleCaster<topoplace::collective::RatedSets> {};

namespace topoplace::bindings {
namespace {

using collective::GpuSet;
using collective::RatedSets;
using decide::ConditionSets;
using decide::Gpus;
using decide::Machine;
using Ints = Array<std::int32_t>;
using Reals = Array<double>;
using Sets = Array<std::uint64_t>;
using AnyTuple = py::typing::Tuple<float, py::ellipsis>;
// The GPU of each task, the sort key, seconds.
using OptionRow = std::tuple<py::typing::Tuple<int, py::ellipsis>, AnyTuple, double>;

std::unique_ptr<RatedSets> make_rated_sets(const collective::RingRates& rates, bool are_alike,
                                           const Reals& to_gpus, const Reals& to_others) {
    const py::ssize_t n = rates.num_terminals();
    check_shape(to_gpus, "to_gpus", {n, n});
    check_shape(to_others, "to_others", {n});
    return std::make_unique<RatedSets>(
        collective::RatedSetsParams{&rates, are_alike, as_span(to_gpus), as_span(to_others)});
}

void check_sets(const RatedSets& rated, const Sets& sets) {
    for (const GpuSet set : as_span(sets)) {
        const bool is_inside = rated.num_gpus() >= 64 || set >> rated.num_gpus() == 0;
        if (set == 0 || !is_inside) throw std::invalid_argument("sets has one that is empty or too large");
    }
}

py::array_t<double> rates_of_sets(const RatedSets& rated, const Sets& sets) {
    check_sets(rated, sets);
    return to_row(without_gil<std::vector<double>>([&] {
        WorkMeter meter(to_stop_condition({}));
        return rated.rated(as_span(sets), meter);
    }));
}

py::array_t<double> bounds_of_sets(const RatedSets& rated, const Sets& sets) {
    check_sets(rated, sets);
    std::vector<double> found;
    for (const GpuSet set : as_span(sets)) found.push_back(rated.bound(set));
    return to_row(std::move(found));
}

py::array_t<double> leading(const RatedSets& rated, const Sets& sets, std::size_t count, double share) {
    check_sets(rated, sets);
    if (count == 0) throw std::invalid_argument("count = 0: below 1");
    return to_row(without_gil<std::vector<double>>([&] {
        WorkMeter meter(to_stop_condition({}));
        return rated.leading(as_span(sets), count, share, meter);
    }));
}

py::array_t<double> fastest(const RatedSets& rated, const Sets& sets) {
    check_sets(rated, sets);
    return to_row(without_gil<std::vector<double>>([&] {
        WorkMeter meter(to_stop_condition({}));
        return rated.fastest(as_span(sets), meter);
    }));
}

py::array_t<double> left_among(const RatedSets& rated, GpuSet free, const Sets& taken) {
    return to_row(without_gil<std::vector<double>>([&] {
        std::vector<double> found;
        for (const GpuSet set : as_span(taken)) found.push_back(rated.left(free, set));
        return found;
    }));
}

// rated: the rated sets, or none.
std::unique_ptr<Machine> make_machine(const Ints& far, const Ints& socket, const Ints& near,
                                      const Reals& degraded, std::vector<Gpus> parts, bool are_alike,
                                      const std::vector<const RatedSets*>& rated,
                                      const traffic::CollectiveNetwork& network) {
    const py::ssize_t n = socket.size();
    check_shape(far, "far", {n, n});
    check_shape(near, "near", {n});
    check_shape(degraded, "degraded", {n});
    decide::MachineParams params{.far = as_span(far),
                                 .socket = as_span(socket),
                                 .near = as_span(near),
                                 .degraded = as_span(degraded),
                                 .parts = std::move(parts),
                                 .are_alike = are_alike,
                                 .rated = rated.empty() ? nullptr : rated.front(),
                                 .network = &network};
    require(check(params));
    return std::make_unique<Machine>(params);
}

decide::JobParams job_of(const CollectivesHandle& collectives, std::int32_t size, bool communicates) {
    return {.collectives = collectives.view(), .size = size, .communicates = communicates};
}

std::vector<OptionRow> rows_of(const std::vector<decide::SetOption>& options) {
    std::vector<OptionRow> rows;
    for (const decide::SetOption& one : options) {
        py::tuple gpus(one.gpus.size()), order(one.order.size());
        for (std::size_t i = 0; i < one.gpus.size(); ++i) gpus[i] = one.gpus[i];
        for (std::size_t i = 0; i < one.order.size(); ++i) order[i] = one.order[i];
        rows.emplace_back(std::move(gpus), std::move(order), one.seconds);
    }
    return rows;
}

// left: () unless the job takes parts of GPUs.
std::pair<std::vector<OptionRow>, bool> rank_sets(const Machine& machine,
                                                  const CollectivesHandle& collectives, std::int32_t size,
                                                  bool communicates, bool takes_fullest,
                                                  std::vector<Gpus> regions, bool are_fixed, Gpus required,
                                                  const Gpus& free, std::vector<std::int32_t> left,
                                                  double slack, std::size_t alternatives, bool near_only) {
    decide::SetParams params{.machine = &machine,
                             .job = job_of(collectives, size, communicates),
                             .regions = std::move(regions),
                             .are_fixed = are_fixed,
                             .required = std::move(required),
                             .free = std::vector<bool>(machine.num_gpus()),
                             .left = std::move(left),
                             .slack = slack,
                             .alternatives = alternatives,
                             .near_only = near_only,
                             .stop = to_stop_condition({})};
    params.job.takes_parts = !params.left.empty();
    params.job.takes_fullest = takes_fullest;
    check_vertices(free, "free", static_cast<std::int32_t>(machine.num_gpus()));
    for (const std::int32_t gpu : free) params.free[static_cast<std::size_t>(gpu)] = true;
    require(check(params));
    const auto found = without_gil<decide::SetResult>([&] { return decide::rank_sets(params); });
    return {rows_of(found.options), found.all_compared};
}

// The machine of each template, the GPUs that suit the job as bits, the regions and whether these are fixed.
using TemplateRow = std::tuple<const Machine*, py::bytes, std::vector<Gpus>, bool>;

std::unique_ptr<ConditionSets> make_condition_sets(MachineConditions& conditions,
                                                   const std::vector<TemplateRow>& templates,
                                                   const CollectivesHandle& collectives, std::int32_t size,
                                                   bool communicates, std::int32_t share, bool takes_fullest,
                                                   double slack, std::size_t alternatives, bool near_only) {
    decide::ConditionSetsParams params{.templates = {},
                                       .job = job_of(collectives, size, communicates),
                                       .share = std::max(share, 1),
                                       .slack = slack,
                                       .alternatives = alternatives,
                                       .near_only = near_only};
    params.job.takes_parts = share > 0;
    params.job.takes_fullest = takes_fullest;
    for (const auto& [machine, suitable, regions, are_fixed] : templates)
        params.templates.push_back({machine, words_of(suitable), regions, are_fixed});
    require(check(params, conditions));
    return std::make_unique<ConditionSets>(conditions, std::move(params));
}

// What is found before a deadline or an interrupt is kept.
void rank(ConditionSets& sets, MachineRanking& ranking) {
    if (!sets.rank(ranking, to_stop_condition({}), kOtherThreads)) raise_pending();
}

// The best option of a condition that has one, and whether all sets were compared.
std::pair<OptionRow, bool> best_of(ConditionSets& sets, std::int32_t condition) {
    const ConditionSets::Best* const best = sets.best(condition, to_stop_condition({}), kOtherThreads);
    if (best == nullptr) raise_pending();
    if (best == nullptr || !best->option) throw py::index_error("condition = " + std::to_string(condition));
    return {rows_of({*best->option}).front(), best->all_compared};
}

// All options, the best first, and whether all sets were compared.
std::pair<std::vector<OptionRow>, bool> options_of(const ConditionSets& sets, std::int32_t condition) {
    auto params = sets.asked(condition);
    if (!params) return {{}, true};
    params->stop = to_stop_condition({});
    const auto found = without_gil<decide::SetResult>([&] { return decide::rank_sets(*params); });
    return {rows_of(found.options), found.all_compared};
}

double seconds_of_any(const Machine& machine, const CollectivesHandle& collectives, std::int32_t size,
                      bool communicates) {
    const decide::JobParams job = job_of(collectives, size, communicates);
    require(check(job, machine.num_gpus()));
    return without_gil<double>([&] {
        WorkMeter meter(to_stop_condition({}));
        return decide::seconds_of_any(machine, job, meter);
    });
}

double grade(double seconds, double slack) {
    require(decide::check_slack(slack));
    return decide::grade(seconds, slack);
}

}  // namespace

void register_decide(py::module_& module) {
    py::class_<RatedSets>(module, "RatedSets", "What rings among sets of GPUs carry, with a bit for each.")
        .def(py::init(&make_rated_sets), py::keep_alive<1, 2>(), py::arg("rates"), py::arg("are_alike"),
             py::arg("to_gpus").noconvert(), py::arg("to_others").noconvert())
        .def("gb_per_s", &rates_of_sets, py::arg("sets").noconvert())
        .def("bounds", &bounds_of_sets, py::arg("sets").noconvert())
        .def("leading", &leading, py::arg("sets").noconvert(), py::arg("count"), py::arg("share"))
        .def("fastest", &fastest, py::arg("sets").noconvert())
        .def("left", &left_among, py::arg("free"), py::arg("taken").noconvert());
    py::class_<Machine>(module, "Machine", "A machine before any job asks for its GPUs.")
        .def(py::init(&make_machine), py::keep_alive<1, 8>(), py::keep_alive<1, 9>(),
             py::arg("far").noconvert(), py::arg("socket").noconvert(), py::arg("near").noconvert(),
             py::arg("degraded").noconvert(), py::arg("parts"), py::arg("are_alike"), py::arg("rated"),
             py::arg("network"))
        .def("rank_sets", &rank_sets, py::arg("collectives"), py::arg("size"), py::arg("communicates"),
             py::arg("takes_fullest"), py::arg("regions"), py::arg("are_fixed"), py::arg("required"),
             py::arg("free"), py::arg("left"), py::arg("slack"), py::arg("alternatives"),
             py::arg("near_only"), "Options, and whether all were compared.")
        .def("seconds_of_any", &seconds_of_any, py::arg("collectives"), py::arg("size"),
             py::arg("communicates"));
    py::class_<ConditionSets>(module, "ConditionSets", "The best sets of GPUs in each condition of machines.")
        .def(py::init(&make_condition_sets), py::keep_alive<1, 2>(), py::keep_alive<1, 3>(),
             py::keep_alive<1, 4>(), py::arg("conditions"), py::arg("templates"), py::arg("collectives"),
             py::arg("size"), py::arg("communicates"), py::arg("share"), py::arg("takes_fullest"),
             py::arg("slack"), py::arg("alternatives"), py::arg("near_only"),
             "templates: of each its machine, the GPUs that suit the job as bits, the lowest byte first, "
             "regions (the job gets GPUs of one), and whether it gets a whole one. "
             "share: thousandths of a GPU for each task; 0 for whole GPUs.")
        .def("rank", &rank, py::arg("ranking"), "Sets the keys that a ranking lacks.")
        .def("best", &best_of, py::arg("condition"), "The best option, and whether all sets were compared.")
        .def("options", &options_of, py::arg("condition"), "Options, and whether all were compared.");
    module.def("grade", &grade, py::arg("seconds"), py::arg("slack"));
}

}  // namespace topoplace::bindings
