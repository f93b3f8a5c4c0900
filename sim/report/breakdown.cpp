#include "foretrain/report.h"

namespace foretrain {

const std::array<BreakdownPart, kBreakdownParts>& breakdown_parts() {
  static constexpr std::array<BreakdownPart, kBreakdownParts> kParts = {{
      {"compute", "compute", &Breakdown::compute},
      {"recompute", "recompute", &Breakdown::recompute},
      {"tp", "tensor comm", &Breakdown::tp},
      {"cp", "context comm", &Breakdown::cp},
      {"ep", "expert comm", &Breakdown::ep},
      {"pp", "pipeline comm", &Breakdown::pp},
      {"dp", "data comm", &Breakdown::dp},
      {"optimizer", "optimizer", &Breakdown::optimizer},
      {"bubble", "bubble", &Breakdown::bubble},
      {"imbalance", "imbalance", &Breakdown::imbalance},
      {"straggler", "stragglers", &Breakdown::straggler},
      {"other", "host and stalls", &Breakdown::other},
  }};
  return kParts;
}

std::string_view to_string(Fit fit) {
  switch (fit) {
    case Fit::kYes:
      return "yes";
    case Fit::kBorderline:
      return "borderline";
    case Fit::kNo:
      return "no";
  }
  return "no";
}

}  // namespace foretrain
