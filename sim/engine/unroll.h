#pragma once

#include "foretrain/program.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace foretrain {

/// A task of a template, its call unrolled.
struct UnrolledTask {
  const Task* task = nullptr;
  const Call* call = nullptr;
  std::int64_t launch = 0;  ///< ps from the host's base
  std::int32_t call_index = 0, local = 0;
  std::int32_t ordinal = -1;                    ///< collectives: n-th of the kind
  std::int32_t first_wait = 0, wait_count = 0;  ///< into UnrolledTemplate::waits
};

/// One template, call for call.
struct UnrolledTemplate {
  std::vector<UnrolledTask> tasks;
  /// By task, `task` unused. Waits that a stream's order keeps anyway are left out.
  std::vector<CallDependency> waits;
  std::vector<std::vector<std::int32_t>> streams;
  std::vector<std::int32_t> communication;     ///< sends, receives, all of collective streams
  std::vector<std::int32_t> carried;           ///< tasks the next step waits for
  std::map<std::int32_t, std::int32_t> sends;  ///< message -> task
  std::int32_t host_sync = -1;                 ///< a task; -1: none
  bool host_bound = false;                     ///< some launch is not 0, or there is a host_sync

  std::span<const CallDependency> waits_of(const UnrolledTask& task) const {
    return std::span(waits).subspan(static_cast<std::size_t>(task.first_wait),
                                    static_cast<std::size_t>(task.wait_count));
  }
};

UnrolledTemplate unroll(const Program& program, const Template& list);

}  // namespace foretrain
