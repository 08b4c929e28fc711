// Allocation, release, service and transactions: every change in one place, with a log to take it back.
//
// A change first reserves all memory that it and its rollback need; what follows is noexcept.
#include "topoplace/cluster_state.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "graph/index.hpp"

namespace topoplace {

namespace {

constexpr std::int32_t kWordBits = 64;

std::size_t word_of(std::int32_t gpu) { return index(gpu / kWordBits); }
std::uint64_t bit_of(std::int32_t gpu) { return std::uint64_t{1} << (gpu % kWordBits); }

// After more changes than this, reading the whole state is as quick as reading the log.
std::size_t changes_kept(std::int32_t num_gpus) {
    return 1024 + 4 * static_cast<std::size_t>(std::max(num_gpus, 0));
}

template <class Item>
void make_room(std::vector<Item>& items, std::size_t size) {
    if (items.capacity() < size) items.reserve(std::max(size, 2 * items.capacity()));
}

std::size_t num_touched(const ClusterState::Allocation& allocation) {
    return allocation.gpus.size() + allocation.hosts.processes.size() + allocation.hosts.drives.size();
}

}  // namespace

std::string_view name(AllocationStatus status) {
    constexpr std::array<std::string_view, 15> names{
        "ok",        "no_gpus",     "job_exists", "unknown_job",   "unknown_gpu", "duplicate_gpu",
        "taken_gpu", "drained_gpu", "held_gpu",   "unhealthy_gpu", "share_short", "sliced_gpu",
        "no_slice",  "slots_taken", "hosts_short"};
    return names[static_cast<std::size_t>(status)];
}

bool ClusterState::test(const Bits& bits, std::int32_t gpu) {
    TOPOPLACE_ASSERT(gpu >= 0 && word_of(gpu) < bits.size());
    return (bits[word_of(gpu)] & bit_of(gpu)) != 0;
}

std::vector<std::int32_t> ClusterState::members(const Bits& bits) {
    std::vector<std::int32_t> found;
    for (std::size_t word = 0; word < bits.size(); ++word) {
        for (std::uint64_t rest = bits[word]; rest != 0; rest &= rest - 1) {
            found.push_back(static_cast<std::int32_t>(word) * kWordBits + std::countr_zero(rest));
        }
    }
    return found;
}

Fault ClusterState::check(std::int32_t num_gpus, const Machines& machines) {
    const auto num_machines = static_cast<std::int32_t>(machines.first_gpu.size());
    if (auto fault = HostState::check(num_machines, machines.capacity)) return fault;
    if (num_gpus < 1 || num_gpus > kMaxGpus)
        return "num_gpus = " + std::to_string(num_gpus) + " is not in 1.." + std::to_string(kMaxGpus);
    for (const std::int32_t gpu : machines.first_gpu) {
        if (gpu < 0 || gpu >= num_gpus) return "first_gpu = " + std::to_string(gpu) + " is not a GPU";
    }
    return std::nullopt;
}

ClusterState::ClusterState(std::int32_t num_gpus, Machines machines)
    : shares_(std::clamp(num_gpus, 1, kMaxGpus)),
      hosts_(static_cast<std::int32_t>(machines.first_gpu.size()), std::move(machines.capacity)),
      first_gpu_(std::move(machines.first_gpu)),
      changes_(changes_kept(num_gpus)) {
    TOPOPLACE_ASSERT(!check(num_gpus, {first_gpu_, {}}));
    owner_.resize(index(num_gpus));
    free_.resize(word_of(num_gpus - 1) + 1);
    withdrawn_.resize(index(num_gpus));
    withdrawn_gpus_.resize(free_.size());
    named_.resize(free_.size());
    for (std::int32_t gpu = 0; gpu < num_gpus; ++gpu) set_free(gpu, true);
    TOPOPLACE_ASSERT(is_consistent());
}

// A GPU is free if and only if it is in service and no job holds any of it.
bool ClusterState::is_consistent() const {
    std::int32_t num_free = 0;
    for (std::int32_t gpu = 0; gpu < num_gpus(); ++gpu) {
        if (owner(gpu) != nullptr && shares_.is_shared(gpu)) return false;
        if (is_free(gpu) != (share_left(gpu) == kWholeGpu)) return false;
        if (is_in_service(gpu) == test(withdrawn_gpus_, gpu)) return false;
        num_free += is_free(gpu) ? 1 : 0;
    }
    const bool log_is_in_use = open_transactions_ > 0 || (open_transactions_ == 0 && log_.empty());
    return num_free == num_free_ && log_is_in_use && owners_are_consistent() && slices_are_consistent();
}

// A sliced GPU has disjoint slices, and is neither held as a whole nor shared.
bool ClusterState::slices_are_consistent() const {
    for (const auto& [gpu, entries] : slices_.all()) {
        if (entries.empty()) continue;
        if (owner(gpu) != nullptr || shares_.is_shared(gpu)) return false;
        std::uint32_t parts = 0;
        for (const auto& entry : entries) {
            if (entry.slice.eighths() == 0 || (parts & entry.slice.parts) != 0) return false;
            parts |= entry.slice.parts;
        }
    }
    return true;
}

// Whether the GPU at this position says so too.
bool ClusterState::holds(const Job& job, std::size_t position) const {
    const std::int32_t gpu = job.second.gpus[position];
    if (!job.second.slices.empty()) {
        const Entries& entries = slices(gpu);
        return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
            return entry.job == &job && entry.slice == job.second.slices[position];
        });
    }
    if (job.second.share == kWholeGpu) return owner(gpu) == &job;
    const auto others = sharers(gpu);
    return std::any_of(others.begin(), others.end(),
                       [&job](const auto& one) { return one.job == &job && one.share == job.second.share; });
}

