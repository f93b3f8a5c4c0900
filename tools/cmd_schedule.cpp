#include "tools/commands.h"
#include "tools/output.h"
#include "tools/schedule_costs.h"
#include "tools/schedule_input.h"
#include "tools/schedule_json.h"
#include "tools/schedule_svg.h"
#include "tools/schedule_text.h"

#include "foretrain/schedule.h"

#include <algorithm>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

namespace foretrain {
namespace {

struct Options {
  ScheduleRequest request;
  CostOptions costs;
  bool csv = false;
  std::string svg, json;
};

std::string description() {
  std::string text =
      "A pipeline schedule: its action lists and their timing under given costs.\n"
      "Schedules:";
  for (const ScheduleEntry& entry : schedule_table()) {
    text += "\n  " + std::string(entry.name) + ": " + std::string(entry.summary);
  }
  return text +
         "\nCosts are of one chunk (one slice for seq1f1b): bare numbers (1, 2.5), times (3.3 us), "
         "or one of\nthese per virtual stage, separated by commas. Where a schedule splits "
         "backwards and only\n--backward is given, each half takes half of it; with --dgrad or "
         "--wgrad as well, the other\nhalf takes the rest. --csv writes lists, and a file of such "
         "lists may stand for the name.";
}

void declare_sizes(CLI::App& app, ScheduleRequest& request) {
  app.add_option("name", request.name, "a schedule, or a file of action lists (a rank per line)")
      ->type_name("NAME|FILE.csv")
      ->required()
      ->check(not_empty());
  const auto size = [&](const char* name, std::optional<std::int64_t>& value, const char* what) {
    app.add_option(name, value, what)->check(whole_number());
  };
  size("--pp", request.pp, "pipeline ranks");
  size("--micro-batches", request.micro_batches, "micro-batches of one step, over all copies");
  size("--vpp",
       request.vpp,
       "chunks (virtual stages) per rank: 1 by default, 2 where the schedule is a V");
  size("--group", request.group, "interleaved: micro-batches per group, pp by default");
  size("--slices", request.slices, "seq1f1b: sequence slices per micro-batch, 1 by default");
}

void declare_costs(CLI::App& app, CostOptions& costs) {
  const auto cost = [&](const char* name, std::optional<std::string>& text, const char* what) {
    app.add_option(name, text, what)->type_name("TIME[,TIME...]");
  };
  cost("--forward", costs.forward, "of a forward, 1 by default");
  cost("--backward", costs.backward, "of a whole backward; dgrad + wgrad by default, or 2");
  cost("--dgrad", costs.dgrad, "of a backward's input half (I), 1 by default");
  cost("--wgrad", costs.wgrad, "of a backward's weight half (W), 1 by default");
  cost("--overlapped",
       costs.overlapped,
       "of an overlapped forward and backward; their sum by default");
  app.add_option("--p2p", costs.p2p, "of a transfer between ranks, 0 by default")
      ->type_name("TIME");
  app.add_option("--p2p-mode",
                 costs.p2p_mode,
                 "eager: sends never block; rendezvous: both ranks stand still until it is done")
      ->type_name("eager|rendezvous");
  app.add_flag("--unbatched",
               costs.unbatched,
               "rendezvous: transfers between two units one after another, sends first");
  app.add_option("--overlap-semantics",
                 costs.overlap_semantics,
                 "overlapped units: one piece, or a forward and then a backward")
      ->type_name("atomic|sequential");
}

void declare(CLI::App& app, Options& options) {
  app.description(description());
  declare_sizes(app, options.request);
  declare_costs(app, options.costs);
  app.add_flag("--csv", options.csv, "print the lists only: a rank per line");
  app.add_option("--svg", options.svg, "draw the timeline into FILE, or to standard output (-)")
      ->type_name("FILE|-")
      ->check(not_empty());
  add_json_option(app, options.json);
}

int terminal_width() {
  constexpr int kPipe = 120;
  constexpr int kNarrowest = 40;
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0) {
    return std::max<int>(kNarrowest, size.ws_col);
  }
  return kPipe;
}

int report_deadlock(const Schedule& schedule,
                    const TypedCosts& costs,
                    const Options& options,
                    const std::string& grid) {
  if (options.json != "-") {
    const bool one_by_one = costs.ticks.mode == PointToPoint::kRendezvous && !costs.ticks.batched;
    const std::string hint =
        one_by_one ? "transfers one by one block each other; --unbatched left out, they are posted "
                     "together\n"
                   : "";
    const int written = write_output("-", schedule.name + ": " + grid + "\n" + hint);
    if (written != kExitDone) {
      return written;
    }
  }
  if (!options.json.empty()) {
    const int written = write_json(options.json, deadlock_json(schedule, costs, grid));
    return written == kExitDone ? kExitNegative : written;
  }
  return kExitNegative;
}

int print(const Schedule& schedule,
          const ScheduleTiming& timing,
          const TypedCosts& costs,
          const Options& options) {
  int code = kExitDone;
  if (!options.svg.empty()) {
    code = write_output(options.svg, schedule_svg(schedule, timing, costs));
  }
  if (code == kExitDone && !options.json.empty()) {
    code = write_json(options.json, schedule_json(schedule, timing, costs));
  }
  if (code != kExitDone || options.svg == "-" || options.json == "-") {
    return code;
  }
  return write_output("-",
                      options.csv ? schedule_csv(schedule)
                                  : schedule_text(schedule, timing, costs, terminal_width()));
}

std::size_t action_count(const Schedule& schedule) {
  std::size_t count = 0;
  for (const std::vector<Action>& list : schedule.ranks) {
    count += list.size();
  }
  return count;
}

/// Outputs that would overwrite each other, and lists too long for one of them.
std::vector<Diagnostic> output_faults(const Options& options, std::size_t actions) {
  constexpr std::size_t kMostInJson = std::size_t{1} << 23;  // 1.5 GB while it is written
  std::vector<Diagnostic> faults = check_targets({{"svg", options.svg}, {"json", options.json}});
  if (!options.json.empty() && actions > kMostInJson) {
    faults.push_back(
        {"/json",
         std::to_string(actions) + " actions are more than " + std::to_string(kMostInJson),
         "--csv writes lists of any length; or lower a size"});
  }
  if (options.csv && options.svg == "-") {
    faults.push_back({"/svg", "standard output cannot hold both --csv and --svg -", ""});
  }
  return faults;
}

}  // namespace

