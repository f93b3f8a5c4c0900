#include "sim/base/format.h"
#include "sim/schedule/lists.h"

#include <algorithm>

namespace foretrain {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// Cuts `rest` at the first separator and returns the piece before it.
std::string_view next_piece(std::string_view& rest, char separator) {
  const std::size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view piece = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return piece;
}

std::vector<Action> parse_line(std::string_view line,
                               std::size_t number,
                               std::vector<Diagnostic>& faults) {
  std::vector<Action> list;
  while (!line.empty()) {
    const std::string_view text = trimmed(next_piece(line, ','));
    if (text.empty()) {
      continue;
    }
    if (const std::optional<Action> action = parse_action(text)) {
      list.push_back(*action);
      continue;
    }
    const bool overlapped = text.find("OVERLAP") != std::string_view::npos;
    faults.push_back(
        {"/schedule",
         "line " + std::to_string(number) + ": \"" + std::string(text) + "\" " +
             (overlapped ? "is an overlapped unit, which is not built yet" : "is no action"),
         overlapped ? "" : "actions read <stage>F<micro-batch> or <stage>B<...>"});
  }
  return list;
}

/// The sizes the lists imply. Faults: more stages than the ranks share evenly.
void infer_size(Schedule& schedule, std::vector<Diagnostic>& faults) {
  std::int64_t stages = 0;
  std::int64_t micro_batches = 0;
  std::int64_t actions = 0;
  for (const std::vector<Action>& list : schedule.ranks) {
    for (const Action& action : list) {
      stages = std::max<std::int64_t>(stages, std::int64_t{action.stage} + 1);
      micro_batches = std::max<std::int64_t>(micro_batches, std::int64_t{action.micro_batch} + 1);
    }
    actions += static_cast<std::int64_t>(list.size());
  }
  const auto ranks = static_cast<std::int64_t>(schedule.ranks.size());
  if (ranks == 0 || actions == 0) {
    faults.push_back({"/schedule", "no action in the text", "one rank per line: 0F0,0F1,0B0,0B1"});
  } else if (stages % ranks != 0) {
    faults.push_back({"/schedule",
                      std::to_string(stages) + " " + plural("stage", stages) +
                          " cannot be shared by " + std::to_string(ranks) + " " +
                          plural("rank", ranks) + (ranks == 1 ? " (line)" : " (lines)"),
                      "stage s is on rank s mod " + std::to_string(ranks)});
  } else if (stages * micro_batches > actions) {
    faults.push_back({"/schedule",
                      std::to_string(actions) + " " + plural("action", actions) +
                          " cannot hold a forward and a backward of " + std::to_string(stages) +
                          " " + plural("stage", stages) + " x " + std::to_string(micro_batches) +
                          " " + plural("micro-batch", micro_batches),
                      ""});
  } else {
    schedule.size.pp = static_cast<std::int32_t>(ranks);
    schedule.size.vpp = static_cast<std::int32_t>(stages / ranks);
    schedule.size.micro_batches = static_cast<std::int32_t>(micro_batches);
    schedule.placement = schedule.size.vpp > 1 ? Placement::kLoop : Placement::kLinear;
  }
}

}  // namespace

std::string schedule_csv(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& list : schedule.ranks) {
    for (std::size_t i = 0; i < list.size(); i += unit_length(list[i])) {
      text += (i == 0 ? "" : ",") + unit_text({&list[i], unit_length(list[i])});
    }
    text += "\n";
  }
  return text;
}

Expected<Schedule> parse_schedule_csv(std::string_view text) {
  Schedule schedule;
  schedule.name = "csv";
  std::vector<Diagnostic> faults;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = next_piece(text, '\n');
    ++number;
    if (!trimmed(line).empty()) {
      schedule.ranks.push_back(parse_line(line, number, faults));
    }
  }
  if (faults.empty()) {
    infer_size(schedule, faults);
  }
  if (faults.empty()) {
    for (std::string& fault : list_faults(schedule)) {
      faults.push_back({"/schedule", std::move(fault), ""});
    }
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return schedule;
}

}  // namespace foretrain
