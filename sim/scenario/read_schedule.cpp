#include "foretrain/schedule.h"
#include "sim/scenario/json_value.h"
#include "sim/scenario/named_file.h"
#include "sim/scenario/sections.h"

#include <filesystem>

namespace foretrain {
namespace {

/// The user's own lists; what is wrong with them is a fault of the key that names the file. False:
/// the file cannot be read.
bool read_lists(const JsonCursor& at, ScheduleSpec& schedule, const std::string& base_directory) {
  schedule.name = "csv";
  const std::optional<std::string> path = at.string();
  if (!path) {
    return true;
  }
  schedule.csv = resolve_path(*path, base_directory);
  const Expected<std::string> text = read_text_file(schedule.csv);
  if (!text) {
    at.fault("cannot read " + schedule.csv, "a file of action lists, one rank per line");
    return false;
  }
  Expected<Schedule> lists = parse_schedule_csv(*text);
  if (lists) {
    schedule.lists = *std::move(lists);
    schedule.lists->name = std::filesystem::path(schedule.csv).filename().string();
    return true;
  }
  for (const Diagnostic& fault : lists.error().list) {
    at.fault(fault.message, fault.hint);
  }
  return true;
}

}  // namespace

bool read_schedule(JsonCursor& section, ScheduleSpec& schedule, const std::string& base_directory) {
  constexpr std::string_view kP2p[] = {"eager", "rendezvous"};
  constexpr std::string_view kSemantics[] = {"atomic", "sequential"};
  constexpr std::string_view kStreams[] = {"direction", "pair", "shared"};
  if (section.is_string()) {
    schedule.name = section.choice(schedule_names()).value_or("");
    return true;
  }
  if (!section.is_object()) {
    section.fault("must be a schedule's name or an object", "e.g. \"1f1b\"");
    return true;
  }
  bool readable = true;
  const std::optional<JsonCursor> csv = section.member("csv");
  const std::optional<JsonCursor> name = section.member("name");
  if (csv && name) {
    csv->fault("a schedule is a name or a file, not both", "give one of them");
  } else if (csv) {
    readable = read_lists(*csv, schedule, base_directory);
  } else if (name) {
    schedule.name = name->choice(schedule_names()).value_or("");
  }
  section.read("group", schedule.group, {0, 2147483647});
  section.read("slices", schedule.slices, {1, 32767});
  section.read("barrier", schedule.barrier);
  section.read("p2p", schedule.p2p, kP2p);
  section.read("batched", schedule.batched);
  section.read("streams", schedule.streams, kStreams);
  section.read("overlap_semantics", schedule.overlap_semantics, kSemantics);
  Duration overlapped{};
  if (section.read("overlapped", overlapped)) {
    schedule.overlapped = overlapped;
  }
  section.finish();
  return readable;
}

}  // namespace foretrain
