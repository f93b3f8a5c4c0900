#include "tools/estimate_bars.h"

#include "tools/estimate_numbers.h"
#include "tools/estimate_output.h"

#include "sim/base/format.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace foretrain {
namespace {

/// Columns of the longest bar; the rest of a line takes 68.
double bar_columns(int width) {
  return std::clamp(width - 68, 12, 44);
}

/// Where the bytes of tensor, data and pipeline traffic run.
std::string link_text(const EstimateAnswer& answer, std::string_view dimension) {
  const Assumptions& given = answer.assumptions;
  const double rate = link_bandwidth(given, answer.estimate.layout, dimension);
  return assumption_text(AssumptionUnit::kBandwidth, rate) +
         (rate == given.node_bandwidth ? " inside the node" : " between nodes");
}

/// Why a loss is what it is, in a few words.
std::string loss_note(const EstimateAnswer& answer, std::string_view loss) {
  const Estimate& estimate = answer.estimate;
  const Layout& layout = estimate.layout;
  const bool chapter = answer.assumptions.form == ClosedForm::kChapter;
  if (loss == "kernels") {
    return "efficiency, assumed";
  }
  if (loss == "bubble" && layout.pp > 1) {
    const std::string passes =
        with_commas(estimate.micro_batches) +
        (layout.vpp > 1 ? " x " + std::to_string(layout.vpp) : std::string());
    const std::string filled = std::to_string(layout.pp - 1);
    return filled + "/(" + passes + " + " + filled + ") = " + percent(bubble_share(estimate)) +
           " idle";
  }
  if (loss == "tensor" && layout.tp > 1) {
    return "exposed, " + link_text(answer, "tp");
  }
  if (loss == "data" && layout.dp * layout.cp > 1) {
    return chapter ? percent(answer.assumptions.dp_overlap, 0) + " hidden, " +
                         link_text(answer, layout.dp > 1 ? "dp" : "cp")
                   : "hidden behind the step";
  }
  if (loss == "imbalance") {
    const bool experts = answer.assumptions.has_experts;
    return !experts        ? "slowest stage over the mean"
           : layout.pp > 1 ? "slowest stage, busiest experts"
                           : "busiest experts over the mean";
  }
  if (loss == "context") {
    return "what attention cannot hide";
  }
  if (loss == "expert") {
    return "4 all-to-alls a layer";
  }
  if (loss == "pipeline") {
    return percent(answer.assumptions.pp_overlap, 0) + " hidden, " + link_text(answer, "pp");
  }
  return loss == "recompute" ? recompute_text(estimate) : "";
}

/// One bar of a pile: where it begins, how long it is, and the limit's mark when not yet reached.
std::string pile(double from, double bytes, double columns_per_byte, double limit) {
  const auto start = static_cast<std::size_t>(std::floor(from * columns_per_byte));
  std::string text =
      std::string(start, ' ') + bar((from + bytes) * columns_per_byte - static_cast<double>(start));
  const auto mark = static_cast<int>(std::lround(limit * columns_per_byte));
  return display_width(text) < mark ? pad(text, mark) + "│" : text;
}

std::string activations_note(const EstimateAnswer& answer) {
  const Estimate& estimate = answer.estimate;
  const bool whole = estimate.stage_layers == std::floor(estimate.stage_layers);
  const std::string recompute = recompute_text(estimate);
  return fixed(estimate.stage_layers, whole ? 0 : 1) + " layers" +
         (recompute.empty() ? ""
                            : ", " + std::to_string(estimate.recompute_layers) + " recomputed");
}

}  // namespace

std::string waterfall_lines(const EstimateAnswer& answer, int width) {
  const double columns = bar_columns(width);
  const double full = answer.waterfall.front().mfu;
  std::string text = "utilisation: share of the peak left after each loss, points it took\n";
  double before = full;
  for (const WaterfallStep& step : answer.waterfall) {
    const double kept = columns * step.mfu / full;
    const std::string solid = bar(kept);
    const double lost = std::round(columns * before / full) - std::ceil(kept);
    std::string shade;
    for (int i = 0; i < static_cast<int>(lost); ++i) {
      shade += "░";
    }
    constexpr double kShown = 0.0005;  // of the peak: less prints as nothing
    const bool none = before - step.mfu < kShown;
    std::string line = "  " + pad(std::string(step.after), 10) + pad(percent(step.mfu), 7, true) +
                       pad(none ? "" : "-" + fixed(100 * (before - step.mfu), 1), 7, true) + "  " +
                       pad(solid + shade, static_cast<int>(columns) + 2) +
                       loss_note(answer, step.after);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    before = step.mfu;
  }
  return text;
}

std::string memory_lines(const EstimateAnswer& answer, int width) {
  const double columns = bar_columns(width);
  const Estimate& estimate = answer.estimate;
  const Assumptions& given = answer.assumptions;
  const EstimateMemory& memory = estimate.memory;
  const Layout& layout = estimate.layout;
  const double most = std::max(memory.total(), estimate.memory_limit);
  const std::int64_t holders = layout.tp * layout.cp * layout.dp / (layout.ep * layout.etp);
  const std::string ranks =
      " / " + with_commas(layout.dp * layout.cp) +
      (given.has_experts ? ", experts / " + with_commas(holders) : std::string(" ranks"));
  struct Row {
    const char* name;
    double bytes, per_parameter;
    Sharding sharded_from;
  };
  const std::array<Row, 3> states = {
      {{"weights", memory.weights, given.weight_bytes, Sharding::kZero3},
       {"gradients", memory.gradients, given.gradient_bytes, Sharding::kZero2},
       {"optimizer", memory.optimizer, given.optimizer_bytes, Sharding::kZero1}}};
  std::string text = "memory of one GPU, fullest stage, against " +
                     gigabytes_text(estimate.memory_limit) + " (" +
                     gibibytes_text(estimate.memory_limit) + ", │)\n";
  double so_far = 0;
  const auto add = [&](const char* name, double bytes, double from, const std::string& note) {
    std::string line = "  " + pad(name, 12) + pad(gigabytes_text(bytes), 9, true) +
                       pad(gibibytes_text(bytes), 11, true) + "  " +
                       pad(pile(from, bytes, columns / most, estimate.memory_limit),
                           static_cast<int>(columns) + 2) +
                       note;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  for (const Row& row : states) {
    const bool sharded = layout.sharding >= row.sharded_from && layout.dp * layout.cp > 1;
    add(row.name,
        row.bytes,
        so_far,
        short_number(row.per_parameter) + " B/param" + (sharded ? ranks : ""));
    so_far += row.bytes;
  }
  add("activations", memory.activations, so_far, activations_note(answer));
  add("total", memory.total(), 0, percent(memory.total() / estimate.memory_limit, 0) + " of it");
  return text;
}

}  // namespace foretrain
