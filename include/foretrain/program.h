#pragma once

#include "foretrain/flow.h"
#include "foretrain/units.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// The machine's language: streams, tasks, dependencies, groups. Knows nothing of transformers,
/// pipelines or GPUs. A program is one step body, repeated with carried state.
///
/// Templates and instances: ranks that run the same list share a Template and differ by peers,
/// groups and factors. A Template is a list of Calls of Blocks (a Block is a small DAG, reused by
/// many calls).
///
/// Semantics, all of them:
///  * A stream is a FIFO per instance: its tasks run in list order, one at a time, across steps
///  too.
///  * kLocal: start = max(stream, dependencies, host launch), end = start + duration.
///  * kCollective: a member is there from its own start (as kLocal); all members of its group begin
///    the transfer at the latest start and end together: begin + the longest duration any member
///    states. The n-th collective of a step, in list order, that an instance issues on a group kind
///    meets the n-th of every other member.
///  * kSend: as kLocal; kReceive: end = max(own start, end of the matching send), its work is not
///    used. Send and receive match by (instance, peer instance, message) within a step; a template
///    sends a message at most once and receives a message at most once.
///  * Durations: sum over resources of work * factor, rounded up once.
///  * Host: no task of step k starts before (end of its template's host_sync_task in step k - 1; 0
///    in the first step, and without such a task) + call launch offset + task launch offset.
namespace foretrain {

/// What a duration is made of; each is priced by its own factor.
enum class Resource : std::uint8_t { kTensor, kMemory, kOptimizer, kLink, kNic, kLatency };
inline constexpr int kResourceCount = 6;
using Work = std::array<std::int64_t, kResourceCount>;  ///< picoseconds per resource at factor 1

/// Factors are fixed-point: kUnitFactor is 1.0.
inline constexpr std::int64_t kUnitFactor = std::int64_t{1} << 20;
using Factors = std::array<std::int64_t, kResourceCount>;
inline constexpr Factors kUnitFactors = {
    kUnitFactor, kUnitFactor, kUnitFactor, kUnitFactor, kUnitFactor, kUnitFactor};

/// ceil(sum(work[r] * factor[r]) / kUnitFactor), exact in 128 bits.
Duration duration_of(const Work& work, const Factors& factors);

enum class TaskKind : std::uint8_t { kLocal, kCollective, kSend, kReceive };

/// One kernel or transfer of a block.
struct Task {
  Work work{};
  std::int64_t bytes = 0;        ///< sent by this rank (collectives, sends); received (receives)
  std::int64_t flops = 0;        ///< model FLOPs, for conservation checks and labels
  Duration launch_offset{};      ///< host time from the start of the call to this launch
  std::int32_t stream = 0;       ///< index into Program::streams
  std::int32_t group_kind = -1;  ///< kCollective: index into Program::group_kinds
  std::int32_t peer_slot = -1;   ///< kSend, kReceive: index into Instance::peers
  std::int32_t label = 0;        ///< index into Program::labels
  std::int32_t account = 0;      ///< primary stream only: which busy account the time goes to
  std::int32_t first_dependency = 0, dependency_count = 0;  ///< into Block::dependencies
  TaskKind kind = TaskKind::kLocal;
};

/// Tasks in issue order; dependencies point to earlier tasks of the same block.
struct Block {
  std::string name;
  std::vector<Task> tasks;
  std::vector<std::int32_t> dependencies;
};

/// A dependency that crosses calls: task `task` of the call (local index) waits for task `producer`
/// of the same instance (index within the template: Call::first_task + local index).
struct CallDependency {
  std::int32_t task = 0;
  std::int32_t producer = 0;
  bool previous_step = false;  ///< the producer ran in the step before; satisfied in a cold start
};

/// One use of a block.
struct Call {
  std::int32_t block = 0;
  std::int32_t first_task = 0;  ///< template-wide index of its first task
  std::int32_t first_dependency = 0,
               dependency_count = 0;          ///< into Template::dependencies, by task
  std::int32_t message = -1;                  ///< blocks of one send or receive: which message
  std::int32_t stage = -1, micro_batch = -1;  ///< tags for labels
  std::int32_t label = -1;  ///< index into labels: the call's name where the tags do not tell it
  std::int32_t work_class = -1;  ///< calls that would be alike if every stage were; -1: none
  Duration launch_offset{};      ///< host time from the step's sync point to this call
  /// Factors onto the durations of its tasks, as transfers and kernels beside one another slow each
  /// other: of kLocal tasks on stream 0, and of transfers.
  std::int64_t kernel_stretch = kUnitFactor;
  std::int64_t transfer_stretch = kUnitFactor;
  std::int64_t allocated_bytes = 0;  ///< taken when the call's first task starts
  std::int64_t freed_bytes = 0;      ///< given back when its last task ends
};

struct Template {
  std::string name;
  std::vector<Call> calls;
  std::vector<CallDependency> dependencies;
  std::int32_t task_count = 0;
  std::int32_t step_end_task = -1;   ///< its end ends the instance's step; on stream 0 (optimizer)
  std::int32_t host_sync_task = -1;  ///< the host waits for it before the next step; -1: never
  std::int64_t base_bytes = 0;       ///< memory held throughout
  std::int32_t stage = 0;            ///< label: pipeline rank
};

inline constexpr int kPeerSlots = 2;

/// The links a transfer shares with others. Its latency passes first; what is then left of its
/// duration is time at `limit`, and longer where links are full.
struct SharedPath {
  std::vector<LinkUse> uses;  ///< into Program::links; empty: the transfer shares nothing
  double limit = 0;           ///< bytes per second when alone
  bool operator==(const SharedPath&) const = default;
};

/// A link, or a class of links that carry the same.
struct SharedLink {
  std::string id;
  double capacity = 0;            ///< bytes per second, one direction
  std::int64_t multiplicity = 1;  ///< links it stands for
};

struct Instance {
  std::int32_t template_index = 0;
  std::int32_t rank = 0;          ///< label; in a folded program the lowest rank of the class
  std::int64_t multiplicity = 1;  ///< ranks this instance stands for
  std::array<std::int32_t, kPeerSlots> peers = {-1, -1};  ///< instance indices
  std::array<SharedPath, kPeerSlots> paths;  ///< of sends to them; empty: nothing is shared
  std::vector<std::int32_t> groups;  ///< per group kind: index into Program::groups[kind]; -1: none
                                     ///< (then no task may be a collective of that kind)
  std::int32_t factor_set = 0;       ///< index into Program::factor_sets
  std::int32_t mark = 0;             ///< instances with different marks are never folded together
};

/// Factors of an instance over the steps of a run.
struct FactorWindow {
  Factors factors = kUnitFactors;              ///< multiplied onto the base
  std::int64_t first_step = 0, last_step = 0;  ///< inclusive; measured steps count from 0
};
struct FactorSet {
  Factors base = kUnitFactors;
  std::vector<FactorWindow> windows;
  bool operator==(const FactorSet&) const = default;
};
bool operator==(const FactorWindow& a, const FactorWindow& b);
/// The base times every window that holds the step, each product rounded up; windows hold no step
/// before the first measured one (negative).
Factors factors_at(const FactorSet& set, std::int64_t measured_step);

enum class StreamRole : std::uint8_t {
  kPrimary,     ///< the compute stream: its idle time is explained
  kCollective,  ///< waiting for a transfer on it counts as exposed communication of its account
  kPointToPoint,
  kOther,
};
struct Stream {
  std::string name;  ///< "compute", "tp", "dp", "pp send next", ...
  StreamRole role = StreamRole::kOther;
  std::int32_t account = 0;  ///< index into Program::exposed_accounts
};

struct Program {
  std::vector<Stream> streams;                ///< stream 0 is the primary one
  std::vector<std::string> group_kinds;       ///< "tp", "dp", "world", "embedding"
  std::vector<std::string> busy_accounts;     ///< "compute", "recompute", "optimizer"
  std::vector<std::string> exposed_accounts;  ///< "tp", "dp", ...
  std::vector<std::string> labels;
  std::vector<Block> blocks;
  std::vector<Template> templates;
  std::vector<Instance> instances;
  std::vector<std::vector<std::vector<std::int32_t>>> groups;  ///< [kind][group] -> instances
  std::vector<FactorSet> factor_sets = {FactorSet{}};
  std::vector<SharedLink> links;  ///< empty: transfers take the same time whatever else runs
  std::vector<std::vector<SharedPath>> group_paths;  ///< [kind][group]; empty: nothing is shared
  bool shares_links() const { return !links.empty(); }
};

/// What is wrong with a program (indices, acyclicity, collective counts, messages, memory balance);
/// empty: sound. Checked after lowering and before running.
std::vector<std::string> program_faults(const Program& program);

/// A program whose instances are classes of ranks that cannot differ: the coarsest stable
/// partition, refined from templates and factors outward over groups and peers. A folded run gives
/// the same times for every rank as the full one.
struct FoldedProgram {
  Program program;
  std::vector<std::int32_t> class_of;  ///< per instance of the full program
};
FoldedProgram fold(const Program& program);

/// The same program under other assumptions; used to split idle time (MODEL 8).
Program without_factors(const Program& program);
Program with_free_point_to_point(const Program& program);
/// Calls of one work class made equal: on each stream of role kPrimary or kCollective by itself,
/// every call carries the mean over the stages of its class (of each, over its calls and the ranks
/// that run them), to the picosecond. Calls that carry it already do not change; a block without
/// tasks on a stream gets none there.
Program with_equal_calls(const Program& program);

}  // namespace foretrain