// Jobs say the same as the owners of GPUs and those who share them.
bool ClusterState::owners_are_consistent() const {
    std::size_t num_held = 0;
    for (const Job* job : owner_) num_held += job != nullptr ? 1 : 0;
    for (const auto& [gpu, holders] : shares_.all()) num_held += holders.size();
    for (const auto& [gpu, entries] : slices_.all()) {
        for (const auto& entry : entries) num_held += entry.job != nullptr ? 1 : 0;
    }
    for (const Job& job : jobs_) {
        if (!job.second.holds_something() || job.second.sequence >= next_sequence_) return false;
        for (std::size_t i = 0; i < job.second.gpus.size(); ++i) {
            if (!holds(job, i)) return false;
            --num_held;
        }
    }
    return num_held == 0;
}

ClusterState::ClusterState(const ClusterState& other)
    : owner_(other.owner_.size()),
      shares_(other.num_gpus()),
      slices_(other.slices_.all_idle()),
      free_(other.free_),
      withdrawn_(other.withdrawn_),
      withdrawn_gpus_(other.withdrawn_gpus_),
      reasons_(other.reasons_),
      named_(other.named_),
      jobs_(other.jobs_),
      hosts_(other.hosts_),
      first_gpu_(other.first_gpu_),
      changes_(changes_kept(other.num_gpus())),
      num_free_(other.num_free_),
      next_sequence_(other.next_sequence_) {
    for (const Job& job : jobs_) {
        const Allocation& its = job.second;
        reserve(its.gpus, {its.share, its.slices});
        take(job);
    }
    TOPOPLACE_ASSERT(is_consistent());
}

const ClusterState::Job* ClusterState::find(const std::string& job) const {
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? nullptr : &*found;
}

std::vector<const ClusterState::Job*> ClusterState::jobs() const {
    std::vector<const Job*> ordered;
    ordered.reserve(jobs_.size());
    for (const Job& job : jobs_) ordered.push_back(&job);
    std::sort(ordered.begin(), ordered.end(),
              [](const Job* a, const Job* b) { return a->second.sequence < b->second.sequence; });
    return ordered;
}

