#pragma once

#include "foretrain/scenario.h"

#include <string>
#include <vector>

namespace foretrain {

/// Llama 3 70B on 64 GPUs: 80 layers, 64 heads, 8 key/value heads; tp 8, pp 4, so dp 2.
inline const std::string kExample = R"({
  "model": "llama3-70b",
  "cluster": {"topology": "dgx-h100-ndr400", "gpus": 64},
  "training": {"sequence_length": 8192, "global_batch_size": 512},
  "parallelism": {"tp": 8, "pp": 4}
})";

/// "pointer | message | hint" of every fault of the example after overrides; empty when it is good.
inline std::vector<std::string> faults_of(const std::vector<std::string>& overrides,
                                          const std::string& text = kExample) {
  const Expected<Scenario> scenario = parse_scenario(text, ".", overrides);
  std::vector<std::string> lines;
  if (!scenario) {
    for (const Diagnostic& fault : scenario.error().list) {
      lines.push_back(fault.pointer + " | " + fault.message + " | " + fault.hint);
    }
  }
  return lines;
}

}  // namespace foretrain
