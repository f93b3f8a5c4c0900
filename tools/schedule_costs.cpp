#include "tools/schedule_costs.h"

#include "tools/cost_text.h"

#include <algorithm>
#include <array>
#include <limits>

namespace foretrain {
namespace {

/// The options of costs as read, and how the halves of a backward come about.
struct Costs {
  CostOption forward, backward, dgrad, wgrad, overlapped, p2p;
  std::array<const CostOption*, 6> all() const {
    return {&forward, &backward, &dgrad, &wgrad, &overlapped, &p2p};
  }
};

Costs read_all(const CostOptions& options, std::vector<Diagnostic>& faults) {
  return {read_cost_option("forward", options.forward, faults),
          read_cost_option("backward", options.backward, faults),
          read_cost_option("dgrad", options.dgrad, faults),
          read_cost_option("wgrad", options.wgrad, faults),
          read_cost_option("overlapped", options.overlapped, faults),
          read_cost_option("p2p", options.p2p, faults)};
}

/// Either every cost has a unit or none has; a bare 0 goes with both.
void check_units(const Costs& costs, std::vector<Diagnostic>& faults) {
  std::string because;
  for (const CostOption* const option : costs.all()) {
    const bool unit = std::any_of(option->values.begin(),
                                  option->values.end(),
                                  [](const TypedCost& cost) { return !cost.unit.empty(); });
    because = unit && because.empty() ? "--" + option->name + " has one" : because;
  }
  if (because.empty()) {
    return;
  }
  for (const CostOption* const option : costs.all()) {
    const bool bare =
        std::any_of(option->values.begin(), option->values.end(), [](const TypedCost& cost) {
          return cost.unit.empty() && cost.mantissa != 0;
        });
    if (bare) {
      faults.push_back({"/" + option->name, "needs a unit of time, as " + because, ""});
    }
  }
  if (!costs.forward.given()) {
    faults.push_back({"/forward", "needed: its default 1 has no unit, and " + because, ""});
  }
  if (!costs.backward.given() && !(costs.dgrad.given() && costs.wgrad.given())) {
    faults.push_back({"/backward", "needed: its default 2 has no unit, and " + because, ""});
  }
}

void check_lengths(const Costs& costs, std::int32_t stages, std::vector<Diagnostic>& faults) {
  for (const CostOption* const option : costs.all()) {
    const std::size_t count = option->values.size();
    if (option == &costs.p2p && count > 1) {
      faults.push_back({"/p2p", "one value for all links, not " + std::to_string(count), ""});
    } else if (count > 1 && stages > 0 && count != static_cast<std::size_t>(stages)) {
      faults.push_back({"/" + option->name,
                        std::to_string(count) + " values for " + std::to_string(stages) +
                            (stages == 1 ? " virtual stage" : " virtual stages"),
                        "one value for all stages, or one for each"});
    }
  }
}

void check_halves(const Costs& costs, std::vector<Diagnostic>& faults) {
  if (!costs.backward.given() && costs.dgrad.given() != costs.wgrad.given()) {
    const std::string missing = costs.dgrad.given() ? "wgrad" : "dgrad";
    faults.push_back({"/" + missing, "needed: a backward is dgrad + wgrad", "or give --backward"});
  }
}

/// Costs as ticks: whole numbers of the finest digit that any of them has.
class Ticks {
 public:
  Ticks(const Costs& costs, const CostUses& uses, TypedCosts& out, std::vector<Diagnostic>& faults)
      : costs_(costs), uses_(uses), out_(out), faults_(faults) {}

  void fill() {
    choose_unit();
    std::size_t stages = 1;
    for (const CostOption* const option : costs_.all()) {
      stages = std::max(stages, option->values.size());
    }
    out_.ticks.stages.assign(stages, ChunkCosts{});
    for (std::size_t stage = 0; stage < stages; ++stage) {
      fill_stage(stage);
    }
    out_.ticks.p2p = costs_.p2p.given() ? ticks(costs_.p2p, 0) : Duration{};
    note_halves();
  }

