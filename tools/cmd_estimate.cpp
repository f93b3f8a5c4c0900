#include "tools/commands.h"
#include "tools/estimate_output.h"
#include "tools/estimate_text.h"
#include "tools/job_options.h"
#include "tools/output.h"
#include "tools/scenario_inputs.h"

#include "foretrain/model.h"
#include "foretrain/simulate.h"
#include "sim/base/format.h"

#include <algorithm>
#include <array>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

struct EstimateLine {
  std::string scenario;
  std::vector<std::string> overrides;
  std::string assumptions = "chapter";
  std::vector<std::string> assume;
  std::string json;

  ClosedForm form() const {
    return assumptions == "workshop" ? ClosedForm::kWorkshop : ClosedForm::kChapter;
  }
};

/// What --help says below the options.
std::string help_footer() {
  std::string keys;
  for (const AssumptionRow& row : assumption_rows()) {
    keys += "  " + pad(std::string(row.key), 19) + std::string(row.meaning) +
            (row.experts ? "; models with experts" : "") +
            (row.used_by(ClosedForm::kWorkshop) ? "" : "; chapter only") + "\n";
  }
  return "\nMemory, step time and MFU by arithmetic, in microseconds; `run` simulates instead.\n"
         "The rules:\n"
         "  chapter   times are added: tensor traffic exposed, most data traffic hidden, the head\n"
         "            on the last stage; zero1, vpp 1, as many layers recomputed as it takes to "
         "fit\n"
         "  workshop  losses are multiplied; the scenario's sharding, vpp and recomputed layers;\n"
         "            key/value heads do not limit tp\n"
         "What a scenario says and the rules do not count is listed in the answer.\n\n"
         "--assume KEY=VALUE, a number in SI units or with its unit (\"141 GB\", \"400 Gb/s\", "
         "\"989 TFLOP/s\");\nof a key given twice the later counts:\n" +
         keys +
         "  sharding           none, zero1, zero2 or zero3\n"
         "  vpp                chunks of a stage, which divide its bubble\n"
         "  recompute_layers   of the fullest stage; chapter: as_needed or a number\n\n"
         "Examples:\n"
         "  foretrain estimate llama3-70b-64\n"
         "  foretrain estimate llama3-70b-64 --set parallelism.tp=4 --set parallelism.cp=2\n"
         "  foretrain estimate llama3-70b-64 --assume efficiency=0.5 --assume memory=\"141 GB\"\n"
         "  foretrain estimate llama3-405b-8k --assumptions workshop --assume vpp=4\n\n"
         "Exit codes: 0 fits; 1 does not fit, the answer is still printed; 2 bad input; 3 file.\n";
}

void add_options(CLI::App& app, EstimateLine& line) {
  add_scenario_options(app, line.scenario, line.overrides);
  app.add_option("--assumptions", line.assumptions, "whose rules: chapter (default) or workshop")
      ->check(CLI::IsMember({"chapter", "workshop"}));
  app.add_option("--assume",
                 line.assume,
                 "a number the rules take as given, e.g. efficiency=0.55; may be repeated")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->expected(1);
  add_json_option(app, line.json);
  app.footer(help_footer());
}

/// What an assumed layout asks of stages that do not hold as much.
void check_stages(const Layout& layout, const Layout& before, std::vector<Diagnostic>& faults) {
  const std::string most = std::to_string(before.most_layers);
  const auto check = [&](const char* key, std::int64_t value, const char* noun) {
    if (value > before.most_layers) {
      faults.push_back({std::string("/assume/") + key,
                        std::to_string(value) + " " + plural(noun, value) +
                            ", but no stage holds more than " + most + " " +
                            plural("layer", before.most_layers),
                        "at most " + most});
    }
  };
  if (layout.vpp != before.vpp) {
    check("vpp", layout.vpp, "chunk");
  }
  check("recompute_layers", layout.recompute_layers, "layer");
}

/// Reads the scenario and the assumptions; every fault of both.
Expected<EstimateAnswer> read_line(const EstimateLine& line) {
  const ScenarioWaivers waived{.kv_heads_limit_tp = line.form() == ClosedForm::kWorkshop};
  Expected<Scenario> scenario =
      read_scenario(line.scenario, line.overrides, waived, cluster_part_faults);
  EstimateAnswer answer;
  answer.usual.form = line.form();
  Faults faults;
  if (scenario) {
    faults.list = cluster_faults(*scenario);
    answer.scenario = *std::move(scenario);
    answer.usual = default_assumptions(line.form(),
                                       answer.scenario.model,
                                       answer.scenario.cluster.hardware,
                                       answer.scenario.training.dtype.compute);
    answer.usual_layout = layout_of(answer.scenario, line.form());
  } else {
    faults = scenario.error();
  }
  answer.assumptions = answer.usual;
  Layout& layout = answer.estimate.layout;
  layout = answer.usual_layout;
  apply_assumptions(line.assume, answer.assumptions, layout, faults.list);
  if (scenario) {
    check_stages(layout, answer.usual_layout, faults.list);
  }
  if (!faults.list.empty()) {
    return tl::unexpected<Faults>(std::move(faults));
  }
  return answer;
}

