// The chapter's rules first, then what a scenario file of the layout would be refused for.
#include "sim/search/layout_rules.h"

#include "foretrain/schedule.h"
#include "sim/base/format.h"
#include "sim/base/real.h"
#include "sim/scenario/divides.h"
#include "sim/search/relax.h"
#include "sim/search/stages.h"
#include "sim/search/twins.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

using Subject = SearchSubject;

std::string tokens(const Subject& subject) {
  return with_commas(subject.job.sequence_length) + " " +
         plural("token", subject.job.sequence_length);
}

std::string sequences(const Subject& subject) {
  return with_commas(subject.job.global_batch_size) + " " +
         plural("sequence", subject.job.global_batch_size);
}

std::string layers(const Subject& subject) {
  return with_commas(subject.job.model.layers) + " " + plural("layer", subject.job.model.layers);
}

std::string gpus(const Subject& subject) {
  return with_commas(subject.job.gpus) + " " + plural("GPU", subject.job.gpus);
}

bool leaves_node(const Subject& subject, const Layout& layout) {
  return real(layout.tp) > subject.assumptions.gpus_per_node;
}
std::string node(const Subject& subject) {
  const double gpus = subject.assumptions.gpus_per_node;
  return fixed(gpus, 0) + " " + plural("GPU", std::llround(gpus)) + " of a node";
}
std::string leaves_node_name(const Subject& subject) {
  return "tp is more than the " + node(subject);
}
std::string leaves_node_reason(const Subject& subject, const Layout& layout) {
  return "tp " + with_commas(layout.tp) + " is more than the " + node(subject);
}

bool gpus_left_over(const Subject& /*subject*/, const Layout& layout) {
  return layout.dp < 1;
}
std::string gpus_name(const Subject& subject) {
  return "tp x cp x pp does not divide " + gpus(subject);
}
std::string gpus_reason(const Subject& subject, const Layout& layout) {
  return "tp " + with_commas(layout.tp) + " x cp " + with_commas(layout.cp) + " x pp " +
         with_commas(layout.pp) + " = " + with_commas(layout.tp * layout.cp * layout.pp) +
         " does not divide " + gpus(subject);
}

bool layers_left_over(const Subject& subject, const Layout& layout) {
  return !stages_divide(
      subject.job.model.layers, layout.pp, layout.vpp, subject.axes.uneven_stages);
}
bool has_chunks(const Subject& subject) {
  return subject.axes.vpp != std::vector<std::int64_t>{1};
}
std::string layers_name(const Subject& subject) {
  return std::string(has_chunks(subject) ? "pp x vpp" : "pp") +
         (subject.axes.uneven_stages ? " cannot share " : " does not divide ") + layers(subject);
}
std::string layers_reason(const Subject& subject, const Layout& layout) {
  const std::string chunks = layout.vpp > 1 ? " x vpp " + with_commas(layout.vpp) + " = " +
                                                  with_commas(layout.pp * layout.vpp)
                                            : "";
  return "pp " + with_commas(layout.pp) + chunks +
         (subject.axes.uneven_stages ? " cannot share " : " does not divide ") + layers(subject);
}

bool context_too_thin(const Subject& subject, const Layout& layout) {
  return layout.cp > 1 &&
         real(subject.job.sequence_length / layout.cp) < subject.assumptions.minimum_cp_tokens;
}
std::string context_name(const Subject& subject) {
  return tokens(subject) + " over cp are fewer than " +
         with_commas(std::llround(subject.assumptions.minimum_cp_tokens)) + " a rank";
}
std::string context_reason(const Subject& subject, const Layout& layout) {
  return tokens(subject) + " over cp " + with_commas(layout.cp) + " are " +
         with_commas(subject.job.sequence_length / layout.cp) + " a rank, fewer than " +
         with_commas(std::llround(subject.assumptions.minimum_cp_tokens));
}

bool batch_left_over(const Subject& subject, const Layout& layout) {
  return subject.job.global_batch_size % (Int128{layout.dp} * layout.micro_batch_size) != 0;
}
std::string batch_name(const Subject& subject) {
  const bool ones = subject.axes.micro_batch_sizes == std::vector<std::int64_t>{1};
  return std::string(ones ? "dp" : "dp x micro-batch") + " does not divide " + sequences(subject);
}
std::string batch_reason(const Subject& subject, const Layout& layout) {
  return "dp " + with_commas(layout.dp) +
         (layout.micro_batch_size > 1 ? " x micro-batch " + with_commas(layout.micro_batch_size)
                                      : "") +
         " does not divide " + sequences(subject);
}

bool heads_left_over(const Subject& subject, const Layout& layout) {
  return !heads_divide(subject.job.model, layout.tp);
}
std::string heads(const Subject& subject) {
  return " does not divide " + with_commas(subject.job.model.heads) + " attention " +
         plural("head", subject.job.model.heads);
}
std::string heads_name(const Subject& subject) {
  return "tp" + heads(subject);
}
std::string heads_reason(const Subject& subject, const Layout& layout) {
  return "tp " + with_commas(layout.tp) + heads(subject);
}