 private:
  bool halved() const {
    return uses_.split_backwards && costs_.backward.given() && !costs_.dgrad.given() &&
           !costs_.wgrad.given();
  }

  /// The printed unit: the first one typed.
  void choose_unit() {
    struct Scale {
      const char* name;
      int decimals;
    };
    static constexpr std::array<Scale, 4> kScales = {{{"ms", 3}, {"us", 6}, {"ns", 9}, {"ps", 12}}};
    std::string unit;
    for (const CostOption* const option : costs_.all()) {
      for (const TypedCost& cost : option->values) {
        decimals_ = std::max(decimals_, cost.decimals);
        unit = unit.empty() ? cost.unit : unit;
      }
    }
    if (halved() && decimals_ < kMostDigits) {
      decimals_ += 1;  // halves of odd numbers of the last digit
    }
    out_.unit = out_.second_or_one = Duration{power_of_ten(decimals_)};
    if (unit.empty()) {
      return;
    }
    out_.suffix = " s";
    for (const Scale& scale : kScales) {
      if (unit == scale.name) {
        out_.suffix = std::string(" ") + scale.name;
        out_.unit = Duration{power_of_ten(decimals_ - scale.decimals)};
      }
    }
  }

  Duration ticks(const TypedCost& cost, const std::string& name) {
    const Int128 ticks = Int128{cost.mantissa} * power_of_ten(decimals_ - cost.decimals);
    if (ticks > Int128{std::numeric_limits<std::int64_t>::max() / 4}) {
      if (faults_.empty()) {
        faults_.push_back({"/" + name,
                           "the costs together span more digits than can be held exactly",
                           "round the finest of them"});
      }
      return Duration{};
    }
    return Duration{static_cast<std::int64_t>(ticks)};
  }
  Duration ticks(const CostOption& option, std::size_t stage) {
    return ticks(option.values[option.values.size() > 1 ? stage : 0], option.name);
  }
  Duration whole(std::int64_t value, const char* name) { return ticks({value, 0, ""}, name); }

  void fill_stage(std::size_t stage) {
    ChunkCosts& chunk = out_.ticks.stages[stage];
    const auto given = [&](const CostOption& option) { return ticks(option, stage); };
    chunk.forward = costs_.forward.given() ? given(costs_.forward) : whole(1, "forward");
    if (costs_.overlapped.given()) {
      chunk.overlapped = given(costs_.overlapped);
    }
    if (!costs_.backward.given()) {
      const bool halves = costs_.dgrad.given();
      chunk.input_gradient = halves ? given(costs_.dgrad) : whole(1, "dgrad");
      chunk.weight_gradient = halves ? given(costs_.wgrad) : whole(1, "wgrad");
      chunk.backward = chunk.input_gradient + chunk.weight_gradient;
      return;
    }
    chunk.backward = given(costs_.backward);
    chunk.input_gradient = chunk.backward / 2;
    if (uses_.split_backwards && costs_.dgrad.given()) {
      chunk.input_gradient = given(costs_.dgrad);
    } else if (uses_.split_backwards && costs_.wgrad.given()) {
      chunk.input_gradient = chunk.backward - given(costs_.wgrad);
    }
    const bool both = costs_.dgrad.given() && costs_.wgrad.given();
    chunk.weight_gradient = both ? given(costs_.wgrad) : chunk.backward - chunk.input_gradient;
    if (std::min(chunk.input_gradient, chunk.weight_gradient) < Duration{} && faults_.empty()) {
      const std::string name = costs_.dgrad.given() ? "dgrad" : "wgrad";
      faults_.push_back(
          {"/" + name, "--" + name + " is larger than --backward", "give --dgrad and --wgrad"});
    }
  }

