#include "foretrain/quantity.h"
#include "sim/base/check.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

template <typename T>
void must_answer(const foretrain::Expected<T>& parsed) {
  if (!parsed) {
    FORETRAIN_CHECK(!parsed.error().list.empty(), "a refusal without a reason");
    FORETRAIN_CHECK(!parsed.error().list.front().message.empty(), "an empty message");
  }
}

}  // namespace

/// Rule: any text is a quantity that fits its type or is refused with a reason; none overflows.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  must_answer(foretrain::parse_duration(text));
  must_answer(foretrain::parse_bytes(text));
  must_answer(foretrain::parse_size(text));
  must_answer(foretrain::parse_bandwidth(text));
  must_answer(foretrain::parse_flop_rate(text));
  if (const auto duration = foretrain::parse_duration(text)) {
    FORETRAIN_CHECK(duration->count() >= 0, "a negative duration");
  }
  return 0;
}