AllocationResult ClusterState::allocate(const std::string& job, std::span<const std::int32_t> gpus,
                                        HostNeeds hosts, Note note, std::int64_t kind, GpuParts parts) {
    TOPOPLACE_ASSERT(parts.share > 0 && parts.share <= kWholeGpu);
    TOPOPLACE_ASSERT(parts.slices.empty() ||
                     (parts.slices.size() == gpus.size() && parts.share == kWholeGpu));
    if (gpus.empty() && hosts.empty()) return {AllocationStatus::no_gpus, -1};
    if (jobs_.contains(job)) return {AllocationStatus::job_exists, -1};
    if (!hosts_.has(hosts, parts.runs)) return {AllocationStatus::hosts_short, -1};
    const AllocationResult refused = first_refusal(gpus, parts);
    if (refused.status != AllocationStatus::ok) return refused;
    auto before = resliced(gpus, parts);
    reserve(gpus, parts);
    Allocation held{
        {gpus.begin(), gpus.end()}, std::move(hosts), std::move(note), kind, next_sequence_, parts.share,
        std::move(parts.slices)};
    reserve_log(1, num_touched(held));
    const auto [place, _] = jobs_.try_emplace(job, std::move(held));
    ++next_sequence_;
    hosts_.take(place->second.hosts);
    take(*place);
    touched_.clear();
    touch(place->second);
    log_touched();
    record(Allocated{&*place, std::move(before)});
    TOPOPLACE_ASSERT(is_consistent());
    return {};
}

// The slices of those GPUs whose slices an allocation of these parts changes.
std::vector<std::pair<std::int32_t, ClusterState::Entries>> ClusterState::resliced(
    std::span<const std::int32_t> gpus, const GpuParts& parts) const {
    std::vector<std::pair<std::int32_t, Entries>> found;
    if (parts.slices.empty() && slices_.num_sliced() == 0) return found;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        const bool stays =
            parts.slices.empty() ? !slices_.is_sliced(gpus[i]) : slices_.has_idle(gpus[i], parts.slices[i]);
        if (!stays) found.emplace_back(gpus[i], slices_.of(gpus[i]));
    }
    return found;
}

// Makes room for what take() adds to these GPUs.
void ClusterState::reserve(std::span<const std::int32_t> gpus, const GpuParts& parts) {
    if (parts.slices.empty() && parts.share == kWholeGpu) return;
    for (const std::int32_t gpu : gpus) {
        if (parts.slices.empty()) {
            shares_.reserve(gpu);
        } else {
            slices_.reserve(gpu, slices_.of(gpu).size() + 1);
        }
    }
}

// Makes room for changes that touch as many GPUs and machines, and for the rollback of all open ones.
void ClusterState::reserve_log(std::size_t changes, std::size_t touches) {
    if (open_transactions_ == 0) return make_room(touched_, touches);
    make_room(touched_, logged_touches_ + touches);
    make_room(log_, log_.size() + changes);
}

AllocationResult ClusterState::attach(const std::string& job, HostNeeds hosts, Note note, std::int64_t kind) {
    TOPOPLACE_ASSERT(open_transactions_ == 0);
    const auto place = jobs_.find(job);
    if (place == jobs_.end())
        return allocate(job, {}, std::move(hosts), std::move(note), kind, {.runs = true});
    if (!place->second.hosts.empty()) return {AllocationStatus::job_exists, -1};
    if (!hosts_.has(hosts, true)) return {AllocationStatus::hosts_short, -1};
    reserve_log(0, num_touched(place->second) + hosts.processes.size() + hosts.drives.size());
    hosts_.take(hosts);
    place->second.hosts = std::move(hosts);
    place->second.note = std::move(note);
    place->second.kind = kind;
    touched_.clear();
    touch(place->second);
    log_touched();
    return {};
}

AllocationResult ClusterState::release(const std::string& job) {
    const auto place = jobs_.find(job);
    if (place == jobs_.end()) return {AllocationStatus::unknown_job, -1};
    reserve_log(1, num_touched(place->second));
    give_back(*place);
    hosts_.give_back(place->second.hosts);
    touched_.clear();
    touch(place->second);
    log_touched();
    record(Released{jobs_.extract(place)});
    TOPOPLACE_ASSERT(is_consistent());
    return {};
}