bool key_value_heads_left_over(const Subject& subject, const Layout& layout) {
  return !key_value_heads_divide(subject.job.model, layout.tp, false);
}
std::string key_value_heads(const Subject& subject) {
  return " does not divide " + with_commas(subject.job.model.kv_heads) + " key/value " +
         plural("head", subject.job.model.kv_heads);
}
std::string key_value_heads_name(const Subject& subject) {
  return "tp" + key_value_heads(subject);
}
std::string key_value_heads_reason(const Subject& subject, const Layout& layout) {
  return "tp " + with_commas(layout.tp) + key_value_heads(subject);
}

bool width_left_over(const Subject& subject, const Layout& layout) {
  return !mlp_divides(subject.job.model, layout.tp);
}
std::string width_name(const Subject& subject) {
  return "tp does not divide the MLP's width " + with_commas(subject.job.model.ffn);
}
std::string width_reason(const Subject& subject, const Layout& layout) {
  return "tp " + with_commas(layout.tp) + " does not divide the MLP's width " +
         with_commas(subject.job.model.ffn);
}

bool ring_left_over(const Subject& subject, const Layout& layout) {
  return !ring_divides(subject.job.sequence_length, layout.cp);
}
std::string ring_name(const Subject& subject) {
  return "2 x cp does not divide " + tokens(subject);
}
std::string ring_reason(const Subject& subject, const Layout& layout) {
  return "2 x cp " + with_commas(layout.cp) + " does not divide " + tokens(subject);
}

bool sequence_left_over(const Subject& subject, const Layout& layout) {
  return !sequence_divides(subject.job.sequence_length, layout.tp, layout.cp);
}
std::string sequence_name(const Subject& subject) {
  return "tp x cp does not divide " + tokens(subject);
}
std::string sequence_reason(const Subject& subject, const Layout& layout) {
  return "tp " + with_commas(layout.tp) + " x cp " + with_commas(layout.cp) + " does not divide " +
         tokens(subject);
}

/// Experts take the ranks of tp, cp and dp anew, in whole groups.
bool experts_do_not_fold(const Subject& /*subject*/, const Layout& layout) {
  return Int128{layout.tp} * layout.cp * layout.dp % layout.ep != 0;
}
std::string experts_name(const Subject& /*subject*/) {
  return "ep does not divide tp x cp x dp";
}
std::string experts_reason(const Subject& /*subject*/, const Layout& layout) {
  return "ep " + with_commas(layout.ep) + " does not divide tp " + with_commas(layout.tp) +
         " x cp " + with_commas(layout.cp) + " x dp " + with_commas(layout.dp);
}

bool too_many_micro_batches(const Subject& subject, const Layout& layout) {
  return subject.job.global_batch_size / layout.dp / layout.micro_batch_size > kMostMicroBatches;
}
std::string micro_batches_name(const Subject& /*subject*/) {
  return "more than " + with_commas(kMostMicroBatches) + " micro-batches";
}
std::string micro_batches_reason(const Subject& subject, const Layout& layout) {
  return with_commas(subject.job.global_batch_size / layout.dp / layout.micro_batch_size) +
         " micro-batches are more than " + with_commas(kMostMicroBatches);
}

const ScheduleEntry& entry_of(const Layout& layout) {
  const ScheduleEntry* const found = find_schedule(layout.schedule);
  return found == nullptr ? schedule_table().front() : *found;  // the axes are checked
}

bool runs_other_chunks(const Subject& /*subject*/, const Layout& layout) {
  const std::int64_t chunks = entry_of(layout).chunks;
  return chunks > 0 && layout.vpp != chunks;
}
std::string chunks_name(const Subject& subject) {
  const std::vector<std::string>& axis = subject.axes.schedules;
  const bool folded = std::any_of(axis.begin(), axis.end(), [](const std::string& name) {
    const ScheduleEntry* const entry = find_schedule(name);
    return entry != nullptr && entry->chunks == 2;
  });
  return folded ? "vpp that the schedule does not run" : "vpp above 1 without interleaved";
}
std::string chunks_reason(const Subject& /*subject*/, const Layout& layout) {
  return layout.schedule + " runs " + (entry_of(layout).chunks == 1 ? "one chunk" : "two chunks") +
         " a rank, vpp is " + with_commas(layout.vpp);
}

