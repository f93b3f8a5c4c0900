#pragma once

#include "sim/validate/published_row.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// How the words of published tables map to the values of a scenario: tables, one row a spelling.
/// Settings are written as on the command line (`--set PATH=VALUE`), several between bars.
namespace foretrain {

/// A publication: the software its runs used, and what it does where a row leaves something out.
struct PublishedSource {
  std::string_view spelling;  ///< what the source column holds
  std::string_view detail;    ///< what source_detail holds as well, or ""
  std::string_view label;     ///< short name
  std::string_view settings;  ///< stack, overlap, precisions: what is known of the software
  std::string_view sharding = "zero1";  ///< where not published
  bool sequence_parallel = true;        ///< where not published and tp is above 1
  bool interleaves = false;             ///< vpp where not published: one layer a chunk, or 1
  bool experts_over_tp = false;         ///< etp where not published: tp (Megatron's default), or 1
  bool no_recompute_in_flops = false;   ///< its FLOPs: 72 B s l h^2 (1 + s/6h + V/12lh)
  bool transfers_block =
      false;  ///< ranks wait for pipeline transfers in every schedule; or in 1f1b
};

/// A GPU as it is written, on a network as it is described.
struct PublishedHardware {
  std::string_view gpu;      ///< what the gpu column holds
  std::string_view network;  ///< what internode_bw_note holds as well, or ""
  std::string_view topology;
  std::string_view label;        ///< of the GPU
  double peak_tflops = 0;        ///< dense 16-bit, for rows that publish a utilisation
  bool network_told = false;     ///< else runs of several nodes assume it
  std::int64_t multiple_of = 1;  ///< for runs on so many GPUs and multiples of it
};

/// Models by the beginning of their name.
struct ModelSpelling {
  std::string_view prefix;
  std::string_view family;        ///< model_type
  std::string_view more = {};     ///< members of the config that no column holds, or better ones
  std::string_view assumed = {};  ///< what is simplified
};

/// How a model is cut where its layers do not divide, by published recipes: Megatron's layout
/// string, prediction modules (m) left out where none are trained.
struct PublishedCut {
  std::string_view model;  ///< prefix
  std::int64_t chunks = 0;
  std::string_view layout;
};

enum class PublishedColumn { kDtype, kSharding, kRecompute, kSchedule, kKernel, kOverlap, kNotes };

/// A word of a column. Words of kKernel, kOverlap and kNotes stand within a longer text.
struct Spelling {
  PublishedColumn column;
  std::string_view word;
  std::string_view settings;
  std::string_view source = {};   ///< only rows of this label
  std::string_view assumed = {};  ///< where the value is only near to what the word means
  std::int64_t vpp = 0;           ///< a schedule's own, whatever the row says; 0: none
  bool layers_as_needed = false;  ///< some layers are recomputed, and how many is not published
};

std::span<const PublishedSource> published_sources();
std::span<const PublishedHardware> published_hardware();
std::span<const ModelSpelling> model_spellings();
std::span<const Spelling> spellings();
std::span<const PublishedCut> published_cuts();

/// The first row that fits; a source that is not known gets the table's last row.
const PublishedSource& source_of(const PublishedRow& row);
const PublishedHardware* hardware_of(const PublishedRow& row);
const ModelSpelling* model_spelling_of(const PublishedRow& row);

/// The spelling of a column that holds one word; nullptr: not in the table.
const Spelling* spelling_of(PublishedColumn column,
                            const std::string& word,
                            const PublishedSource& source);
/// Every spelling found within the kernel, the overlap note and the notes, in the table's order.
std::vector<const Spelling*> spellings_within(const PublishedRow& row,
                                              const PublishedSource& source);

/// "a=b | c=d" -> {"a=b", "c=d"}
std::vector<std::string> split_settings(std::string_view settings);

}  // namespace foretrain
