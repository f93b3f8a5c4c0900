#pragma once

#include "foretrain/search.h"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace CLI {
class App;
}

namespace foretrain {

/// The axes of a search as typed: lists with commas, empty where not given.
struct AxesLine {
  std::string micro_batch_sizes, vpp, recompute, sharding, schedules, orders;
  bool uneven = false;
  std::vector<std::string> shown;  ///< "tp,cp,pp" each
};

/// Adds --micro-batch-sizes, --vpp, --recompute, --sharding, --schedules, --orders, --uneven and
/// --show to a command.
void add_axes_options(CLI::App& app, AxesLine& line);

/// The options of the axes as typed, a space before each; not --show.
std::string axes_words(const AxesLine& line);

/// The axes; every text that is no value of its axis is added to the faults.
SearchAxes read_axes(const AxesLine& line, std::vector<Diagnostic>& faults);

/// The layouts asked for by name: tp, cp and pp.
std::vector<Layout> read_shown(const AxesLine& line, std::vector<Diagnostic>& faults);

/// The axes as lists, in the words of the options.
nlohmann::ordered_json axes_json(const SearchAxes& axes);

}  // namespace foretrain
