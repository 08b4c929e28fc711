// Conditions of machines: read from the state, numbered, and kept as the state changes.
#include "topoplace/machine_conditions.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "graph/index.hpp"

namespace topoplace {

namespace {

constexpr std::int32_t kWordBits = 64;
constexpr std::int32_t kMaxUnusedConditions = 1 << 16;  // more than these: renumber all
// The position while changes are looked at: where memory runs out meanwhile, the next query renumbers all.
constexpr std::uint64_t kHalfWay = std::numeric_limits<std::uint64_t>::max();

MachineConditions::Words empty_set(std::int32_t size) {
    return MachineConditions::Words(index(size + kWordBits - 1) / kWordBits);
}

void insert(MachineConditions::Words& set, std::int32_t number) {
    set[index(number) / kWordBits] |= std::uint64_t{1} << (number % kWordBits);
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    hash ^= value;
    hash *= 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
}

std::int32_t num_sockets(const std::vector<std::int32_t>& socket_of) {
    return socket_of.empty() ? 0 : *std::max_element(socket_of.begin(), socket_of.end()) + 1;
}

}  // namespace

Fault MachineConditions::check(const MachineLayout& layout, std::int32_t num_gpus) {
    std::size_t num_placed = 0;
    std::vector<std::uint8_t> is_placed(index(num_gpus));
    if (layout.template_of.size() != layout.gpus_of.size())
        return "template_of has another length than gpus_of";
    for (std::size_t machine = 0; machine < layout.gpus_of.size(); ++machine) {
        const std::int32_t its = layout.template_of[machine];
        const bool is_known = its >= 0 && index(its) < layout.socket_of.size();
        if (!is_known || layout.socket_of[index(its)].size() != layout.gpus_of[machine].size())
            return "template_of[" + std::to_string(machine) + "] does not describe the machine";
        for (const std::int32_t gpu : layout.gpus_of[machine]) {
            if (gpu < 0 || gpu >= num_gpus || is_placed[index(gpu)]++ != 0)
                return "gpus_of[" + std::to_string(machine) + "] lists GPU " + std::to_string(gpu) +
                       ", which is unknown or listed twice";
            ++num_placed;
        }
    }
    for (const auto& sockets : layout.socket_of) {
        if (std::any_of(sockets.begin(), sockets.end(), [](std::int32_t socket) { return socket < 0; }))
            return "socket_of has a number below 0";
    }
    if (num_placed != index(num_gpus)) return "gpus_of does not list all GPUs";
    return std::nullopt;
}

std::size_t MachineConditions::Hash::operator()(const Condition& condition) const {
    std::uint64_t hash = mixed(0, static_cast<std::uint64_t>(condition.machine_template));
    hash = mixed(hash, static_cast<std::uint64_t>(condition.machine));
    hash = mixed(hash, condition.is_used ? 1 : 0);
    hash = mixed(hash, static_cast<std::uint64_t>(condition.cpus));
    for (const std::int32_t left : condition.left) hash = mixed(hash, static_cast<std::uint64_t>(left));
    for (const std::uint64_t word : condition.free) hash = mixed(hash, word);
    for (const SliceHere& one : condition.slices) {
        hash = mixed(hash, static_cast<std::uint64_t>(one.gpu));
        hash = mixed(hash,
                     std::uint64_t{one.slice.parts} << 32 | one.slice.compute << 1 | (one.is_held ? 1 : 0));
    }
    for (const JobHere& job : condition.jobs) {
        hash = mixed(hash, static_cast<std::uint64_t>(job.kind));
        hash = mixed(hash, static_cast<std::uint64_t>(job.num_gpus));
        for (const std::uint64_t word : job.sockets) hash = mixed(hash, word);
    }
    return static_cast<std::size_t>(hash);
}

MachineConditions::MachineConditions(const ClusterState& state, MachineLayout layout, Sight sight)
    : state_(&state),
      layout_(std::move(layout)),
      sight_(sight),
      machine_of_(index(state.num_gpus())),
      local_of_(index(state.num_gpus())),
      condition_of_(layout_.gpus_of.size(), kAbsent),
      occupied_(4 * layout_.gpus_of.size() + 1024) {
    TOPOPLACE_ASSERT(!check(layout_, state.num_gpus()));
    for (std::size_t machine = 0; machine < layout_.gpus_of.size(); ++machine) {
        for (std::size_t local = 0; local < layout_.gpus_of[machine].size(); ++local) {
            const std::size_t gpu = index(layout_.gpus_of[machine][local]);
            machine_of_[gpu] = static_cast<std::int32_t>(machine);
            local_of_[gpu] = static_cast<std::int32_t>(local);
        }
    }
    renumber();
}

void MachineConditions::refresh() {
    const std::uint64_t end = state_->changes().end();
    if (seen_ == end) return;
    const auto changes = seen_ == kHalfWay ? std::nullopt : state_->changes().since(seen_);
    if (!changes || num_conditions() > num_machines() + kMaxUnusedConditions) return renumber();
    seen_ = kHalfWay;
    std::int32_t last = kAbsent;  // the GPUs of one machine mostly stand side by side
    for (const std::int32_t gpu : *changes) {
        const std::int32_t machine = machine_of_[index(gpu)];
        if (machine != last) move(machine);
        last = machine;
    }
    seen_ = end;
}

std::int32_t MachineConditions::first_machine(std::int32_t number, const HostAmounts& needs) const {
    if (needs.cpus < 0) return lowest_[index(number)];
    for (const std::int32_t machine : machines_[index(number)]) {
        if (has(machine, needs)) return machine;
    }
    return kAbsent;
}

bool MachineConditions::has_free(std::int32_t machine, const HostAmounts& needs) const {
    const HostState& hosts = state_->hosts();
    if (!hosts.accepts(machine)) return false;
    if (hosts.free().empty()) return true;
    const HostState::Amounts& free = hosts.free()[index(machine)];
    return free[0] >= needs.cpus && free[1] >= needs.megabytes;
}

// Thousandths; 0 on a machine that is not in service, and where CPUs are not limited the most there can be.
std::int64_t MachineConditions::free_cpus(std::int32_t machine) const {
    const HostState& hosts = state_->hosts();
    if (!hosts.accepts(machine)) return 0;
    return hosts.free().empty() ? std::numeric_limits<std::int64_t>::max() : hosts.free()[index(machine)][0];
}

std::vector<MachineConditions::SliceHere> MachineConditions::slices_of(
    std::span<const std::int32_t> gpus) const {
    std::vector<SliceHere> slices;
    for (const std::int32_t gpu : gpus) {
        if (!state_->is_in_service(gpu)) continue;
        for (const auto& [slice, job] : state_->slices(gpu)) {
            slices.push_back({local_of_[index(gpu)], slice, job != nullptr});
        }
    }
    return slices;
}

MachineConditions::Condition MachineConditions::read(std::int32_t machine) const {
    const std::vector<std::int32_t>& gpus = layout_.gpus_of[index(machine)];
    Condition condition{.machine_template = layout_.template_of[index(machine)],
                        .machine = sight_.machine ? machine : kAbsent,
                        .is_used = sight_.processes && state_->hosts().num_processes()[index(machine)] > 0,
                        .free = empty_set(static_cast<std::int32_t>(gpus.size())),
                        .jobs = {},
                        .left = {},
                        .slices = sight_.shares ? slices_of(gpus) : std::vector<SliceHere>{},
                        .cpus = sight_.cpus ? free_cpus(machine) : 0};
    const std::vector<std::int32_t>& socket_of = layout_.socket_of[index(condition.machine_template)];
    std::vector<std::pair<const ClusterState::Job*, JobHere>> jobs;
    for (const std::int32_t gpu : gpus) {
        const std::int32_t local = local_of_[index(gpu)];
        if (state_->is_free(gpu)) insert(condition.free, local);
        if (sight_.shares) condition.left.push_back(state_->share_left(gpu));
        const auto meet = [&](const ClusterState::Job* job) {
            condition.is_used |= sight_.gpu_use;
            if (!sight_.jobs) return;
            auto its = std::find_if(jobs.begin(), jobs.end(),
                                    [job](const auto& entry) { return entry.first == job; });
            if (its == jobs.end()) {
                jobs.push_back({job, {job->second.kind, 0, empty_set(num_sockets(socket_of))}});
                its = jobs.end() - 1;
            }
            ++its->second.num_gpus;
            insert(its->second.sockets, socket_of[index(local)]);
        };
        if (state_->owner(gpu) != nullptr) meet(state_->owner(gpu));
        for (const auto& sharer : state_->sharers(gpu)) meet(sharer.job);
        for (const auto& [slice, job] : state_->slices(gpu)) {
            if (job != nullptr) meet(job);
        }
    }
    for (auto& [_, here] : jobs) condition.jobs.push_back(std::move(here));
    std::sort(condition.jobs.begin(), condition.jobs.end());
    return condition;
}

void MachineConditions::move(std::int32_t machine) {
    Condition now = read(machine);
    const std::int32_t before = condition_of_[index(machine)];
    if (before != kAbsent && condition(before) == now) return;
    const auto [place, is_new] = number_of_.try_emplace(std::move(now), num_conditions());
    if (is_new) {
        conditions_.push_back(&place->first);
        machines_.emplace_back();
        lowest_.push_back(kAbsent);
    }
    if (before != kAbsent) leave(machine);
    const std::int32_t number = place->second;
    std::set<std::int32_t>& others = machines_[index(number)];
    if (others.empty()) occupied_.add(number);
    others.insert(machine);
    lowest_[index(number)] = *others.begin();
    condition_of_[index(machine)] = number;
}

void MachineConditions::leave(std::int32_t machine) {
    const std::int32_t number = condition_of_[index(machine)];
    std::set<std::int32_t>& others = machines_[index(number)];
    others.erase(machine);
    lowest_[index(number)] = others.empty() ? kAbsent : *others.begin();
    if (others.empty()) occupied_.add(number);
}

void MachineConditions::renumber() {
    seen_ = kHalfWay;
    number_of_.clear();
    conditions_.clear();
    machines_.clear();
    lowest_.clear();
    condition_of_.assign(condition_of_.size(), kAbsent);
    ++generation_;
    for (std::int32_t machine = 0; machine < num_machines(); ++machine) move(machine);
    seen_ = state_->changes().end();
}

}  // namespace topoplace