AllocationResult ClusterState::set_slices(std::int32_t gpu, const std::vector<MigSlice>& slices) {
    if (!knows(gpu)) return {AllocationStatus::unknown_gpu, 0};
    if (owner(gpu) != nullptr || shares_.is_shared(gpu)) return {AllocationStatus::taken_gpu, 0};
    Entries entries;
    std::uint32_t parts = 0;
    for (const MigSlice& slice : slices) {
        if (slice.eighths() == 0 || (slice.parts & ~MigSlice::kAll) != 0 || (parts & slice.parts) != 0)
            return {AllocationStatus::no_slice, 0};
        parts |= slice.parts;
        entries.push_back({slice});
    }
    for (const auto& entry : slices_.of(gpu)) {
        if (entry.job == nullptr) continue;
        const auto its = std::find_if(entries.begin(), entries.end(),
                                      [&](const auto& one) { return one.slice == entry.slice; });
        if (its == entries.end()) return {AllocationStatus::slots_taken, 0};
        its->job = entry.job;
    }
    slices_.reserve(gpu, entries.size());
    reserve_log(1, 1);
    slices_.exchange(gpu, entries);
    refresh_free(gpu);
    touched_.assign({gpu});
    log_touched();
    record(Sliced{gpu, std::move(entries)});
    TOPOPLACE_ASSERT(is_consistent());
    return {};
}

bool ClusterState::drain(std::span<const std::int32_t> gpus, std::span<const std::int32_t> machines) {
    return change_service(gpus, machines, [](Withdrawal& its) { its.drained = true; });
}

bool ClusterState::undrain(std::span<const std::int32_t> gpus, std::span<const std::int32_t> machines) {
    return change_service(gpus, machines, [](Withdrawal& its) { its.drained = false; });
}

bool ClusterState::hold(std::string_view reason, std::span<const std::int32_t> gpus,
                        std::span<const std::int32_t> machines) {
    const std::uint16_t number = number_of(reason);
    return change_service(gpus, machines, [number](Withdrawal& its) { its.held = number; });
}

bool ClusterState::unhold(std::span<const std::int32_t> gpus, std::span<const std::int32_t> machines) {
    return change_service(gpus, machines, [](Withdrawal& its) { its.held = 0; });
}

bool ClusterState::set_unhealthy(std::span<const std::int32_t> gpus, bool unhealthy) {
    return change_service(gpus, {}, [unhealthy](Withdrawal& its) { its.unhealthy = unhealthy; });
}

template <class Edit>
bool ClusterState::change_service(std::span<const std::int32_t> gpus, std::span<const std::int32_t> machines,
                                  const Edit& edit) {
    reserve_log(gpus.size() + machines.size(), gpus.size() + machines.size());
    touched_.clear();
    for (const std::int32_t gpu : gpus) {
        const Withdrawal before = withdrawal(gpu);
        Withdrawal now = before;
        edit(now);
        if (now == before) continue;
        set_withdrawal(gpu, now);
        touched_.push_back(gpu);
        record(GpuWithdrawn{gpu, before});
    }
    for (const std::int32_t machine : machines) {
        const Withdrawal before = hosts_.withdrawal(machine);
        Withdrawal now = before;
        edit(now);
        if (now == before) continue;
        hosts_.set_withdrawal(machine, now);
        touched_.push_back(first_gpu_[index(machine)]);
        record(MachineWithdrawn{machine, before});
    }
    log_touched();
    TOPOPLACE_ASSERT(is_consistent());
    return !touched_.empty();
}

