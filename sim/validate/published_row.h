#pragma once

#include "foretrain/diagnostic.h"
#include "sim/validate/csv.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace foretrain {

/// A row as published: text as it stands, "" or nothing where a field is empty.
struct PublishedRow {
  std::int64_t line = 0;
  std::string id, split, source, source_detail, model, gpu, internode_bw_note, dtype, sharding;
  std::string recompute, schedule, overlap_note, kernel, measured_metric, unit, notes;
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, ffn, vocab, seq, experts, topk;
  std::optional<std::int64_t> gpus, gpus_per_node, tp, cp, pp, vpp, ep, dp, sp, mbs, gbs;
  std::optional<double> params_b, measured_value, step_time_s, mfu;
  std::optional<bool> fits;
};

/// The rows of a table. Faults: a column that is missing or likely misspelt, a number that is none
/// or not positive, an id that is missing or stands twice. Pointers /LINE/COLUMN.
Expected<std::vector<PublishedRow>> published_rows(const CsvTable& table);

}  // namespace foretrain
