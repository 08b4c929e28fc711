// The byte form of a ClusterState, all numbers little-endian:
//
//   "TPCS" u32 version, u32 GPUs, u32 drained, that many i32 GPUs, u32 jobs,
//   per job in order of allocation: u32 length, the bytes of its name, u32 GPUs, that many i32 GPUs,
//       u32 share of each of them in thousandths (from version 2),
//       one byte that says whether it holds slices, and if so one slice a GPU (from version 3),
//   u32 sliced GPUs, per GPU: i32 GPU, u32 slices, that many slices (from version 3); a slice is u32 parts,
//   u32 compute, u32 reasons to hold something, per reason: u32 length, its bytes, u32 GPUs, that many i32
//   GPUs, u32 machines, that many i32 machines (version 4), u64 FNV-1a of everything before.
//
// Version 1 is written while all jobs hold whole GPUs, version 2 while no GPU is sliced, version 3 while
// nothing is held. In version 4, all jobs have shares and slices.
//
// FNV-1a maps different states of one step to different states, so no change of a single byte goes unnoticed;
// what passes the checksum is still checked in full.
#include <algorithm>
#include <map>
#include <utility>

#include "topoplace/assert.hpp"
#include "topoplace/cluster_state.hpp"

namespace topoplace {

namespace {

constexpr std::string_view kMagic = "TPCS";
constexpr std::uint32_t kVersion = 4;
constexpr std::size_t kChecksumBytes = 8;

std::uint64_t checksum(std::string_view bytes) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    return hash;
}

template <class Unsigned>
void write(std::string& out, Unsigned value) {
    for (std::size_t i = 0; i < sizeof(Unsigned); ++i)
        out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

void write_size(std::string& out, std::size_t size) { write(out, static_cast<std::uint32_t>(size)); }

void write_gpus(std::string& out, const std::vector<std::int32_t>& gpus) {
    write_size(out, gpus.size());
    for (const std::int32_t gpu : gpus) write(out, static_cast<std::uint32_t>(gpu));
}

void write_slice(std::string& out, const MigSlice& slice) {
    write(out, slice.parts);
    write(out, slice.compute);
}

// After its first fault, it reads zeros.
class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}

    bool at_end() const { return rest_.empty(); }
    const Fault& fault() const { return fault_; }
    void refuse(const std::string& why) {
        if (!fault_) fault_ = "snapshot: " + why;
        rest_ = {};
    }

    std::string_view bytes(std::size_t count) {
        if (count > rest_.size()) {
            refuse("it ends too early");
            return {};
        }
        const std::string_view taken = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return taken;
    }

    template <class Unsigned>
    Unsigned number() {
        Unsigned value = 0;
        std::size_t shift = 0;
        for (const char byte : bytes(sizeof(Unsigned))) {
            value |= static_cast<Unsigned>(static_cast<Unsigned>(static_cast<unsigned char>(byte)) << shift);
            shift += 8;
        }
        return value;
    }

    std::vector<std::int32_t> gpus() {
        const auto count = number<std::uint32_t>();
        if (count > rest_.size() / sizeof(std::int32_t)) {
            refuse("it ends too early");
            return {};
        }
        std::vector<std::int32_t> found(count);
        for (std::int32_t& gpu : found) gpu = static_cast<std::int32_t>(number<std::uint32_t>());
        return found;
    }

  private:
    std::string_view rest_;
    Fault fault_;
};

std::vector<MigSlice> read_slices(Reader& reader, std::size_t count) {
    std::vector<MigSlice> slices;
    for (std::size_t i = 0; i < count && !reader.fault(); ++i) {
        const auto parts = reader.number<std::uint32_t>();
        slices.push_back({parts, reader.number<std::uint32_t>()});
        if (slices.back().eighths() == 0 || (parts & ~MigSlice::kAll) != 0)
            reader.refuse("a slice is invalid");
    }
    return slices;
}