Fault ClusterState::check_reason(std::string_view reason) const {
    const bool is_known = std::find(reasons_.begin(), reasons_.end(), reason) != reasons_.end();
    if (is_known || reasons_.size() < std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
    return "too many reasons to hold";
}

// Reasons keep their numbers for as long as the state lasts: there are few.
std::uint16_t ClusterState::number_of(std::string_view reason) {
    const auto known = std::find(reasons_.begin(), reasons_.end(), reason);
    const auto number = static_cast<std::size_t>(known - reasons_.begin()) + 1;
    TOPOPLACE_ASSERT(!check_reason(reason));
    if (known == reasons_.end()) reasons_.emplace_back(reason);
    return static_cast<std::uint16_t>(number);
}

std::vector<std::int32_t> ClusterState::drained_gpus() const {
    std::vector<std::int32_t> found = out_of_service();
    std::erase_if(found, [this](std::int32_t gpu) { return !withdrawal(gpu).drained; });
    return found;
}

std::vector<std::int32_t> ClusterState::sliced_gpus() const {
    std::vector<std::int32_t> found;
    for (const auto& [gpu, entries] : slices_.all()) {
        if (!entries.empty()) found.push_back(gpu);
    }
    std::sort(found.begin(), found.end());
    return found;
}

ClusterState::Mark ClusterState::begin() {
    ++open_transactions_;
    return log_.size();
}

void ClusterState::commit() {
    TOPOPLACE_ASSERT(open_transactions_ > 0);
    if (--open_transactions_ > 0) return;
    log_.clear();
    logged_touches_ = 0;
}

void ClusterState::rollback(Mark mark) noexcept {
    TOPOPLACE_ASSERT(mark <= log_.size());
    touched_.clear();
    while (log_.size() > mark) {
        std::visit([this](auto& change) { undo(change); }, log_.back());
        log_.pop_back();
    }
    TOPOPLACE_ASSERT(touched_.size() <= logged_touches_);
    logged_touches_ -= touched_.size();
    log_touched();
    commit();
    TOPOPLACE_ASSERT(is_consistent());
}

// The first GPU of which this cannot be taken, or that is named before.
AllocationResult ClusterState::first_refusal(std::span<const std::int32_t> gpus, const GpuParts& parts) {
    AllocationResult result;
    std::size_t at = 0;
    for (; at < gpus.size() && result.status == AllocationStatus::ok; ++at) {
        result = {refusal(gpus[at], parts, at), static_cast<std::int32_t>(at)};
        if (result.status != AllocationStatus::ok) break;
        if (test(named_, gpus[at])) result.status = AllocationStatus::duplicate_gpu;
        named_[word_of(gpus[at])] |= bit_of(gpus[at]);
    }
    for (std::size_t i = 0; i < at; ++i) named_[word_of(gpus[i])] &= ~bit_of(gpus[i]);
    return result.status == AllocationStatus::ok ? AllocationResult{} : result;
}

// Why what is asked of the GPU at this position cannot be taken now.
AllocationStatus ClusterState::refusal(std::int32_t gpu, const GpuParts& parts, std::size_t position) const {
    if (!knows(gpu)) return AllocationStatus::unknown_gpu;
    if (is_free(gpu) && parts.slices.empty()) return AllocationStatus::ok;
    if (owner(gpu) != nullptr) return AllocationStatus::taken_gpu;
    if (!parts.runs && !is_in_service(gpu)) return service_refusal(gpu);
    if (!parts.slices.empty()) return slice_refusal(gpu, parts.slices[position], parts.may_reslice);
    if (slices_.is_sliced(gpu)) {
        if (!slices_.is_idle(gpu)) return AllocationStatus::taken_gpu;
        return parts.may_reslice ? AllocationStatus::ok : AllocationStatus::sliced_gpu;
    }
    if (parts.share <= shares_.left(gpu)) return AllocationStatus::ok;
    return parts.share == kWholeGpu ? AllocationStatus::taken_gpu : AllocationStatus::share_short;
}

// The same for a GPU that is not in service.
AllocationStatus ClusterState::service_refusal(std::int32_t gpu) const {
    const Withdrawal& its = withdrawal(gpu);
    if (its.drained) return AllocationStatus::drained_gpu;
    return its.held != 0 ? AllocationStatus::held_gpu : AllocationStatus::unhealthy_gpu;
}

// The same for a slice of a GPU in service that no job holds as a whole.
AllocationStatus ClusterState::slice_refusal(std::int32_t gpu, const MigSlice& slice,
                                             bool may_reslice) const {
    if (shares_.is_shared(gpu)) return AllocationStatus::taken_gpu;
    if (!slices_.fits(gpu, slice)) return AllocationStatus::slots_taken;
    return may_reslice || slices_.has_idle(gpu, slice) ? AllocationStatus::ok : AllocationStatus::no_slice;
}

void ClusterState::set_free(std::int32_t gpu, bool free) noexcept {
    if (is_free(gpu) == free) return;
    free_[word_of(gpu)] ^= bit_of(gpu);
    num_free_ += free ? 1 : -1;
    TOPOPLACE_ASSERT(num_free_ >= 0 && num_free_ <= num_gpus());
}

void ClusterState::refresh_free(std::int32_t gpu) noexcept { set_free(gpu, share_left(gpu) == kWholeGpu); }

// There must be room: see reserve(). A job that takes whole GPUs gives up their idle slices.
void ClusterState::take(const Job& job) noexcept {
    const Allocation& its = job.second;
    for (std::size_t i = 0; i < its.gpus.size(); ++i) {
        const std::int32_t gpu = its.gpus[i];
        TOPOPLACE_ASSERT(owner(gpu) == nullptr);
        if (its.slices.empty() && slices_.is_sliced(gpu)) {
            Entries none;
            slices_.exchange(gpu, none);
        }
        if (!its.slices.empty()) {
            slices_.hold(gpu, its.slices[i], &job);
        } else if (its.share == kWholeGpu) {
            owner_[index(gpu)] = &job;
        } else {
            shares_.add(gpu, &job, its.share);
        }
        refresh_free(gpu);
    }
}

void ClusterState::give_back(const Job& job) noexcept {
    const Allocation& its = job.second;
    for (const std::int32_t gpu : its.gpus) {
        TOPOPLACE_ASSERT(!is_free(gpu));
        if (!its.slices.empty()) {
            slices_.release(gpu, &job);
        } else if (its.share == kWholeGpu) {
            owner_[index(gpu)] = nullptr;
        } else {
            shares_.remove(gpu, &job);
        }
        refresh_free(gpu);
    }
}

void ClusterState::set_withdrawal(std::int32_t gpu, Withdrawal now) noexcept {
    if (now.in_service() != is_in_service(gpu)) withdrawn_gpus_[word_of(gpu)] ^= bit_of(gpu);
    withdrawn_[index(gpu)] = now;
    refresh_free(gpu);
}

void ClusterState::touch(const Allocation& allocation) noexcept {
    touched_.insert(touched_.end(), allocation.gpus.begin(), allocation.gpus.end());
    for (const HostNeeds::Process& process : allocation.hosts.processes)
        touched_.push_back(first_gpu_[index(process.machine)]);
    for (const std::int32_t machine : allocation.hosts.drives) touched_.push_back(first_gpu_[index(machine)]);
}

void ClusterState::log_touched() noexcept {
    for (const std::int32_t gpu : touched_) changes_.add(gpu);
}

// What undoing a change touches.
std::size_t ClusterState::touches(const Change& change) {
    if (const auto* allocated = std::get_if<Allocated>(&change)) return num_touched(allocated->job->second);
    if (const auto* released = std::get_if<Released>(&change)) return num_touched(released->job.mapped());
    return 1;
}

void ClusterState::record(Change&& change) noexcept {
    if (open_transactions_ == 0) return;
    logged_touches_ += touches(change);
    log_.push_back(std::move(change));
}

void ClusterState::undo(Allocated& change) noexcept {
    TOPOPLACE_ASSERT(jobs_.contains(change.job->first));
    give_back(*change.job);
    for (auto& [gpu, entries] : change.before) {
        slices_.exchange(gpu, entries);
        refresh_free(gpu);
    }
    hosts_.give_back(change.job->second.hosts);
    touch(change.job->second);
    jobs_.erase(jobs_.find(change.job->first));
}

void ClusterState::undo(Released& change) noexcept {
    TOPOPLACE_ASSERT(!change.job.empty() && !jobs_.contains(change.job.key()));
    const Job& job = *jobs_.insert(std::move(change.job)).position;
    take(job);
    hosts_.take(job.second.hosts);
    touch(job.second);
}

void ClusterState::undo(Sliced& change) noexcept {
    slices_.exchange(change.gpu, change.before);
    refresh_free(change.gpu);
    touched_.push_back(change.gpu);
}

void ClusterState::undo(GpuWithdrawn& change) noexcept {
    set_withdrawal(change.gpu, change.before);
    touched_.push_back(change.gpu);
}

void ClusterState::undo(MachineWithdrawn& change) noexcept {
    hosts_.set_withdrawal(change.machine, change.before);
    touched_.push_back(first_gpu_[index(change.machine)]);
}

}  // namespace topoplace
