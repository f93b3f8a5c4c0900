#include "sim/lower/call_list.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace foretrain {

std::int32_t CallList::append(std::int32_t block, Duration launch) {
  Call call;
  call.block = block;
  call.first_task = body_.task_count;
  call.launch_offset = launched_;
  launched_ += launch;
  body_.task_count += static_cast<std::int32_t>(
      vocabulary_.program().blocks[static_cast<std::size_t>(block)].tasks.size());
  body_.calls.push_back(call);
  return static_cast<std::int32_t>(body_.calls.size()) - 1;
}

std::int32_t CallList::append_single(const Task& task, const char* name, Duration launch) {
  Task launched = task;
  launched.launch_offset = launch;
  return append(vocabulary_.single(launched, name), launch);
}

void CallList::wait(std::int32_t task, std::int32_t producer, bool previous_step) {
  wait_in(static_cast<std::int32_t>(body_.calls.size()) - 1, task, producer, previous_step);
}

void CallList::wait_in(std::int32_t call,
                       std::int32_t task,
                       std::int32_t producer,
                       bool previous_step) {
  waits_.push_back({call, {task, producer, previous_step}});
}

void CallList::finish() {
  const auto key = [](const Wait& wait) {
    return std::tuple(wait.call, wait.dependency.task, wait.dependency.producer);
  };
  std::sort(waits_.begin(), waits_.end(), [&key](const Wait& a, const Wait& b) {
    return key(a) < key(b);
  });
  for (const Wait& wait : waits_) {
    Call& waiting = call(wait.call);
    if (waiting.dependency_count == 0) {
      waiting.first_dependency = static_cast<std::int32_t>(body_.dependencies.size());
    }
    ++waiting.dependency_count;
    body_.dependencies.push_back(wait.dependency);
  }
}

}  // namespace foretrain
