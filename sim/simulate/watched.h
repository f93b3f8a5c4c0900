#pragma once

#include "foretrain/program.h"

#include <cstdint>
#include <vector>

/// Of whom the passes record what runs beside what, and who is taken to be like them.
namespace foretrain {

class Watched {
 public:
  /// All classes where their records of a step are at most `most_records`; else the class of most
  /// ranks of each template, or of each stage, or of stages as evenly apart as fit. One class is
  /// watched whatever it records.
  Watched(const Program& folded, std::int64_t most_records);

  const std::vector<std::int32_t>& instances() const { return instances_; }
  std::int64_t records() const { return records_; }

  /// The watched template that tells of a template: itself, or the nearest by stage.
  std::int32_t template_for(std::int32_t index) const {
    return stand_ins_[static_cast<std::size_t>(index)];
  }
  /// Per call of `index`, the call of `template_for(index)` whose block is the like of its own: the
  /// same name and the same place among blocks of that name; -1: none.
  std::vector<std::int32_t> calls_for(std::int32_t index) const;

 private:
  const Program& program_;
  std::vector<std::int32_t> instances_;
  std::int64_t records_ = 0;
  std::vector<std::int32_t> stand_ins_;  ///< per template
};

}  // namespace foretrain
