#include "sim/scenario/rules.h"

#include <algorithm>

namespace foretrain {

bool within(std::string_view pointer, std::string_view outer) {
  return pointer.starts_with(outer) &&
         (pointer.size() == outer.size() || pointer[outer.size()] == '/');
}

bool related(std::string_view a, std::string_view b) {
  return within(a, b) || within(b, a);
}

Rules::Rules(std::vector<Diagnostic>& faults, const ScenarioWaivers& waived)
    : faults_(faults), waived_(waived), read_faults_(faults.size()) {
  // A misspelt key leaves the key that was meant without its value.
  for (const Diagnostic& fault : faults_) {
    const std::size_t open = fault.hint.find('"');
    const std::size_t close = fault.hint.rfind('"');
    if (fault.message == "unknown key" && open != std::string::npos && open < close) {
      const std::string parent = fault.pointer.substr(0, fault.pointer.rfind('/'));
      tainted_.push_back(parent + "/" + fault.hint.substr(open + 1, close - open - 1));
    }
  }
}

bool Rules::sound(std::initializer_list<std::string_view> pointers) const {
  const auto fails = [&](std::string_view pointer) {
    for (std::size_t index = 0; index < faults_.size(); ++index) {
      const Diagnostic& fault = faults_[index];
      const bool touches =
          index < read_faults_ ? related(fault.pointer, pointer) : within(fault.pointer, pointer);
      if (touches && fault.message != "unknown key") {
        return true;
      }
    }
    return std::any_of(tainted_.begin(), tainted_.end(), [&](const std::string& taint) {
      return related(taint, pointer);
    });
  };
  return std::none_of(pointers.begin(), pointers.end(), fails);
}

}  // namespace foretrain
