#pragma once

#include "foretrain/scenario.h"
#include "sim/scenario/json_cursor.h"

#include <string>
#include <vector>

/// The sections of a scenario, one function each. All faults go to the cursor's list; a section
/// with faults keeps its defaults where they arose.
namespace foretrain {

/// What a scenario file states beside the fields of Scenario: values that are derived, and may be
/// given only when they agree; and which forms were used.
struct StatedValues {
  std::optional<std::int64_t> dp;
  std::optional<std::int64_t> micro_batches;
  bool vpp = false;
  bool multi_token_prediction = false;
  bool contention = false;           ///< overlap.contention, whatever it says
  bool modelled_contention = false;  ///< and it says so
};

void read_training(JsonCursor& section, TrainingSpec& training, StatedValues& stated);
void read_parallelism(JsonCursor& section, Parallelism& parallelism, StatedValues& stated);
/// False: a file that it names cannot be read.
bool read_schedule(JsonCursor& section, ScheduleSpec& schedule, const std::string& base_directory);
void read_recompute(JsonCursor& section, RecomputeSpec& recompute);
void read_overlap(JsonCursor& section, OverlapSpec& overlap, StatedValues& stated);
void read_network(JsonCursor& section, NetworkSpec& network);
void read_costs(JsonCursor& section, CostSpec& costs);
void read_stack(JsonCursor& section, StackSpec& stack);
void read_perturbations(JsonCursor& section,
                        std::vector<Perturbation>& perturbations,
                        const std::string& base_directory);

/// Rows of a file of expert loads: a header "layer,micro_batch,rank,load", then a line each. Faults
/// name the line.
std::vector<ExpertLoad> read_expert_loads(const JsonCursor& at, const std::string& path);

/// What "dtype": NAME stands for.
PrecisionSpec precision_preset(const std::string& name);

/// The stack of a preset's name, or nothing.
std::optional<StackSpec> stack_preset(const std::string& name);
std::vector<std::string> stack_presets();

/// Every rule that spans sections. Fills in what is derived (dp, vpp, layers_per_stage). A rule
/// whose inputs are at fault already stays silent.
void validate_scenario(Scenario& scenario,
                       const StatedValues& stated,
                       const ScenarioWaivers& waived,
                       std::vector<Diagnostic>& faults);

/// "a.b=c" into the text; a degree, batch or GPU count that is overridden frees the values derived
/// from it (dp, micro_batches).
void apply_overrides(JsonValue& text,
                     const std::vector<std::string>& overrides,
                     std::vector<Diagnostic>& faults);

/// Names of data types in the order of DataType.
constexpr std::string_view kDataTypes[] = {"fp32", "bf16", "fp16", "fp8", "nvfp4"};
constexpr std::string_view kShardings[] = {"none", "zero1", "zero2", "zero3"};
constexpr std::string_view kContextKinds[] = {"ring", "all_gather", "ulysses"};
constexpr std::string_view kRecomputeModes[] = {"none", "selective", "full", "modules"};

/// A word of a table into the enumerator at its place.
template <typename Enum, std::size_t N>
bool read_word(JsonCursor& section,
               std::string_view key,
               const std::string_view (&words)[N],
               Enum& target) {
  std::string word;
  if (!section.read(key, word, words)) {
    return false;
  }
  for (std::size_t index = 0; index < N; ++index) {
    if (words[index] == word) {
      target = static_cast<Enum>(index);
    }
  }
  return true;
}

}  // namespace foretrain
