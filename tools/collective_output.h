#pragma once

#include "tools/collective_question.h"
#include "tools/collective_verdict.h"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace foretrain {

/// "dgx-h100-ndr400: all_reduce of 16 ranks, 8 in each of 2 nodes"
std::string collective_header(const CollectiveQuestion& question);

/// One size as sentences; several as nccl-tests' table.
std::string collective_page(const CollectiveQuestion& question, const std::vector<Bytes>& sizes);

/// The contract's fields of the last size; with several also "rows".
nlohmann::ordered_json collective_json(const CollectiveQuestion& question,
                                       const std::vector<Bytes>& sizes);

/// Measured beside modelled.
std::string verdict_page(const CollectiveQuestion& question, const CollectiveVerdict& verdict);
nlohmann::ordered_json verdict_json(const CollectiveQuestion& question,
                                    const CollectiveVerdict& verdict);

}  // namespace foretrain