/// Sharding more, recomputing everything, or both: the cheapest of each kind that fits.
std::vector<FittingAssumption> ways_to_fit(const Estimator& estimator, const Layout& layout) {
  constexpr std::array<const char*, 4> kShardings = {"none", "zero1", "zero2", "zero3"};
  std::vector<FittingAssumption> ways;
  for (const bool recompute : {false, true}) {
    if (recompute && layout.recompute_layers == kRecomputeAsNeeded) {
      continue;  // everything is recomputed already
    }
    for (auto sharding = static_cast<std::size_t>(layout.sharding); sharding < kShardings.size();
         ++sharding) {
      Layout tried = layout;
      tried.sharding = static_cast<Sharding>(sharding);
      const bool shards = tried.sharding != layout.sharding;
      std::string text = shards ? std::string("sharding=") + kShardings[sharding] : "";
      if (recompute) {
        tried.recompute_layers = layout.most_layers;
        const std::string layers = "recompute_layers=" + std::to_string(layout.most_layers);
        text += (shards ? " --assume " : "") + layers;
      }
      Estimate estimate = estimator.estimate(tried);
      if (estimate.fits) {
        ways.push_back({std::move(text), std::move(estimate)});
        break;
      }
    }
  }
  return ways;
}

/// What to know of a layout beside its numbers.
std::vector<std::string> notes_of(const EstimateAnswer& answer) {
  std::vector<std::string> notes;
  const Layout& layout = answer.estimate.layout;
  const std::int64_t tokens = answer.scenario.training.sequence_length / layout.cp;
  const double fewest = answer.assumptions.minimum_cp_tokens;
  if (answer.assumptions.form == ClosedForm::kChapter && layout.cp > 1 &&
      static_cast<double>(tokens) < fewest) {
    notes.push_back("cp " + std::to_string(layout.cp) + " leaves " + with_commas(tokens) + " " +
                    plural("token", tokens) + " per rank, fewer than minimum_cp_tokens (" +
                    with_commas(static_cast<std::int64_t>(fewest)) + "), which search leaves out");
  }
  return notes;
}

nlohmann::ordered_json answer_json(const EstimateAnswer& answer) {
  const Estimate& estimate = answer.estimate;
  const Scenario& scenario = answer.scenario;
  const double tokens = static_cast<double>(scenario.training.sequence_length) *
                        static_cast<double>(scenario.training.global_batch_size);
  nlohmann::ordered_json json;
  json["scenario"] = scenario.name;
  json.update(estimate_json(estimate));
  json["excess_bytes"] = whole_json(std::max(0.0, estimate.memory.total() - estimate.memory_limit));
  json["bubble"] = bubble_share(estimate);
  json["tokens_per_s"] = tokens / estimate.step_time_s;
  json["tokens_per_s_per_gpu"] =
      tokens / estimate.step_time_s / static_cast<double>(scenario.cluster.gpus);
  json["tflops_per_gpu"] = estimate.mfu * answer.assumptions.peak / 1e12;
  json["peak_tflops"] = answer.assumptions.peak / 1e12;
  json["flops_per_token"] = estimate.model_flops / tokens;
  json["flops_convention"] = counted_flops(answer.assumptions.form);
  json["parameters"] = count_parameters(scenario.model).total;
  json["layout"] = layout_json(estimate.layout);
  for (const WaterfallStep& step : answer.waterfall) {
    json["waterfall"].push_back({{"after", std::string(step.after)}, {"mfu", step.mfu}});
  }
  json["assumptions"] = assumptions_json(answer.assumptions, estimate.layout, scenario.model);
  json["would_fit"] = nlohmann::ordered_json::array();
  for (const FittingAssumption& way : answer.would_fit) {
    json["would_fit"].push_back({{"assume", way.key_values},
                                 {"memory_bytes", whole_json(way.estimate.memory.total())},
                                 {"mfu", way.estimate.mfu}});
  }
  json["notes"] = answer.notes;
  json["left_out"] = answer.left_out;
  json["never_counted"] = answer.never_counted;
  return json;
}

}  // namespace

int cmd_estimate(int argc, char** argv) {
  CLI::App app{"Estimates a training step by a closed form; nothing is simulated."};
  EstimateLine line;
  add_options(app, line);
  if (const std::optional<int> over = parse_options(app, argc, argv)) {
    return *over;
  }
  if (const std::optional<int> over = refuse_overwriting(
          "estimate", {{"json", line.json}}, scenario_inputs(line.scenario, line.overrides))) {
    return *over;
  }
  Expected<EstimateAnswer> read = read_line(line);
  if (!read) {
    return report_faults(read.error(), line.scenario, line.json);
  }
  EstimateAnswer& answer = *read;
  const TrainingSpec& training = answer.scenario.training;
  const Estimator estimator(answer.scenario.model,
                            training.sequence_length,
                            training.global_batch_size,
                            answer.assumptions);
  answer.estimate = estimator.estimate(answer.estimate.layout);
  answer.waterfall = waterfall(answer.estimate, answer.assumptions);
  if (!answer.estimate.fits) {
    answer.would_fit = ways_to_fit(estimator, answer.estimate.layout);
  }
  answer.notes = notes_of(answer);
  answer.left_out = left_out(answer.scenario, line.form());
  answer.never_counted = never_counted(line.form());
  if (!line.json.empty()) {
    const int status = write_json(line.json, answer_json(answer));
    if (status != kExitDone) {
      return status;
    }
  }
  if (line.json != "-") {
    const int status = write_output("-", estimate_text(answer, page_width()));
    if (status != kExitDone) {
      return status;
    }
  }
  return answer.estimate.fits ? kExitDone : kExitNegative;
}

}  // namespace foretrain
