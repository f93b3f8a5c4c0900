#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

/// Bad input is a list of values, never an exception: every fault at once.
namespace foretrain {

/// One fault of a user's input.
struct Diagnostic {
  std::string pointer;  ///< JSON pointer of the value at fault; "" for the whole text
  std::string message;  ///< what is wrong, with the numbers
  std::string hint;     ///< what would be right; may be empty
  bool operator==(const Diagnostic&) const = default;
};

/// What kind of refusal a list of faults is; decides the exit code.
enum class FaultKind { kBadInput, kFile };

struct Faults {
  std::vector<Diagnostic> list;
  FaultKind kind = FaultKind::kBadInput;  ///< kFile: a file cannot be read or written (exit 3)
};

template <typename T>
using Expected = tl::expected<T, Faults>;

inline tl::unexpected<Faults> refuse(Diagnostic fault) {
  return tl::unexpected<Faults>(Faults{{std::move(fault)}, FaultKind::kBadInput});
}
inline tl::unexpected<Faults> refuse(std::vector<Diagnostic> faults) {
  return tl::unexpected<Faults>(Faults{std::move(faults), FaultKind::kBadInput});
}
inline tl::unexpected<Faults> refuse_file(std::string path, std::string why) {
  return tl::unexpected<Faults>(Faults{{{"", path + ": " + why, ""}}, FaultKind::kFile});
}

}  // namespace foretrain
