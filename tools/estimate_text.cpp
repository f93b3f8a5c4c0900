#include "tools/estimate_text.h"

#include "tools/estimate_bars.h"
#include "tools/estimate_numbers.h"
#include "tools/estimate_output.h"

#include "foretrain/model.h"
#include "sim/base/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <sstream>

namespace foretrain {
namespace {

/// "title  a · b · c", broken between items where the width ends, continued under the first.
std::string items_line(const std::string& title, const std::vector<std::string>& items, int width) {
  const std::string indent(static_cast<std::size_t>(display_width(title)), ' ');
  std::string text = title;
  int column = display_width(title);
  bool first = true;
  for (const std::string& item : items) {
    const int more = display_width(item) + 3;
    if (!first && column + more > width) {
      text += "\n" + indent;
      column = display_width(title);
      first = true;
    }
    text += (first ? "" : " · ") + item;
    column += more - (first ? 3 : 0);
    first = false;
  }
  return text + "\n";
}

std::string type_text(DataType type) {
  constexpr std::array<const char*, 5> kNames = {"fp32", "bf16", "fp16", "fp8", "nvfp4"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string header(const EstimateAnswer& answer, int width) {
  const Scenario& scenario = answer.scenario;
  const TopologySpec& hardware = scenario.cluster.hardware;
  const Estimate& estimate = answer.estimate;
  const std::int64_t gpus = scenario.cluster.gpus;
  const std::int64_t nodes = (gpus + hardware.gpus_per_node - 1) / hardware.gpus_per_node;
  const TrainingSpec& training = scenario.training;
  std::vector<std::string> items;
  if (!scenario.name.empty()) {
    items.push_back(scenario.name);
  }
  items.insert(
      items.end(),
      {scenario.model.name,
       with_commas(gpus) + " " + hardware.gpu.display_name + " (" + with_commas(nodes) + " " +
           plural("node", nodes) + " x " + std::to_string(hardware.gpus_per_node) + ", " +
           hardware.network_name + ")",
       type_text(training.dtype.compute),
       with_commas(training.sequence_length) + " " + plural("token", training.sequence_length) +
           " x " + with_commas(training.global_batch_size) + " " +
           plural("sequence", training.global_batch_size)});
  const std::string recompute = recompute_text(estimate);
  std::vector<std::string> layout = {to_string(estimate.layout)};
  if (estimate.layout.sharding == Layout{}.sharding) {
    layout.emplace_back("zero1");
  }
  layout.insert(
      layout.end(),
      {with_commas(estimate.micro_batches) + " " + plural("micro-batch", estimate.micro_batches) +
           " of " + std::to_string(training.micro_batch_size),
       recompute.empty() ? "no recompute" : recompute,
       std::string(to_string(answer.assumptions.form)) + "'s rules"});
  return items_line("", items, width) + items_line("", layout, width);
}

std::string fact(const std::string& title, const std::string& first, const std::string& rest) {
  return "  " + pad(title, 9) + pad(first, 14) + rest + "\n";
}

std::string peak_name(const EstimateAnswer& answer) {
  const bool eight_bits = answer.scenario.training.dtype.compute == DataType::kFp8;
  const bool assumed = answer.assumptions.peak != answer.usual.peak;
  return assumed ? "assumed" : eight_bits ? "fp8 dense" : "bf16 dense";
}

std::string facts(const EstimateAnswer& answer) {
  const Estimate& estimate = answer.estimate;
  const Assumptions& given = answer.assumptions;
  const TrainingSpec& training = answer.scenario.training;
  const auto gpus = static_cast<double>(answer.scenario.cluster.gpus);
  const double tokens = static_cast<double>(training.sequence_length) *
                        static_cast<double>(training.global_batch_size);
  const double rate = tokens / estimate.step_time_s;
  const double over = estimate.memory.total() - estimate.memory_limit;
  std::string text =
      fact("step",
           seconds_text(estimate.step_time_s),
           pad(count_text(rate) + " tokens/s", 21) + count_text(rate / gpus) + " tokens/s per GPU");
  text += fact("MFU",
               percent(estimate.mfu),
               teraflops_text(estimate.mfu * given.peak) + " TFLOP/s per GPU of " +
                   teraflops_text(given.peak) + " " + peak_name(answer) + " (FLOPs " +
                   counted_flops(given.form) + ", " + count_text(estimate.model_flops / tokens) +
                   "FLOP/token)");
  text += fact("memory",
               gigabytes_text(estimate.memory.total()),
               "of " + gigabytes_text(estimate.memory_limit) + " usable (" +
                   assumption_text(AssumptionUnit::kBytes, given.memory) + " as sold" +
                   (given.memory_fraction < 1 ? " x " + short_number(given.memory_fraction) : "") +
                   "); " +
                   (over <= 0 ? "fits, " + gigabytes_text(-over) + " left"
                              : "does not fit, " + gigabytes_text(over) + " too much"));
  return text;
}

/// How much too much it is, and what would make it fit.
std::string misfit_lines(const EstimateAnswer& answer, int width) {
  const Estimate& estimate = answer.estimate;
  if (estimate.fits) {
    return "";
  }
  std::string text =
      "does not fit: " + gigabytes_text(estimate.memory.total() - estimate.memory_limit) +
      " too much\n";
  std::vector<std::string> items;
  for (const FittingAssumption& way : answer.would_fit) {
    items.push_back(way.key_values + " (" + gigabytes_text(way.estimate.memory.total()) + ", MFU " +
                    percent(way.estimate.mfu) + ")");
  }
  return text +
         (items.empty()
              ? std::string("  no sharding or recomputation makes it fit: raise tp, pp, ") +
                    (estimate.layout.micro_batch_size > 1 ? "cp or ep, or lower the micro-batch\n"
                                                          : "cp or ep\n")
              : items_line("  fits with --assume ", items, width));
}

std::string shares_lines(const EstimateAnswer& answer, int width) {
  const Estimate& estimate = answer.estimate;
  std::vector<std::string> items;
  for (const EstimatePart& part : estimate_parts()) {
    const double seconds = estimate.parts.*part.member;
    if (seconds > 0) {
      items.push_back(std::string(part.label) + " " + seconds_text(seconds) + " (" +
                      percent(seconds / estimate.step_time_s) + ")");
    }
  }
  return items_line("the step     ", items, width);
}

/// One row of the table of assumptions; `usual` is empty where nothing was changed.
std::string assumption_line(const std::string& key,
                            const std::string& value,
                            const std::string& meaning,
                            const std::string& usual,
                            int width) {
  const std::string head = "  " + pad(key, 17) + "  " + pad(value, 12, true) + "  ";
  const std::string mark = usual.empty() ? "" : "◀ set, was " + usual;
  const std::string line = head + meaning + (mark.empty() ? "" : "  " + mark);
  if (display_width(line) <= width || mark.empty()) {
    return line + "\n";
  }
  return head + meaning + "\n" + std::string(static_cast<std::size_t>(display_width(head)), ' ') +
         mark + "\n";
}

std::string layers_text(std::int64_t layers) {
  return layers == kRecomputeAsNeeded ? "as_needed" : std::to_string(layers);
}

std::string sharding_text(Sharding sharding) {
  constexpr std::array<const char*, 4> kNames = {"none", "zero1", "zero2", "zero3"};
  return kNames[static_cast<std::size_t>(sharding)];
}

std::string assumption_lines(const EstimateAnswer& answer, int width) {
  const Assumptions& given = answer.assumptions;
  const Layout& layout = answer.estimate.layout;
  const Layout& before = answer.usual_layout;
  const std::string exact =
      "; exactly " + with_commas(count_parameters(answer.scenario.model).total);
  std::string text = "assumed by the " + std::string(to_string(given.form)) +
                     "; change any with --assume KEY=VALUE\n";
  for (const AssumptionRow& row : assumption_rows()) {
    if (!row.used_by(given.form) || (row.experts && !given.has_experts)) {
      continue;
    }
    const double value = given.*row.member;
    const double usual = answer.usual.*row.member;
    const bool whole = row.member == &Assumptions::parameters;
    text += assumption_line(std::string(row.key),
                            assumption_text(row.unit, value),
                            std::string(row.meaning) + (whole ? exact : ""),
                            value == usual ? "" : assumption_text(row.unit, usual),
                            width);
  }
  const auto changed = [](const std::string& now, const std::string& then) {
    return now == then ? std::string() : then;
  };
  const std::string sharding = sharding_text(layout.sharding);
  const std::string vpp = std::to_string(layout.vpp);
  const std::string layers = layers_text(layout.recompute_layers);
  text += assumption_line("sharding",
                          sharding,
                          "of the states, over dp x cp",
                          changed(sharding, sharding_text(before.sharding)),
                          width);
  text += assumption_line("vpp",
                          vpp,
                          "chunks of a stage, which divide its bubble",
                          changed(vpp, std::to_string(before.vpp)),
                          width);
  text += assumption_line("recompute_layers",
                          layers,
                          "of the fullest stage",
                          changed(layers, layers_text(before.recompute_layers)),
                          width);
  return text;
}

/// Lines under a title, after an empty line; long ones are broken between words.
std::string list_lines(const std::string& title, const std::vector<std::string>& lines, int width) {
  if (lines.empty()) {
    return "";
  }
  std::string text = "\n" + title + "\n";
  for (const std::string& line : lines) {
    std::string indent = "  ";
    int column = 0;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const int wide = display_width(word);
      if (column > 0 && column + 1 + wide > width) {
        indent = "    ";
        text += "\n";
        column = 0;
      }
      text += (column == 0 ? indent : " ") + word;
      column += (column == 0 ? display_width(indent) : 1) + wide;
    }
    text += "\n";
  }
  return text;
}

}  // namespace

double bubble_share(const Estimate& estimate) {
  const auto fill = static_cast<double>(estimate.layout.pp - 1);
  return fill /
         (static_cast<double>(estimate.micro_batches) * static_cast<double>(estimate.layout.vpp) +
          fill);
}

std::string counted_flops(ClosedForm form) {
  return form == ClosedForm::kChapter ? "causal" : "6N";
}

std::string estimate_text(const EstimateAnswer& answer, int width) {
  return header(answer, width) + "\n" + facts(answer) + "\n" + waterfall_lines(answer, width) +
         "\n" + memory_lines(answer, width) + misfit_lines(answer, width) + "\n" +
         shares_lines(answer, width) + "\n" + assumption_lines(answer, width) +
         list_lines("notes", answer.notes, width) +
         list_lines("said by the scenario, not counted by these rules", answer.left_out, width) +
         "\n" + items_line("never counted  ", answer.never_counted, width);
}

}  // namespace foretrain
