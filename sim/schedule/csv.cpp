#include "sim/schedule/capped_faults.h"
#include "sim/schedule/csv_cells.h"
#include "sim/schedule/inference.h"
#include "sim/schedule/lists.h"

#include <algorithm>
#include <array>

namespace foretrain {
namespace {

constexpr const char* kGrammar =
    "actions read 2F0, 2B0, 2I0, 2W0 (stage, kind, micro-batch) or (2F1;2B0)OVERLAP_F_B, "
    "separated by commas";

constexpr std::string_view kBlank = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos
             ? std::string_view{}
             : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

constexpr std::string_view kDigits = "0123456789";

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos;
}

/// Cells that hold the place of nothing.
bool is_padding(std::string_view text) {
  return text.empty() || text == "None";
}

/// A cell of a line of titles: a word or a bare number, but no F0 that lacks its stage.
bool is_title(std::string_view text) {
  const bool short_action =
      text.size() > 1 && std::string_view("FBIW").find(text[0]) < 4 && all_digits(text.substr(1));
  const bool letter = (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z');
  return all_digits(text) || (letter && !short_action);
}

/// "3" or "Rank 3" in front of a rank's actions, as tables have it.
bool is_row_label(std::string_view text) {
  constexpr std::string_view kRank = "ank ";
  if (text.size() > 5 && (text[0] == 'r' || text[0] == 'R') && text.substr(1, 4) == kRank) {
    text = text.substr(5);
  }
  return all_digits(text);
}

/// 0SEND_F1, 2UNSHARD: what PyTorch's lists hold besides computations.
bool is_communication(std::string_view text) {
  const std::size_t word = std::min(text.find_first_not_of(kDigits), text.size());
  const std::size_t after = std::min(text.find_last_not_of(kDigits) + 1, text.size());
  constexpr std::array<std::string_view, 7> kWords = {
      "SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"};
  return word > 0 && word < after &&
         std::find(kWords.begin(), kWords.end(), text.substr(word, after - word)) != kWords.end();
}

/// 2BW0: a whole backward in the files in which B is its input half.
std::optional<Action> whole_backward(std::string_view text) {
  const std::size_t word = text.find("BW");
  return word == std::string_view::npos
             ? std::nullopt
             : parse_action(std::string(text.substr(0, word + 1)).append(text.substr(word + 2)));
}

/// The cell as messages quote it: short, and without what a terminal would obey.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 40;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string safe = "\"";
  for (const char c : text.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f && byte < 0x80) {
      safe += c;
    } else {
      safe += std::string("\\x") + kHex[byte / 16] + kHex[byte % 16];
    }
  }
  return safe + (text.size() > kMost ? "...\"" : "\"");
}

/// Reads the rows into lists, one per rank.
class Reader {
 public:
  explicit Reader(std::string_view text) : cells_(text) {}

  void read() {
    std::vector<std::string_view> row;
    while (cells_.next_row(row)) {
      add_row(row);
      if (actions_ > kMostActions) {
        faults_.add("more than " + std::to_string(kMostActions) + " actions", "fewer of them");
        return;
      }
    }
    if (cells_.open_quote() > 0) {
      faults_.add("line " + std::to_string(cells_.open_quote()) + ": a quote is never closed", "");
    }
  }

  std::vector<std::vector<Action>> take_lists() { return std::move(lists_); }
  std::vector<std::size_t> take_lines() { return std::move(lines_); }
  CappedFaults& faults() { return faults_; }

  /// What was left out.
  std::string note() const {
    return communications_ == 0
               ? ""
               : std::to_string(communications_) +
                     " sends, receives and gathers are left out: transfers follow from the "
                     "computations";
  }

