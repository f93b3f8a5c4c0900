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
  const EstimateParts& parts = estimate.parts;
  const double without_data = estimate.step_time_s - parts.dp;
  const double without_bubble = without_data - parts.bubble;
  std::vector<WaterfallStep> steps = {{"kernels", assumptions.efficiency}};
  double micro_batches = parts.compute;  // time inside them so far
  double around = 1;                     // what fill and drain, and the step's end, leave of them
  for (const Loss& loss : kLosses) {
    const double lost = parts.*loss.member;
    if (loss.member == &EstimateParts::bubble) {
      around *= without_bubble / without_data;
    } else if (loss.member == &EstimateParts::dp) {
      around *= without_data / estimate.step_time_s;
    } else {
      micro_batches += lost;
    }
    if (loss.usual || lost > 0) {
      steps.push_back({loss.name, assumptions.efficiency * around * parts.compute / micro_batches});
    }
  }
  return steps;
}

}  // namespace foretrain