std::optional<Diagnostic> schedule_fault(const Subject& subject, const Layout& layout) {
  const ScheduleEntry& entry = entry_of(layout);
  const std::int64_t tokens_apart = layout.slices * layout.tp;
  if (layout.slices > 1 && (subject.job.sequence_length % tokens_apart != 0 || layout.cp > 1)) {
    return Diagnostic{"/schedule",
                      with_commas(layout.slices) + " slices x tp " + with_commas(layout.tp) +
                          (layout.cp > 1 ? " are not simulated with cp " + with_commas(layout.cp)
                                         : " do not divide " + tokens(subject)),
                      ""};
  }
  if (entry.illegal == nullptr) {
    return std::nullopt;
  }
  ScheduleSize size;
  size.pp = static_cast<std::int32_t>(layout.pp);
  size.vpp = static_cast<std::int32_t>(layout.vpp);
  size.slices = static_cast<std::int32_t>(layout.slices);
  size.micro_batches = static_cast<std::int32_t>(subject.job.global_batch_size / layout.dp /
                                                 layout.micro_batch_size);
  return entry.illegal(size);
}
bool schedule_refuses(const Subject& subject, const Layout& layout) {
  return schedule_fault(subject, layout).has_value();
}
std::string schedule_name(const Subject& subject) {
  std::string names;
  for (const std::string& name : subject.axes.schedules) {
    const ScheduleEntry* const entry = find_schedule(name);
    const bool limited = entry != nullptr && (entry->illegal != nullptr || entry->uses_slices);
    names += limited ? (names.empty() ? "" : ", ") + name : "";
  }
  return names + " cannot run this pp and number of micro-batches";
}
std::string schedule_reason(const Subject& subject, const Layout& layout) {
  const std::optional<Diagnostic> fault = schedule_fault(subject, layout);
  return fault ? fault->message : "";
}

bool recomputes_too_much(const Subject& subject, const Layout& layout) {
  const std::int64_t most =
      layout.most_layers > 0 ? layout.most_layers : subject.job.model.layers / layout.pp;
  return layout.recompute_layers > most;
}
std::string recompute_name(const Subject& /*subject*/) {
  return "more layers to recompute than a stage holds";
}
std::string recompute_reason(const Subject& /*subject*/, const Layout& layout) {
  return "recomputing " + with_commas(layout.recompute_layers) +
         " layers is more than a stage of pp " + with_commas(layout.pp) + " holds";
}

std::string twin_name(const Subject& /*subject*/) {
  return "the same layout as under another value of an axis";
}
std::string twin_reason(const Subject& subject, const Layout& /*layout*/) {
  return twin_name(subject);
}

constexpr LayoutRule kRules[] = {
    {leaves_node, leaves_node_name, leaves_node_reason},
    {gpus_left_over, gpus_name, gpus_reason},
    {layers_left_over, layers_name, layers_reason, "uneven stages would share them", share_layers},
    {context_too_thin, context_name, context_reason, "", thinner_context},
    {batch_left_over,
     batch_name,
     batch_reason,
     "another global batch would divide",
     divisible_batch},
    {heads_left_over, heads_name, heads_reason},
    {key_value_heads_left_over, key_value_heads_name, key_value_heads_reason},
    {width_left_over, width_name, width_reason},
    {ring_left_over, ring_name, ring_reason, "", divisible_sequence},
    {sequence_left_over, sequence_name, sequence_reason, "", divisible_sequence},
    {experts_do_not_fold, experts_name, experts_reason},
    {too_many_micro_batches,
     micro_batches_name,
     micro_batches_reason,
     "a smaller global batch has fewer",
     fewer_micro_batches},
    {runs_other_chunks,
     chunks_name,
     chunks_reason,
     "--schedules interleaved runs them",
     run_chunks},
    {schedule_refuses, schedule_name, schedule_reason, "", one_chunk},
    {recomputes_too_much,
     recompute_name,
     recompute_reason,
     "--recompute as_needed does what fits",
     recompute_as_needed},
    {is_twin, twin_name, twin_reason},
};

}  // namespace

std::span<const LayoutRule> layout_rules() {
  return kRules;
}

std::string_view way_out(const SearchSubject& subject, const LayoutRule& rule) {
  if (rule.broken == layers_left_over && has_chunks(subject)) {
    return "fewer chunks may share them";
  }
  const bool tried = rule.broken == layers_left_over && subject.axes.uneven_stages;
  return tried ? "" : rule.way_out;
}

std::optional<std::size_t> first_broken(const SearchSubject& subject, const Layout& layout) {
  for (std::size_t index = 0; index < std::size(kRules); ++index) {
    if (kRules[index].broken(subject, layout)) {
      return index;
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> broken_rules(const SearchSubject& subject, const Layout& layout) {
  static_assert(std::size(kRules) <= 32);
  if (gpus_left_over(subject, layout)) {
    return std::nullopt;
  }
  std::uint32_t broken = 0;
  for (std::size_t index = 0; index < std::size(kRules); ++index) {
    broken |= kRules[index].broken(subject, layout) ? std::uint32_t{1} << index : 0;
  }
  return kRules[std::size(kRules) - 1].broken(subject, layout) ? std::nullopt
                                                               : std::optional(broken);
}

}  // namespace foretrain