 private:
  void add_row(std::vector<std::string_view>& row) {
    for (std::string_view& text : row) {
      text = trimmed(text);
    }
    const bool blank = row.size() == 1 && row[0].empty();
    if (blank || (lists_.empty() && is_header(row))) {
      return;
    }
    lines_.push_back(cells_.line());
    std::vector<Action>& list = lists_.emplace_back();
    const bool labelled = row.size() > 1 && is_row_label(row[0]);
    for (std::size_t i = labelled ? 1 : 0; i < row.size(); ++i) {
      if (!is_padding(row[i])) {
        add_cell(row[i], list);
      }
    }
    actions_ += static_cast<std::int64_t>(list.size());
  }

  static bool is_header(const std::vector<std::string_view>& row) {
    return std::all_of(row.begin(),
                       row.end(),
                       [](std::string_view text) { return text.empty() || is_title(text); }) &&
           std::any_of(row.begin(), row.end(), [](std::string_view text) { return !text.empty(); });
  }

  void add_cell(std::string_view text, std::vector<Action>& list) {
    if (const std::optional<Action> action = parse_action(text)) {
      list.push_back(*action);
    } else if (text.front() == '(') {
      add_unit(text, list);
    } else if (const std::optional<Action> whole = whole_backward(text)) {
      list.push_back(*whole);
    } else if (is_communication(text)) {
      ++communications_;
    } else {
      refuse_cell(text, "is no action", kGrammar);
    }
  }

  /// `(0F3;3B5)OVERLAP_F_B`
  void add_unit(std::string_view text, std::vector<Action>& list) {
    constexpr std::string_view kEnd = ")OVERLAP_F_B";
    if (!text.ends_with(kEnd)) {
      return refuse_cell(text, "is no overlapped unit", "they read (0F3;3B5)OVERLAP_F_B");
    }
    const std::string_view inside = text.substr(1, text.size() - 1 - kEnd.size());
    const std::size_t middle = std::min(inside.find(';'), inside.size());
    std::optional<Action> forward = parse_action(trimmed(inside.substr(0, middle)));
    const std::optional<Action> partner =
        middle < inside.size() ? parse_action(trimmed(inside.substr(middle + 1))) : std::nullopt;
    const bool pair =
        forward && partner && forward->kind == ActionKind::kForward &&
        (partner->kind == ActionKind::kBackward || partner->kind == ActionKind::kInputGradient);
    if (!pair) {
      return refuse_cell(text,
                         "is no overlapped unit",
                         "two actions, a forward and then a B or I: (0F3;3B5)OVERLAP_F_B");
    }
    forward->overlapped = true;
    list.push_back(*forward);
    list.push_back(*partner);
  }

  void refuse_cell(std::string_view text, const char* what, const std::string& hint) {
    faults_.add("line " + std::to_string(cells_.line()) + ": " + quoted(text) + " " + what,
                hint == last_hint_ ? "" : hint);
    last_hint_ = hint;
  }

  CsvCells cells_;
  CappedFaults faults_;
  std::string last_hint_;  // a hint stands once
  std::vector<std::vector<Action>> lists_;
  std::vector<std::size_t> lines_;  ///< of each list
  std::int64_t actions_ = 0, communications_ = 0;
};

}  // namespace

std::string schedule_csv(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& list : schedule.ranks) {
    for (std::size_t i = 0; i < list.size(); i += unit_length(list[i])) {
      text += i == 0 ? "" : ",";
      text += unit_text({&list[i], unit_length(list[i])});
    }
    text += "\n";
  }
  return text;
}

Expected<Schedule> parse_schedule_csv(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  Reader reader(text);
  reader.read();
  CappedFaults& faults = reader.faults();
  Schedule schedule;
  schedule.name = "csv";
  schedule.ranks = reader.take_lists();
  schedule.note = reader.note();
  if (faults.empty()) {
    infer_sizes(schedule, reader.take_lines(), faults);
  }
  if (faults.empty()) {
    read_old_letters(schedule);
    for (std::string& fault : list_faults(schedule)) {
      faults.add(std::move(fault), "");
    }
  }
  if (!faults.empty()) {
    return refuse(faults.take());
  }
  return schedule;
}

}  // namespace foretrain
