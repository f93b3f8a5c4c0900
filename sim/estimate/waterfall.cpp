#include "foretrain/estimate.h"

namespace foretrain {
namespace {

constexpr EstimatePart kParts[] = {
    {"compute", "compute", &EstimateParts::compute},
    {"recompute", "recompute", &EstimateParts::recompute},
    {"imbalance", "imbalance", &EstimateParts::imbalance},
    {"tp", "tensor comm", &EstimateParts::tp},
    {"cp", "context comm", &EstimateParts::cp},
    {"ep", "expert comm", &EstimateParts::ep},
    {"pp", "pipeline comm", &EstimateParts::pp},
    {"bubble", "bubble", &EstimateParts::bubble},
    {"dp", "data comm", &EstimateParts::dp},
};

/// A loss in the order it is taken; `usual`: shown even when it costs nothing.
struct Loss {
  std::string_view name;
  double EstimateParts::*member;
  bool usual;
};
constexpr Loss kLosses[] = {
    {"imbalance", &EstimateParts::imbalance, false},
    {"bubble", &EstimateParts::bubble, true},
    {"tensor", &EstimateParts::tp, true},
    {"context", &EstimateParts::cp, false},
    {"expert", &EstimateParts::ep, false},
    {"pipeline", &EstimateParts::pp, false},
    {"data", &EstimateParts::dp, true},
    {"recompute", &EstimateParts::recompute, true},
};

}  // namespace

std::span<const EstimatePart> estimate_parts() {
  return kParts;
}

std::vector<WaterfallStep> waterfall(const Estimate& estimate, const Assumptions& assumptions) {
  std::vector<WaterfallStep> steps = {{"kernels", assumptions.efficiency}};
  double so_far = estimate.parts.compute;
  for (const Loss& loss : kLosses) {
    const double lost = estimate.parts.*loss.member;
    so_far += lost;
    if (loss.usual || lost > 0) {
      steps.push_back({loss.name, assumptions.efficiency * estimate.parts.compute / so_far});
    }
  }
  return steps;
}

}  // namespace foretrain
