#include "tools/search_axes.h"

#include "tools/output.h"
#include "tools/typed.h"

#include "foretrain/schedule.h"
#include "sim/base/edit_distance.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

constexpr const char* kShardings[] = {"none", "zero1", "zero2", "zero3"};

struct RecomputeWord {
  const char* word;
  std::int64_t value;
};
constexpr RecomputeWord kRecomputeWords[] = {
    {"as_needed", kRecomputeAsNeeded}, {"none", 0}, {"full", kRecomputeAll}};

std::optional<std::int64_t> integer(const std::string& word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc{} && end == word.data() + word.size();
  return whole ? std::optional(value) : std::nullopt;
}

/// Reads each word of a list into an axis; `value` gives nothing for one that means nothing, and
/// then the axis keeps its default.
template <typename Value, typename Read>
void read_list(const std::string& list,
               const std::string& name,
               const std::vector<std::string>& known,
               const std::string& legal,
               const Read& value,
               std::vector<Value>& axis,
               std::vector<Diagnostic>& faults) {
  if (list.empty()) {
    return;
  }
  std::vector<Value> values;
  const std::vector<std::string> words = comma_words(list);
  for (const std::string& word : words) {
    if (const std::optional<Value> read = value(word)) {
      values.push_back(*read);
      continue;
    }
    const std::string near = did_you_mean(word, known);
    faults.push_back(
        {"/axes/" + name, "cannot read \"" + word + "\"", near.empty() ? legal : near});
  }
  if (values.size() == words.size()) {
    axis = std::move(values);
  }
}

std::optional<std::int64_t> positive(const std::string& word) {
  const std::optional<std::int64_t> value = integer(word);
  return value && *value > 0 ? value : std::nullopt;
}

std::optional<std::int64_t> recompute(const std::string& word) {
  for (const RecomputeWord& known : kRecomputeWords) {
    if (known.word == word) {
      return known.value;
    }
  }
  const std::optional<std::int64_t> value = integer(word);
  return value && *value >= 0 ? value : std::nullopt;
}

std::optional<Sharding> sharding(const std::string& word) {
  const auto* const found = std::find(std::begin(kShardings), std::end(kShardings), word);
  return found == std::end(kShardings)
             ? std::nullopt
             : std::optional(static_cast<Sharding>(found - std::begin(kShardings)));
}

}  // namespace

void add_axes_options(CLI::App& app, AxesLine& line) {
  const auto list = [&app](const char* name, std::string& target, const char* help) {
    app.add_option(name, target, help)->type_name("LIST")->check(not_empty());
  };
  list("--micro-batch-sizes", line.micro_batch_sizes, "sequences of a micro-batch, e.g. 1,2,4");
  list("--vpp", line.vpp, "chunks a rank; above 1 with interleaved and others that loop");
  list("--recompute", line.recompute, "layers of a stage: as_needed, none, full, or a number");
  list("--sharding", line.sharding, "none, zero1, zero2, zero3");
  list("--schedules", line.schedules, "names as foretrain schedule --help has them, or all");
  list("--orders", line.orders, "of the mesh, innermost first, e.g. tp-cp-pp-ep-dp");
  app.add_flag("--uneven", line.uneven, "also pp that does not divide the layers");
  app.add_option("--show", line.shown, "say where this layout stands; may be repeated")
      ->type_name("TP,CP,PP")
      ->take_all()
      ->expected(1);
}

std::string axes_words(const AxesLine& line) {
  std::string words;
  const auto add = [&words](const char* option, const std::string& value) {
    words += value.empty() ? "" : std::string(" ") + option + " " + shell_word(value);
  };
  add("--micro-batch-sizes", line.micro_batch_sizes);
  add("--vpp", line.vpp);
  add("--recompute", line.recompute);
  add("--sharding", line.sharding);
  add("--schedules", line.schedules);
  add("--orders", line.orders);
  return words + (line.uneven ? " --uneven" : "");
}

SearchAxes read_axes(const AxesLine& line, std::vector<Diagnostic>& faults) {
  const auto name = [](const std::string& word) {
    return word.empty() ? std::nullopt : std::optional(word);
  };
  const std::string positive_only = "whole numbers from 1, e.g. 1,2,4";
  SearchAxes axes;
  read_list(line.micro_batch_sizes,
            "micro_batch_sizes",
            {},
            positive_only,
            positive,
            axes.micro_batch_sizes,
            faults);
  read_list(line.vpp, "vpp", {}, positive_only, positive, axes.vpp, faults);
  read_list(line.recompute,
            "recompute",
            {"as_needed", "none", "full"},
            "as_needed, none, full or a number of layers",
            recompute,
            axes.recompute_layers,
            faults);
  read_list(line.sharding,
            "sharding",
            {std::begin(kShardings), std::end(kShardings)},
            "none, zero1, zero2 or zero3",
            sharding,
            axes.shardings,
            faults);
  if (line.schedules == "all") {
    axes.schedules.assign(schedule_names().begin(), schedule_names().end());
  } else {
    read_list(line.schedules, "schedules", {}, "names with commas", name, axes.schedules, faults);
  }
  read_list(line.orders, "orders", {}, "e.g. tp-cp-ep-dp-pp", name, axes.orders, faults);
  axes.uneven_stages = line.uneven;
  return axes;
}

std::vector<Layout> read_shown(const AxesLine& line, std::vector<Diagnostic>& faults) {
  std::vector<Layout> shown;
  for (const std::string& text : line.shown) {
    const std::vector<std::string> words = comma_words(text);
    std::vector<std::int64_t> degrees;
    for (const std::string& word : words) {
      if (const std::optional<std::int64_t> degree = positive(word)) {
        degrees.push_back(*degree);
      }
    }
    if (words.size() != 3 || degrees.size() != 3) {
      faults.push_back({"/show", "cannot read \"" + text + "\"", "tp,cp,pp, e.g. 8,1,4"});
      continue;
    }
    shown.push_back({.tp = degrees[0], .cp = degrees[1], .pp = degrees[2]});
  }
  return shown;
}

nlohmann::ordered_json axes_json(const SearchAxes& axes) {
  nlohmann::ordered_json recomputed = nlohmann::ordered_json::array();
  for (const std::int64_t value : axes.recompute_layers) {
    const auto* const known = std::find_if(
        std::begin(kRecomputeWords), std::end(kRecomputeWords), [value](const RecomputeWord& word) {
          return word.value == value;
        });
    if (known == std::end(kRecomputeWords)) {
      recomputed.push_back(value);
    } else {
      recomputed.push_back(known->word);
    }
  }
  nlohmann::ordered_json shardings = nlohmann::ordered_json::array();
  for (const Sharding value : axes.shardings) {
    shardings.push_back(kShardings[static_cast<std::size_t>(value)]);
  }
  return {{"micro_batch_sizes", axes.micro_batch_sizes},
          {"vpp", axes.vpp},
          {"recompute", recomputed},
          {"sharding", shardings},
          {"schedules", axes.schedules},
          {"orders", axes.orders},
          {"uneven", axes.uneven_stages}};
}

}  // namespace foretrain
