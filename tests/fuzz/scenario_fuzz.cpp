#include "foretrain/scenario.h"
#include "sim/base/check.h"

#include <cstddef>
#include <cstdint>
#include <string>

/// Rule: any text is either refused with reasons or a scenario that writes and reads back the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const auto scenario = foretrain::parse_scenario(text);
  if (!scenario) {
    FORETRAIN_CHECK(!scenario.error().list.empty(), "a refusal without a reason");
    return 0;
  }
  const std::string written = foretrain::write_scenario(*scenario);
  const auto again = foretrain::parse_scenario(written);
  FORETRAIN_CHECK(again.has_value(), "its own text is refused: %s", written.c_str());
  FORETRAIN_CHECK(foretrain::write_scenario(*again) == written, "reads back otherwise");
  return 0;
}
