#include "foretrain/program.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Only what a stage's share of the model decides is made equal: no messages, no optimizer, whose
/// work follows the parameters and not the micro-batches.
bool is_scaled(const Program& program, const Task& task) {
  const StreamRole role = program.streams[task.stream].role;
  return (role == StreamRole::kPrimary || role == StreamRole::kCollective) &&
         (task.kind == TaskKind::kLocal || task.kind == TaskKind::kCollective) &&
         task.work[static_cast<int>(Resource::kOptimizer)] == 0;
}

using PerStream = std::vector<Int128>;  ///< ps per stream

std::vector<PerStream> totals_of(const Program& program) {
  std::vector<PerStream> blocks;
  for (const Block& block : program.blocks) {
    PerStream sums(program.streams.size(), 0);
    for (const Task& task : block.tasks) {
      for (const std::int64_t work : task.work) {
        sums[task.stream] += is_scaled(program, task) ? work : 0;
      }
    }
    blocks.push_back(std::move(sums));
  }
  std::vector<PerStream> templates;
  for (const Template& list : program.templates) {
    PerStream sums(program.streams.size(), 0);
    for (const Call& call : list.calls) {
      for (std::size_t s = 0; s < sums.size(); ++s) {
        sums[s] += blocks[call.block][s];
      }
    }
    templates.push_back(std::move(sums));
  }
  return templates;
}

/// Per stream, the mean over the ranks whose template has any work there, to the nearest
/// picosecond.
PerStream means_of(const Program& program, const std::vector<PerStream>& totals) {
  PerStream means(program.streams.size(), 0);
  for (std::size_t s = 0; s < means.size(); ++s) {
    Int128 sum = 0;
    Int128 ranks = 0;
    for (const Instance& instance : program.instances) {
      const Int128 total = totals[instance.template_index][s];
      sum += total * instance.multiplicity;
      ranks += total > 0 ? instance.multiplicity : 0;
    }
    means[s] = ranks > 0 ? (sum + ranks / 2) / ranks : 0;
  }
  return means;
}

Block scaled(const Program& program, const Block& block, const PerStream& to, const PerStream& of) {
  Block result = block;
  for (Task& task : result.tasks) {
    if (!is_scaled(program, task)) {
      continue;
    }
    for (std::int64_t& work : task.work) {
      if (work > 0) {
        work = static_cast<std::int64_t>((work * to[task.stream] + of[task.stream] / 2) /
                                         of[task.stream]);
      }
    }
  }
  return result;
}

}  // namespace

Program with_equal_templates(const Program& program) {
  const std::vector<PerStream> totals = totals_of(program);
  const PerStream means = means_of(program, totals);
  Program result = program;
  for (std::size_t t = 0; t < program.templates.size(); ++t) {
    bool equal = true;
    for (std::size_t s = 0; s < means.size(); ++s) {
      equal = equal && (totals[t][s] == 0 || totals[t][s] == means[s]);
    }
    if (equal) {
      continue;
    }
    std::vector<std::int32_t> copies(program.blocks.size(), -1);
    for (Call& call : result.templates[t].calls) {
      std::int32_t& copy = copies[call.block];
      if (copy < 0) {
        copy = static_cast<std::int32_t>(result.blocks.size());
        result.blocks.push_back(scaled(program, program.blocks[call.block], means, totals[t]));
      }
      call.block = copy;
    }
  }
  return result;
}

}  // namespace foretrain
