#include "tools/plan_text.h"

#include "tools/estimate_output.h"
#include "tools/typed.h"

#include "sim/base/format.h"
#include "sim/base/wrapped.h"

#include <vector>

namespace foretrain {
namespace {

/// Arithmetic keeps its own spaces, unless it is too long.
std::string arithmetic_text(const std::string& line, int width) {
  constexpr int kIndent = 6;
  const std::string indent(kIndent, ' ');
  return kIndent + display_width(line) <= width ? indent + line + "\n"
                                                : wrapped(indent, line, kIndent + 4, width);
}

std::string steps_text(const Plan& plan, int width) {
  std::string page;
  int number = 0;
  for (const PlanStep& step : plan.steps) {
    page += "\n" + pad(std::to_string(++number), 2, true) + "  " + step.title + "\n";
    page += wrapped("    ", step.question, 4, width);
    for (const std::string& line : step.arithmetic) {
      page += arithmetic_text(line, width);
    }
    page += wrapped("    => ", step.decision, 7, width);
    page += wrapped("    changes it: ", step.otherwise, 16, width);
  }
  return page;
}

std::string gigabytes(double bytes) {
  return fixed(bytes / 1e9, 1) + " GB";
}

std::string seconds(double value) {
  return human_time(Duration(static_cast<std::int64_t>(value * 1e12)));
}

std::string result_line(const std::string& name,
                        double step_time_s,
                        double mfu,
                        const std::string& memory) {
  return "  " + pad(name, 12) + pad(seconds(step_time_s), 10) + pad(percent(mfu), 9) + memory +
         "\n";
}

/// The estimate, and the simulation below it.
std::string results_text(const Plan& plan, int width) {
  const Estimate& estimate = plan.estimate;
  std::string page = "\n  " + pad("", 12) + pad("step", 10) + pad("MFU", 9) + "memory of a GPU\n";
  page += result_line(
      "estimated",
      estimate.step_time_s,
      estimate.mfu,
      gigabytes(estimate.memory.total()) + " of " + gigabytes(estimate.memory_limit) + " usable");
  if (plan.simulated) {
    const SimulatedLayout& run = *plan.simulated;
    const auto beside = gigabytes(static_cast<double>(run.context_bytes));
    page += result_line("simulated",
                        run.step_time_s,
                        run.mfu,
                        gigabytes(static_cast<double>(run.memory_bytes)) + " of " +
                            gigabytes(static_cast<double>(run.memory_capacity)) +
                            (run.fits == Fit::kBorderline ? ", borderline" : ", fits") + " with " +
                            beside + " of context");
  } else if (!plan.not_simulated.empty()) {
    page += wrapped("  simulated   no: ", plan.not_simulated, 18, width);
  }
  return page + wrapped("  of the estimated step: ", shares_text(estimate), 25, width);
}

std::string assumed_text(const Assumptions& assumptions, int width) {
  return wrapped("  ",
                 "assumed: kernels reach " + percent(assumptions.efficiency, 0) + " of " +
                     fixed(assumptions.peak / 1e12, 0) + " TFLOP/s dense; " +
                     human_rate(assumptions.node_bandwidth) + " a GPU inside a node, " +
                     human_rate(assumptions.network_bandwidth) +
                     " between nodes, one way; all of them with --json -, changed with --assume",
                 11,
                 width);
}

std::string heading(const TrainingJob& job, int width) {
  const std::int64_t per_node = job.hardware.gpus_per_node;
  const std::int64_t nodes = (job.gpus + per_node - 1) / per_node;
  const std::string& network = job.hardware.network_name;
  const std::string name = job.model.name.empty() ? job.model_reference : job.model.name;
  return wrapped("",
                 name + " on " + with_commas(job.gpus) + " " + job.hardware.gpu.display_name +
                     " (" + with_commas(nodes) + " " + plural("node", nodes) + " x " +
                     std::to_string(per_node) + (network.empty() ? "" : ", " + network) + ") · " +
                     with_commas(job.sequence_length) + " " + plural("token", job.sequence_length) +
                     " x " + with_commas(job.global_batch_size) + " " +
                     plural("sequence", job.global_batch_size),
                 0,
                 width);
}

std::string answer(const Plan& plan, int width) {
  if (!plan.feasible) {
    return wrapped("no layout: ", plan.reason, 11, width);
  }
  const Estimate& estimate = plan.estimate;
  const std::string recomputed = recompute_text(estimate);
  return wrapped("",
                 layout_text(estimate.layout) + " · zero1 · 1f1b · " +
                     with_commas(estimate.micro_batches) + " " +
                     plural("micro-batch", estimate.micro_batches) + " of 1 · " +
                     (recomputed.empty() ? "no recompute" : recomputed),
                 0,
                 width) +
         "estimated: a step of " + seconds(estimate.step_time_s) + ", MFU " +
         percent(estimate.mfu) +
         (plan.simulated ? "; simulated: " + seconds(plan.simulated->step_time_s) + ", " +
                               percent(plan.simulated->mfu)
                         : "") +
         "\n";
}

/// A command to type, its parts in lines as a shell takes them, where the page is too narrow.
std::string command_text(const std::vector<std::string>& parts, int width) {
  std::string page;
  std::string line = "  foretrain";
  for (const std::string& part : parts) {
    if (display_width(line + " " + part) + 2 > width) {
      page += line + " \\\n";
      line = "     ";
    }
    line += " " + part;
  }
  return page + line + "\n";
}

void append(std::vector<std::string>& parts, const std::vector<std::string>& more) {
  parts.insert(parts.end(), more.begin(), more.end());
}

/// The job's part of a command, on so many GPUs.
std::vector<std::string> job_command(const std::string& command,
                                     const TypedPlan& typed,
                                     std::int64_t gpus) {
  std::vector<std::string> parts = {command};
  append(parts, typed.before_gpus);
  parts.push_back("--gpus " + std::to_string(gpus));
  append(parts, typed.after_gpus);
  append(parts, typed.assumed);
  return parts;
}

std::string next_text(const TrainingJob& job,
                      const Plan& plan,
                      const TypedPlan& typed,
                      const std::string& written,
                      int width) {
  const Layout& layout = plan.estimate.layout;
  const std::string file = written.empty() ? "plan.json" : file_word(written);
  std::string page = "\nnext\n";
  if (written.empty()) {
    std::vector<std::string> write = job_command("plan", typed, job.gpus);
    append(write, typed.plan_only);
    write.push_back("--write " + file);
    page += command_text(write, width);
  }
  if (plan.runs) {
    page += command_text({"run", file}, width);
  }
  std::vector<std::string> estimate = {"estimate", file};
  append(estimate, typed.assumed);
  if (layout.recompute_layers >= 0) {  // raised by the simulation, not by the closed form
    estimate.push_back("--assume recompute_layers=" + std::to_string(layout.recompute_layers));
  }
  page += command_text(estimate, width);
  std::vector<std::string> search = job_command("search", typed, job.gpus);
  search.emplace_back("--uneven");
  search.push_back("--show " + std::to_string(layout.tp) + "," + std::to_string(layout.cp) + "," +
                   std::to_string(layout.pp));
  return page + command_text(search, width);
}

/// On more GPUs, where the job has a layout.
std::string ask_again_text(const TrainingJob& job,
                           const Plan& plan,
                           const TypedPlan& typed,
                           int width) {
  if (!plan.smallest) {
    return "";
  }
  const Layout& layout = plan.smallest->layout;
  const std::int64_t gpus = layout.tp * layout.cp * layout.pp * layout.dp;
  std::vector<std::string> parts = job_command("plan", typed, gpus);
  append(parts, typed.plan_only);
  return gpus <= job.gpus ? "" : "\nnext\n" + command_text(parts, width);
}

}  // namespace

std::string plan_text(const TrainingJob& job,
                      const PlanOptions& options,
                      const Plan& plan,
                      const TypedPlan& typed,
                      const std::string& written,
                      int width) {
  std::string page = heading(job, width) + answer(plan, width) + steps_text(plan, width);
  if (!plan.feasible) {
    page += "\n" + assumed_text(options.assumptions, width);
    page += ask_again_text(job, plan, typed, width);
    return page;
  }
  page += results_text(plan, width) + assumed_text(options.assumptions, width);
  page += written.empty() ? "\nscenario\n" : "\nscenario, written to " + written + "\n";
  return page + plan.scenario + next_text(job, plan, typed, written, width);
}

}  // namespace foretrain