  void note_halves() {
    const bool one = costs_.dgrad.given() != costs_.wgrad.given();
    if (halved()) {
      out_.assumed.emplace_back(
          "dgrad and wgrad are taken as half of --backward each (--dgrad and --wgrad set them)");
    } else if (one && costs_.backward.given() && uses_.split_backwards) {
      const std::string other = costs_.dgrad.given() ? "dgrad" : "wgrad";
      out_.assumed.push_back((other == "dgrad" ? "wgrad" : "dgrad") +
                             std::string(" is taken as --backward less --") + other);
    }
    if (uses_.overlapped && !costs_.overlapped.given() && !out_.ticks.sequential) {
      out_.assumed.emplace_back(
          "an overlapped unit is taken as forward + backward: no time is gained (--overlapped)");
    }
  }

  const Costs& costs_;
  const CostUses& uses_;
  TypedCosts& out_;
  std::vector<Diagnostic>& faults_;
  int decimals_ = 0;
};

/// Reads the options that name a way of running rather than a cost.
void read_modes(const CostOptions& options, TypedCosts& typed, std::vector<Diagnostic>& faults) {
  const std::string semantics = options.overlap_semantics.value_or("atomic");
  if (semantics != "atomic" && semantics != "sequential") {
    faults.push_back(
        {"/overlap_semantics", "unknown \"" + semantics + "\"", "atomic or sequential"});
  }
  const std::string mode = options.p2p_mode.value_or("eager");
  if (mode != "eager" && mode != "rendezvous") {
    faults.push_back({"/p2p_mode", "unknown \"" + mode + "\"", "eager or rendezvous"});
  }
  typed.ticks.sequential = semantics == "sequential";
  typed.ticks.mode = mode == "rendezvous" ? PointToPoint::kRendezvous : PointToPoint::kEager;
  typed.ticks.batched = !options.unbatched;
}

void note_unused(const CostOptions& options, const CostUses& uses, TypedCosts& typed) {
  const auto unused = [&](bool given, const char* name, const char* why) {
    if (given) {
      typed.unused.push_back({name, why});
    }
  };
  const bool halves = options.dgrad && options.wgrad;
  if (!uses.split_backwards && options.backward) {
    unused(
        options.dgrad.has_value(), "dgrad", "backwards are whole here, --backward is their cost");
    unused(
        options.wgrad.has_value(), "wgrad", "backwards are whole here, --backward is their cost");
  }
  unused(!uses.whole_backwards && halves && options.backward,
         "backward",
         "every backward is split here, --dgrad and --wgrad are its costs");
  unused(!uses.overlapped && options.overlapped, "overlapped", "no unit is overlapped here");
  unused(uses.overlapped && typed.ticks.sequential && options.overlapped,
         "overlapped",
         "sequential units run as a forward and then a backward, at the costs of these");
  unused(!uses.overlapped && options.overlap_semantics,
         "overlap-semantics",
         "no unit is overlapped here");
  unused(!uses.transfers && typed.ticks.p2p != Duration{}, "p2p", "nothing crosses ranks here");
  unused(!uses.transfers && options.p2p_mode, "p2p-mode", "nothing crosses ranks here");
  unused(options.unbatched && typed.ticks.mode == PointToPoint::kEager,
         "unbatched",
         "eager transfers do not wait for each other (--p2p-mode rendezvous)");
}

}  // namespace

CostUses uses_of(const Schedule& schedule) {
  CostUses uses{schedule.stages(), false, false, false, message_count(schedule) > 0};
  for (const std::vector<Action>& list : schedule.ranks) {
    for (const Action& action : list) {
      uses.whole_backwards = uses.whole_backwards || action.kind == ActionKind::kBackward;
      uses.split_backwards = uses.split_backwards || action.kind == ActionKind::kInputGradient;
      uses.overlapped = uses.overlapped || action.overlapped;
    }
  }
  return uses;
}

Expected<TypedCosts> read_costs(const CostOptions& options, const CostUses& uses) {
  std::vector<Diagnostic> faults;
  TypedCosts typed;
  typed.uses = uses;
  const Costs costs = read_all(options, faults);
  check_units(costs, faults);
  check_lengths(costs, uses.stages, faults);
  check_halves(costs, faults);
  read_modes(options, typed, faults);
  if (faults.empty()) {
    Ticks(costs, uses, typed, faults).fill();
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  note_unused(options, uses, typed);
  return typed;
}

}  // namespace foretrain
