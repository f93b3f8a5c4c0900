#include "tools/commands.h"
#include "tools/output.h"
#include "tools/schedule_costs.h"
#include "tools/schedule_svg.h"
#include "tools/schedule_text.h"

#include "foretrain/schedule.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

namespace foretrain {
namespace {

struct Options {
  std::string name;
  std::optional<std::int64_t> pp, micro_batches, vpp, group, slices;
  CostOptions costs;
  std::optional<std::string> overlap_semantics;
  bool csv = false;
  std::string svg, json;
};

void declare(CLI::App& app, Options& options) {
  std::string names;
  for (const ScheduleEntry& entry : schedule_table()) {
    names += "\n  " + std::string(entry.name) + ": " + std::string(entry.summary);
  }
  app.description("A pipeline schedule: its action lists and their timing under given costs.\n" +
                  std::string("Schedules built:") + names);
  app.add_option("name", options.name, "a schedule, or a file of action lists (a rank per line)")
      ->type_name("NAME|FILE.csv")
      ->required()
      ->check(not_empty());
  app.add_option("--pp", options.pp, "pipeline ranks")->check(whole_number());
  app.add_option("--micro-batches", options.micro_batches, "micro-batches of one step")
      ->check(whole_number());
  app.add_option("--vpp", options.vpp, "chunks (virtual stages) per rank, 1 by default")
      ->check(whole_number());
  app.add_option("--group", options.group, "interleaved: micro-batches per group, pp by default")
      ->check(whole_number());
  app.add_option("--slices", options.slices, "seq1f1b: sequence slices per micro-batch")
      ->check(whole_number());
  const auto cost = [&](const char* name, std::optional<std::string>& text, const char* what) {
    app.add_option(name, text, what)->type_name("TIME");
  };
  cost("--forward", options.costs.forward, "of one chunk: a bare number or 3.3 us; default 1");
  cost("--backward", options.costs.backward, "of one chunk, whole; default dgrad + wgrad, or 2");
  cost("--dgrad", options.costs.dgrad, "input half of a backward");
  cost("--wgrad", options.costs.wgrad, "weight half of a backward");
  cost("--overlapped", options.costs.overlapped, "an overlapped forward and backward");
  cost("--p2p", options.costs.p2p, "latency of a transfer between ranks, 0 by default");
  app.add_option("--overlap-semantics",
                 options.overlap_semantics,
                 "overlapped units: one piece, or a forward and then a backward")
      ->type_name("atomic|sequential");
  app.add_flag("--csv", options.csv, "print the lists only: a rank per line");
  app.add_option("--svg", options.svg, "draw the timeline into FILE, or to standard output (-)")
      ->type_name("FILE|-")
      ->check(not_empty());
  add_json_option(app, options.json);
}

std::int32_t sized(const std::optional<std::int64_t>& value,
                   const char* pointer,
                   std::int32_t otherwise,
                   std::vector<Diagnostic>& faults) {
  const std::int64_t size = value.value_or(otherwise);
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (value && (size < 1 || size > most)) {
    faults.push_back({pointer, std::to_string(size) + " is not between 1 and 2147483647", ""});
    return 1;
  }
  return static_cast<std::int32_t>(size);
}

void append(std::vector<Diagnostic>& faults, const Faults& more) {
  faults.insert(faults.end(), more.list.begin(), more.list.end());
}

/// Options that shape only schedules that are not built: refused by name, never ignored.
void check_shapes(const Options& options, std::vector<Diagnostic>& faults) {
  if (options.slices.value_or(1) != 1) {
    faults.push_back({"/slices",
                      options.name + " does not cut micro-batches into slices",
                      "seq1f1b does, and is not built yet"});
  }
  const std::string semantics = options.overlap_semantics.value_or("atomic");
  if (semantics != "atomic" && semantics != "sequential") {
    faults.push_back(
        {"/overlap_semantics", "unknown \"" + semantics + "\"", "atomic or sequential"});
  }
  for (Diagnostic& fault : check_targets({{"svg", options.svg}, {"json", options.json}})) {
    faults.push_back(std::move(fault));
  }
  if (options.csv && options.svg == "-") {
    faults.push_back({"/svg", "standard output cannot hold both --csv and --svg -", ""});
  }
}

Expected<Schedule> named_schedule(const Options& options) {
  std::vector<Diagnostic> faults;
  for (const auto& [value, pointer] :
       {std::pair{options.pp, "/pp"}, std::pair{options.micro_batches, "/micro_batches"}}) {
    if (!value) {
      faults.push_back({pointer, "needed: it is part of the schedule's size", ""});
    }
  }
  ScheduleSize size;
  size.pp = sized(options.pp, "/pp", 1, faults);
  size.micro_batches = sized(options.micro_batches, "/micro_batches", 1, faults);
  size.vpp = sized(options.vpp, "/vpp", 1, faults);
  size.group = sized(options.group, "/group", 0, faults);
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return make_schedule(options.name, size);
}

/// A file's lists; sizes given beside it must be those of the file.
Expected<Schedule> file_schedule(const Options& options) {
  errno = 0;
  std::ifstream file(options.name, std::ios::binary);
  std::string text;
  std::array<char, 65536> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof() || file.bad()) {
    return refuse_file(options.name, errno != 0 ? std::strerror(errno) : "cannot be read");
  }
  Expected<Schedule> schedule = parse_schedule_csv(text);
  if (!schedule) {
    return schedule;
  }
  schedule->name = options.name;
  std::vector<Diagnostic> faults;
  const auto compare = [&](const std::optional<std::int64_t>& value,
                           const char* pointer,
                           int held) {
    if (value && *value != held) {
      faults.push_back({pointer,
                        std::to_string(*value) + " differs from the file's " + std::to_string(held),
                        "leave it out: the lists tell"});
    }
  };
  compare(options.pp, "/pp", schedule->size.pp);
  compare(options.micro_batches, "/micro_batches", schedule->size.micro_batches);
  compare(options.vpp, "/vpp", schedule->size.vpp);
  if (options.group) {
    faults.push_back({"/group", "a file's lists have no group", "leave it out"});
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return schedule;
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.find('.') != std::string::npos;
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

int report_deadlock(const Schedule& schedule, const Options& options, const std::string& grid) {
  if (options.json != "-") {
    const int written = write_output("-", schedule.name + ": " + grid + "\n");
    if (written != kExitDone) {
      return written;
    }
  }
  if (!options.json.empty()) {
    const int written = write_json(options.json, deadlock_json(schedule, grid));
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

}  // namespace

int cmd_schedule(int argc, char** argv) {
  CLI::App app("", "schedule");
  Options options;
  declare(app, options);
  if (const std::optional<int> code = parse_options(app, argc, argv)) {
    return *code;
  }
  if (const std::optional<int> over = refuse_overwriting(
          "schedule", {{"svg", options.svg}, {"json", options.json}}, {options.name})) {
    return *over;
  }
  const Expected<Schedule> schedule =
      is_path(options.name) ? file_schedule(options) : named_schedule(options);
  Expected<TypedCosts> costs = read_costs(options.costs);
  Faults faults;
  check_shapes(options, faults.list);
  if (!schedule) {
    append(faults.list, schedule.error());
    faults.kind = schedule.error().kind;
  }
  if (!costs) {
    append(faults.list, costs.error());
  }
  if (!faults.list.empty()) {
    return report_faults(faults, "schedule " + options.name, options.json);
  }
  if (options.overlap_semantics) {
    costs->unused.push_back("overlap-semantics");
  }
  if (const std::optional<std::string> grid = find_deadlock(*schedule)) {
    return report_deadlock(*schedule, options, *grid);
  }
  const Expected<ScheduleTiming> timing = time_schedule(*schedule, costs->ticks);
  if (!timing) {
    return report_faults(timing.error(), "schedule " + options.name, options.json);
  }
  return print(*schedule, *timing, *costs, options);
}

}  // namespace foretrain