int cmd_schedule(int argc, char** argv) {
  CLI::App app("", "schedule");
  Options options;
  declare(app, options);
  if (const std::optional<int> code = parse_options(app, argc, argv)) {
    return *code;
  }
  const std::string& name = options.request.name;
  if (const std::optional<int> over =
          refuse_overwriting("schedule", {{"svg", options.svg}, {"json", options.json}}, {name})) {
    return *over;
  }
  const Expected<Schedule> schedule = requested_schedule(options.request);
  const Expected<TypedCosts> costs =
      read_costs(options.costs, schedule ? uses_of(*schedule) : CostUses{});
  Faults faults;
  faults.list = output_faults(options, schedule ? action_count(*schedule) : 0);
  const auto append = [&](const Faults& more) {
    faults.list.insert(faults.list.end(), more.list.begin(), more.list.end());
    faults.kind = more.kind == FaultKind::kFile ? more.kind : faults.kind;
  };
  if (!schedule) {
    append(schedule.error());
  }
  if (!costs) {
    append(costs.error());
  }
  if (!faults.list.empty()) {
    return report_faults(faults, "schedule " + name, options.json);
  }
  const Expected<ScheduleTiming> timing = time_schedule(*schedule, costs->ticks);
  if (timing) {
    return print(*schedule, *timing, *costs, options);
  }
  if (const std::optional<std::string> grid = find_deadlock(*schedule, costs->ticks)) {
    return report_deadlock(*schedule, *costs, options, *grid);
  }
  return report_faults(timing.error(), "schedule " + name, options.json);
}

}  // namespace foretrain
