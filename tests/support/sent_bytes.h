#pragma once

#include "foretrain/program.h"

#include <cstdint>
#include <map>
#include <string>

namespace foretrain::test {

/// Bytes sent in a step by all ranks, by the stream they went over.
inline std::map<std::string, std::int64_t> sent_by_stream(const Program& program) {
  std::map<std::string, std::int64_t> sent;
  for (const Instance& instance : program.instances) {
    const Template& body = program.templates[static_cast<std::size_t>(instance.template_index)];
    for (const Call& call : body.calls) {
      for (const Task& task : program.blocks[static_cast<std::size_t>(call.block)].tasks) {
        if (task.kind == TaskKind::kCollective) {
          sent[program.streams[static_cast<std::size_t>(task.stream)].name] += task.bytes;
        }
      }
    }
  }
  return sent;
}

}  // namespace foretrain::test
