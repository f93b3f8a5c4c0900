#pragma once

#include "foretrain/program.h"
#include "sim/lower/vocabulary.h"

#include <cstdint>
#include <vector>

namespace foretrain {

/// A Template being written: calls appended in issue order, each with what it waits for.
class CallList {
 public:
  CallList(Template& body, Vocabulary& vocabulary) : body_(body), vocabulary_(vocabulary) {}

  /// Appends a call of `block`; `launch` is the host time of its launches. Returns its index.
  std::int32_t append(std::int32_t block, Duration launch);

  /// Appends a call of a block made of one task.
  std::int32_t append_single(const Task& task, const char* name, Duration launch);

  /// Task `task` (local) of the last call appended waits for `producer` (template-wide index).
  void wait(std::int32_t task, std::int32_t producer, bool previous_step = false);

  /// The same for a call appended earlier.
  void wait_in(std::int32_t call, std::int32_t task, std::int32_t producer, bool previous_step);

  Call& call(std::int32_t index) { return body_.calls[static_cast<std::size_t>(index)]; }
  Call& last() { return body_.calls.back(); }

  /// Template-wide index of a local task of a call.
  std::int32_t task_of(std::int32_t call, std::int32_t local) const {
    return body_.calls[static_cast<std::size_t>(call)].first_task + local;
  }

  /// Sorts each call's dependencies by task and writes the template's table. Call once, at the end.
  void finish();

 private:
  struct Wait {
    std::int32_t call;
    CallDependency dependency;
  };
  Template& body_;
  Vocabulary& vocabulary_;
  std::vector<Wait> waits_;
  Duration launched_{};
};

}  // namespace foretrain