// What one job holds; whole GPUs in version 1.
GpuParts read_parts(Reader& reader, std::uint32_t version, const std::string& job, std::size_t num_gpus) {
    GpuParts parts;
    if (version == 1) return parts;
    const auto share = reader.number<std::uint32_t>();
    if (share < 1 || share > kWholeGpu)
        reader.refuse("job \"" + job + "\" has a share of " + std::to_string(share));
    parts.share = static_cast<std::int32_t>(share);
    if (version < 3 || reader.number<std::uint8_t>() == 0) return parts;
    if (parts.share != kWholeGpu) reader.refuse("job \"" + job + "\" has slices and a share");
    parts.slices = read_slices(reader, num_gpus);
    parts.may_reslice = true;
    return parts;
}

// Returns the version.
std::uint32_t read_header(Reader& reader, std::int32_t num_gpus) {
    if (reader.bytes(kMagic.size()) != kMagic) reader.refuse("it does not begin as one");
    const auto version = reader.number<std::uint32_t>();
    if (version < 1 || version > kVersion)
        reader.refuse("it has version " + std::to_string(version) + ", not 1 to " + std::to_string(kVersion));
    const auto stored = reader.number<std::uint32_t>();
    if (stored != static_cast<std::uint32_t>(num_gpus)) {
        reader.refuse("it is of " + std::to_string(stored) + " GPUs, not " + std::to_string(num_gpus));
    }
    return version;
}

void write_held(std::string& out, const std::map<std::string_view, ClusterState::Held>& held) {
    write_size(out, held.size());
    for (const auto& [reason, its] : held) {
        write_size(out, reason.size());
        out += reason;
        write_gpus(out, its.gpus);
        write_gpus(out, its.machines);
    }
}

// What one reason holds.
void read_reason(Reader& reader, std::string_view reason, ClusterState& state) {
    const std::vector<std::int32_t> gpus = reader.gpus();
    const std::vector<std::int32_t> machines = reader.gpus();
    for (const std::int32_t gpu : gpus) {
        if (!state.knows(gpu) || state.withdrawal(gpu).held != 0)
            return reader.refuse("held GPU " + std::to_string(gpu) + " is invalid");
        state.hold(reason, std::span(&gpu, 1));
    }
    for (const std::int32_t machine : machines) {
        const bool is_known = machine >= 0 && machine < state.hosts().num_machines();
        if (!is_known || state.hosts().withdrawal(machine).held != 0)
            return reader.refuse("held machine " + std::to_string(machine) + " is invalid");
        state.hold(reason, {}, std::span(&machine, 1));
    }
    if (gpus.empty() && machines.empty()) reader.refuse("a reason holds nothing");
}

void read_held(Reader& reader, ClusterState& state) {
    const auto reasons = reader.number<std::uint32_t>();
    if (reasons < 1) reader.refuse("nothing is held");
    std::string_view last;
    for (std::uint32_t i = 0; i < reasons && !reader.fault(); ++i) {
        const std::string_view reason = reader.bytes(reader.number<std::uint32_t>());
        if (i > 0 && reason <= last) reader.refuse("reasons are out of order");
        if (state.check_reason(reason)) reader.refuse("too many reasons to hold");
        last = reason;
        read_reason(reader, reason, state);
    }
}

void read_jobs(Reader& reader, std::uint32_t version, ClusterState& state) {
    for (auto jobs = reader.number<std::uint32_t>(); jobs > 0; --jobs) {
        const std::string job(reader.bytes(reader.number<std::uint32_t>()));
        const std::vector<std::int32_t> gpus = reader.gpus();
        GpuParts parts = read_parts(reader, version, job, gpus.size());
        if (reader.fault()) return;
        if (state.allocate(job, gpus, {}, {}, 0, std::move(parts)).status != AllocationStatus::ok)
            return reader.refuse("job \"" + job + "\" is invalid");
    }
}

void read_sliced(Reader& reader, ClusterState& state) {
    for (auto sliced = reader.number<std::uint32_t>(); sliced > 0; --sliced) {
        const auto gpu = static_cast<std::int32_t>(reader.number<std::uint32_t>());
        const auto count = reader.number<std::uint32_t>();
        const std::vector<MigSlice> slices = read_slices(reader, count);
        if (reader.fault()) return;
        if (count < 1 || state.set_slices(gpu, slices).status != AllocationStatus::ok)
            return reader.refuse("the slices of GPU " + std::to_string(gpu) + " are invalid");
    }
}

}  // namespace

