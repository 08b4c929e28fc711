// Allocation, release, draining and transactions: every change in one place, with a log to take it back.
#include "topoplace/cluster_state.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
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

}  // namespace

std::string_view name(AllocationStatus status) {
    constexpr std::array<std::string_view, 13> names{
        "ok",         "no_gpus",     "job_exists",  "unknown_job", "unknown_gpu", "duplicate_gpu",
        "taken_gpu",  "drained_gpu", "share_short", "sliced_gpu",  "no_slice",    "slots_taken",
        "hosts_short"};
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

ClusterState::ClusterState(std::int32_t num_gpus, Machines machines)
    : shares_(std::clamp(num_gpus, 1, kMaxGpus)),
      hosts_(static_cast<std::int32_t>(machines.first_gpu.size()), std::move(machines.capacity)),
      first_gpu_(std::move(machines.first_gpu)),
      changes_(changes_kept(num_gpus)) {
    if (num_gpus < 1 || num_gpus > kMaxGpus) {
        throw std::invalid_argument("num_gpus = " + std::to_string(num_gpus) + " is not in 1.." +
                                    std::to_string(kMaxGpus));
    }
    for (const std::int32_t gpu : first_gpu_) {
        if (gpu < 0 || gpu >= num_gpus)
            throw std::invalid_argument("first_gpu = " + std::to_string(gpu) + " is not a GPU");
    }
    owner_.resize(index(num_gpus));
    free_.resize(word_of(num_gpus - 1) + 1);
    drained_.resize(free_.size());
    named_.resize(free_.size());
    for (std::int32_t gpu = 0; gpu < num_gpus; ++gpu) set_free(gpu, true);
    TOPOPLACE_ASSERT(is_consistent());
}

// A GPU is free if and only if it is healthy and no job holds any of it.
bool ClusterState::is_consistent() const {
    std::int32_t num_free = 0;
    for (std::int32_t gpu = 0; gpu < num_gpus(); ++gpu) {
        if (owner(gpu) != nullptr && shares_.is_shared(gpu)) return false;
        if (is_free(gpu) != (share_left(gpu) == kWholeGpu)) return false;
        num_free += is_free(gpu) ? 1 : 0;
    }
    const bool log_is_in_use = open_transactions_ > 0 || (open_transactions_ == 0 && log_.empty());
    return num_free == num_free_ && log_is_in_use && owners_are_consistent() && slices_are_consistent();
}

// A sliced GPU has disjoint slices, and is neither held as a whole nor shared.
bool ClusterState::slices_are_consistent() const {
    for (const auto& [gpu, entries] : slices_.all()) {
        if (entries.empty() || owner(gpu) != nullptr || shares_.is_shared(gpu)) return false;
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
      drained_(other.drained_),
      named_(other.named_),
      jobs_(other.jobs_),
      hosts_(other.hosts_),
      first_gpu_(other.first_gpu_),
      changes_(changes_kept(other.num_gpus())),
      num_free_(other.num_free_),
      next_sequence_(other.next_sequence_) {
    for (const Job& job : jobs_) take(job);
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
    if (!hosts_.take(hosts)) return {AllocationStatus::hosts_short, -1};
    const AllocationResult refused = first_refusal(gpus, parts);
    if (refused.status != AllocationStatus::ok) {
        hosts_.give_back(hosts);
        return refused;
    }
    Allocation held{{gpus.begin(), gpus.end()}, std::move(hosts), std::move(note),        kind,
                    next_sequence_++,           parts.share,      std::move(parts.slices)};
    const auto [place, _] = jobs_.try_emplace(job, std::move(held));
    auto before = reslice(place->second);
    take(*place);
    touched_.clear();
    touch(place->second);
    log_touched();
    record(Allocated{&*place, std::move(before)});
    TOPOPLACE_ASSERT(is_consistent());
    return {};
}

// Makes room for what an allocation takes; returns what the slices of the GPUs were that it changed.
std::vector<std::pair<std::int32_t, ClusterState::Entries>> ClusterState::reslice(
    const Allocation& allocation) {
    std::vector<std::pair<std::int32_t, Entries>> before;
    for (std::size_t i = 0; i < allocation.gpus.size(); ++i) {
        const std::int32_t gpu = allocation.gpus[i];
        if (allocation.slices.empty()) {
            if (slices_.is_sliced(gpu)) before.emplace_back(gpu, slices_.exchange(gpu, {}));
        } else if (!slices_.has_idle(gpu, allocation.slices[i])) {
            before.emplace_back(gpu, slices_.of(gpu));
        }
    }
    return before;
}

AllocationResult ClusterState::attach(const std::string& job, HostNeeds hosts, Note note, std::int64_t kind) {
    TOPOPLACE_ASSERT(open_transactions_ == 0);
    const auto place = jobs_.find(job);
    if (place == jobs_.end()) return allocate(job, {}, std::move(hosts), std::move(note), kind);
    if (!place->second.hosts.empty()) return {AllocationStatus::job_exists, -1};
    if (!hosts_.take(hosts)) return {AllocationStatus::hosts_short, -1};
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
    Entries now;
    std::uint32_t parts = 0;
    for (const MigSlice& slice : slices) {
        if (slice.eighths() == 0 || (slice.parts & ~MigSlice::kAll) != 0 || (parts & slice.parts) != 0)
            return {AllocationStatus::no_slice, 0};
        parts |= slice.parts;
        now.push_back({slice});
    }
    for (const auto& entry : slices_.of(gpu)) {
        if (entry.job == nullptr) continue;
        const auto its =
            std::find_if(now.begin(), now.end(), [&](const auto& one) { return one.slice == entry.slice; });
        if (its == now.end()) return {AllocationStatus::slots_taken, 0};
        its->job = entry.job;
    }
    Entries before = slices_.exchange(gpu, std::move(now));
    refresh_free(gpu);
    touched_.assign({gpu});
    log_touched();
    record(Sliced{gpu, std::move(before)});
    TOPOPLACE_ASSERT(is_consistent());
    return {};
}

bool ClusterState::drain(std::int32_t gpu) {
    touched_.assign({gpu});
    if (is_drained(gpu)) return false;
    set_gpu_drained(gpu, true);
    log_touched();
    record(Drained{gpu});
    TOPOPLACE_ASSERT(is_consistent());
    return true;
}

bool ClusterState::undrain(std::int32_t gpu) {
    touched_.assign({gpu});
    if (!is_drained(gpu)) return false;
    set_gpu_drained(gpu, false);
    log_touched();
    record(Undrained{gpu});
    TOPOPLACE_ASSERT(is_consistent());
    return true;
}

void ClusterState::set_drained(std::int32_t machine, std::span<const std::int32_t> gpus, bool drained) {
    for (const std::int32_t gpu : gpus) static_cast<void>(drained ? drain(gpu) : undrain(gpu));
    if (hosts_.set_drained(machine, drained)) record(MachineDrained{machine, drained});
    touched_.assign(gpus.begin(), gpus.end());
}

ClusterState::Mark ClusterState::begin() {
    ++open_transactions_;
    return log_.size();
}

void ClusterState::commit() {
    TOPOPLACE_ASSERT(open_transactions_ > 0);
    if (--open_transactions_ == 0) log_.clear();
}

void ClusterState::rollback(Mark mark) {
    TOPOPLACE_ASSERT(mark <= log_.size());
    touched_.clear();
    while (log_.size() > mark) {
        std::visit([this](auto& change) { undo(change); }, log_.back());
        log_.pop_back();
    }
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
    if (parts.slices.empty() && parts.share <= share_left(gpu)) return AllocationStatus::ok;
    if (owner(gpu) != nullptr) return AllocationStatus::taken_gpu;
    if (is_drained(gpu)) return AllocationStatus::drained_gpu;
    if (!parts.slices.empty()) return slice_refusal(gpu, parts.slices[position], parts.may_reslice);
    if (slices_.is_sliced(gpu)) {
        if (!slices_.is_idle(gpu)) return AllocationStatus::taken_gpu;
        return parts.may_reslice ? AllocationStatus::ok : AllocationStatus::sliced_gpu;
    }
    return parts.share == kWholeGpu ? AllocationStatus::taken_gpu : AllocationStatus::share_short;
}

// The same for a slice of a healthy GPU that no job holds as a whole.
AllocationStatus ClusterState::slice_refusal(std::int32_t gpu, const MigSlice& slice,
                                             bool may_reslice) const {
    if (shares_.is_shared(gpu)) return AllocationStatus::taken_gpu;
    if (!slices_.fits(gpu, slice)) return AllocationStatus::slots_taken;
    return may_reslice || slices_.has_idle(gpu, slice) ? AllocationStatus::ok : AllocationStatus::no_slice;
}

void ClusterState::set_free(std::int32_t gpu, bool free) {
    if (is_free(gpu) == free) return;
    free_[word_of(gpu)] ^= bit_of(gpu);
    num_free_ += free ? 1 : -1;
    TOPOPLACE_ASSERT(num_free_ >= 0 && num_free_ <= num_gpus());
}

void ClusterState::refresh_free(std::int32_t gpu) { set_free(gpu, share_left(gpu) == kWholeGpu); }

void ClusterState::take(const Job& job) {
    const Allocation& its = job.second;
    for (std::size_t i = 0; i < its.gpus.size(); ++i) {
        const std::int32_t gpu = its.gpus[i];
        TOPOPLACE_ASSERT(owner(gpu) == nullptr);
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

void ClusterState::give_back(const Job& job) {
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

void ClusterState::set_gpu_drained(std::int32_t gpu, bool drained) {
    TOPOPLACE_ASSERT(is_drained(gpu) != drained);
    drained_[word_of(gpu)] ^= bit_of(gpu);
    refresh_free(gpu);
}

void ClusterState::touch(const Allocation& allocation) {
    touched_.insert(touched_.end(), allocation.gpus.begin(), allocation.gpus.end());
    for (const HostNeeds::Process& process : allocation.hosts.processes)
        touched_.push_back(first_gpu_[index(process.machine)]);
    for (const std::int32_t machine : allocation.hosts.drives) touched_.push_back(first_gpu_[index(machine)]);
}

void ClusterState::log_touched() {
    for (const std::int32_t gpu : touched_) changes_.add(gpu);
}

void ClusterState::record(Change&& change) {
    if (open_transactions_ > 0) log_.push_back(std::move(change));
}

void ClusterState::undo(Allocated& change) {
    TOPOPLACE_ASSERT(find(change.job->first) == change.job);
    give_back(*change.job);
    for (auto& [gpu, entries] : change.before) {
        slices_.exchange(gpu, std::move(entries));
        refresh_free(gpu);
    }
    hosts_.give_back(change.job->second.hosts);
    touch(change.job->second);
    jobs_.erase(jobs_.find(change.job->first));
}

void ClusterState::undo(Released& change) {
    TOPOPLACE_ASSERT(!change.job.empty() && !jobs_.contains(change.job.key()));
    const Job& job = *jobs_.insert(std::move(change.job)).position;
    take(job);
    hosts_.take_again(job.second.hosts);
    touch(job.second);
}

void ClusterState::undo(Sliced& change) {
    slices_.exchange(change.gpu, std::move(change.before));
    refresh_free(change.gpu);
    touched_.push_back(change.gpu);
}

void ClusterState::undo(Drained& change) {
    set_gpu_drained(change.gpu, false);
    touched_.push_back(change.gpu);
}

void ClusterState::undo(Undrained& change) {
    set_gpu_drained(change.gpu, true);
    touched_.push_back(change.gpu);
}

void ClusterState::undo(MachineDrained& change) {
    static_cast<void>(hosts_.set_drained(change.machine, !change.drained));
    touched_.push_back(first_gpu_[index(change.machine)]);
}

}  // namespace topoplace