std::string ClusterState::snapshot() const {
    std::vector<const Job*> holders = jobs();
    const bool shares = std::any_of(holders.begin(), holders.end(),
                                    [](const Job* job) { return job->second.share != kWholeGpu; });
    const auto held = held_back();
    const bool slices = slices_.num_sliced() > 0 || !held.empty();
    std::string out(kMagic);
    write(out, std::uint32_t{!held.empty() ? 4u : slices ? 3u : shares ? 2u : 1u});
    write_size(out, owner_.size());
    write_gpus(out, drained_gpus());
    std::erase_if(holders, [](const Job* job) { return job->second.gpus.empty(); });
    write_size(out, holders.size());
    for (const Job* job : holders) {
        write_size(out, job->first.size());
        out += job->first;
        write_gpus(out, job->second.gpus);
        if (shares || slices) write(out, static_cast<std::uint32_t>(job->second.share));
        if (!slices) continue;
        write(out, static_cast<std::uint8_t>(job->second.slices.empty() ? 0 : 1));
        for (const MigSlice& slice : job->second.slices) write_slice(out, slice);
    }
    if (slices) write_sliced(out);
    if (!held.empty()) write_held(out, held);
    write(out, checksum(out));
    if constexpr (kAssertionsOn) {
        Fault fault;
        const auto again = restore(out, num_gpus(), {first_gpu_, {}}, fault);
        TOPOPLACE_ASSERT(again && again->jobs_.size() == holders.size());
    }
    return out;
}

void ClusterState::write_sliced(std::string& out) const {
    const std::vector<std::int32_t> gpus = sliced_gpus();
    write_size(out, gpus.size());
    for (const std::int32_t gpu : gpus) {
        write(out, static_cast<std::uint32_t>(gpu));
        write_size(out, slices_.of(gpu).size());
        for (const auto& entry : slices_.of(gpu)) write_slice(out, entry.slice);
    }
}

std::map<std::string_view, ClusterState::Held> ClusterState::held_back() const {
    std::map<std::string_view, Held> found;
    for (const std::int32_t gpu : out_of_service()) {
        if (withdrawal(gpu).held != 0) found[reason(withdrawal(gpu).held)].gpus.push_back(gpu);
    }
    for (std::int32_t machine = 0; machine < hosts_.num_machines(); ++machine) {
        const std::uint16_t held = hosts_.withdrawal(machine).held;
        if (held != 0) found[reason(held)].machines.push_back(machine);
    }
    return found;
}

std::optional<ClusterState> ClusterState::restore(std::string_view bytes, std::int32_t num_gpus,
                                                  Machines machines, Fault& fault) {
    const std::string_view body = bytes.substr(0, bytes.size() - std::min(bytes.size(), kChecksumBytes));
    Reader reader(body);
    const std::uint32_t version = read_header(reader, num_gpus);
    if (Reader(bytes.substr(body.size())).number<std::uint64_t>() != checksum(body))
        reader.refuse("its checksum is wrong");
    fault = reader.fault() ? reader.fault() : check(num_gpus, machines);
    if (fault) return std::nullopt;
    ClusterState state(num_gpus, std::move(machines));
    const std::vector<std::int32_t> drained = reader.gpus();
    read_jobs(reader, version, state);
    if (version >= 3) read_sliced(reader, state);
    if (version == 4) read_held(reader, state);
    TOPOPLACE_ASSERT(state.open_transactions_ == 0 && state.log_.empty());
    if (!reader.at_end()) reader.refuse("it goes on after its end");
    for (const std::int32_t gpu : drained) {
        if (reader.fault()) break;
        if (!state.knows(gpu) || !state.drain(gpu))
            reader.refuse("drained GPU " + std::to_string(gpu) + " is invalid");
    }
    fault = reader.fault();
    if (fault) return std::nullopt;
    return state;
}

}  // namespace topoplace
