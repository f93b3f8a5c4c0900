#include "tools/estimate_numbers.h"
#include "tools/estimate_output.h"
#include "tools/output.h"
#include "tools/search_output.h"
#include "tools/search_table.h"

#include "sim/base/format.h"
#include "sim/base/wrapped.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace foretrain {
namespace {

constexpr int kReasonWidth = 11;

/// A labelled paragraph, all but the label indented.
std::string paragraph(const std::string& label,
                      const std::string& text,
                      int width,
                      int indent = kReasonWidth) {
  return wrapped(pad(label, indent), text, indent, width);
}

/// The parts of a reason, a paragraph each.
std::string paragraphs(const std::string& label, const std::string& reason, int width) {
  std::string text;
  std::size_t at = 0;
  while (at < reason.size()) {
    const std::size_t end = std::min(reason.find("; ", at), reason.size());
    text += paragraph(text.empty() ? label : "", reason.substr(at, end - at), width);
    at = end + 2;
  }
  return text;
}

std::string title(const TrainingJob& job,
                  const SearchOptions& options,
                  const SearchResult& result,
                  int width) {
  const std::int64_t per_node = job.hardware.gpus_per_node;
  const std::int64_t nodes = (job.gpus + per_node - 1) / per_node;
  const auto count = [](std::int64_t value, const std::string& noun) {
    return with_commas(value) + " " + plural(noun, value);
  };
  const std::string subject = job.model_reference + " on " + with_commas(job.gpus) + " " +
                              job.hardware.gpu.display_name + " (" + count(nodes, "node") + " x " +
                              with_commas(per_node) + ") · " + count(job.sequence_length, "token") +
                              " x " + count(job.global_batch_size, "sequence") + " a step";
  const auto fit = static_cast<std::int64_t>(result.layouts.size());
  std::string text = with_commas(fit) + " of " + count(result.examined, "combination") +
                     (fit == 1 ? " fits" : " fit") + " · " + with_commas(result.legal) +
                     (result.legal == 1 ? " keeps" : " keep") + " every rule · ";
  text += options.simulate > 0 && fit > 0 ? "the best simulated and ranked again"
                                          : "closed form, nothing simulated";
  return paragraph("", subject, width, 0) + paragraph("", text, width, 0);
}

/// Layouts to show as rows: the best, then the ones asked for.
std::vector<const RankedLayout*> rows(const SearchResult& result, std::int64_t top) {
  std::vector<const RankedLayout*> list;
  for (const RankedLayout& ranked : result.layouts) {
    if (ranked.rank <= top) {
      list.push_back(&ranked);
    }
  }
  std::vector<const RankedLayout*> asked;
  for (const ShownLayout& shown : result.shown) {
    const auto same = [&](const RankedLayout* row) { return row->rank == shown.layout->rank; };
    if (shown.layout && std::none_of(list.begin(), list.end(), same) &&
        std::none_of(asked.begin(), asked.end(), same)) {
      asked.push_back(&*shown.layout);
    }
  }
  std::sort(asked.begin(), asked.end(), [](const RankedLayout* a, const RankedLayout* b) {
    return a->rank < b->rank;
  });
  list.insert(list.end(), asked.begin(), asked.end());
  return list;
}

/// The shares, with the layers behind the one of recomputation.
std::string where_it_goes(const Estimate& estimate) {
  std::string text = shares_text(estimate);
  const std::string recompute = recompute_text(estimate);
  if (recompute.empty()) {
    return text;
  }
  const std::string word = "recompute ";
  const std::size_t share = text.find(word);
  if (share == std::string::npos) {
    return text + " · " + recompute;
  }
  const std::string layers = " (" + recompute.substr(word.size()) + ")";
  return text.insert(text.find('%', share) + 1, layers);
}

std::string shares_block(const std::vector<const RankedLayout*>& list, int width) {
  std::string text = "\nwhere the step goes, by the closed form\n";
  for (const RankedLayout* row : list) {
    text += paragraph(pad(with_commas(row->rank), 4, true), where_it_goes(row->estimate), width, 6);
  }
  return text;
}

/// Why layouts that were to be simulated were not, once per reason.
std::string not_simulated(const std::vector<const RankedLayout*>& list, int width) {
  std::map<std::string, std::string> ranks;
  for (const RankedLayout* row : list) {
    if (!row->not_simulated.empty()) {
      std::string& known = ranks[row->not_simulated];
      known += (known.empty() ? "" : ", ") + with_commas(row->rank);
    }
  }
  std::string text;
  for (const auto& [reason, places] : ranks) {
    const bool one = places.find(',') == std::string::npos;
    text += paragraph("", (one ? "rank " : "ranks ") + places + " not simulated: " + reason, width);
  }
  return text.empty() ? "" : "\n" + text;
}

/// Layouts that the closed form puts first and the simulation last.
std::string refuted(const SearchResult& result, int width) {
  constexpr std::int64_t kNamed = 3;
  std::int64_t count = 0;
  std::string named;
  for (const RankedLayout& ranked : result.layouts) {
    if (ranked.refuted() && ++count <= kNamed) {
      named += (named.empty() ? "" : ", ") + layout_text(ranked.estimate.layout) + " (" +
               (ranked.simulated->deadlock
                    ? "deadlock"
                    : gigabytes_text(static_cast<double>(ranked.simulated->memory_bytes))) +
               ")";
    }
  }
  if (count == 0) {
    return "";
  }
  return "\n" + paragraph("",
                          with_commas(count) + " " + plural("layout", count) +
                              (count == 1 ? " does" : " do") + " not fit when simulated, and " +
                              (count == 1 ? "stands" : "stand") + " last: " + named +
                              (count > kNamed ? ", ..." : ""),
                          width);
}

std::string absent(const SearchResult& result, int width) {
  std::string text;
  for (const ShownLayout& shown : result.shown) {
    if (!shown.layout) {
      text += paragraph("not listed",
                        "tp " + std::to_string(shown.tp) + " · cp " + std::to_string(shown.cp) +
                            " · pp " + std::to_string(shown.pp) + ": " + shown.reason,
                        width);
    }
  }
  return text;
}

std::string left_out_block(const SearchResult& result, int width) {
  int digits = 5;
  for (const Exclusion& exclusion : result.exclusions) {
    digits = std::max(digits, display_width(with_commas(exclusion.layouts)));
  }
  std::string text;
  for (const Exclusion& exclusion : result.exclusions) {
    const std::string label = pad(text.empty() ? "left out" : "", kReasonWidth) +
                              pad(with_commas(exclusion.layouts), digits, true) + "  ";
    text += paragraph(label,
                      exclusion.rule + (exclusion.way_out.empty() ? "" : "; " + exclusion.way_out),
                      width,
                      kReasonWidth + digits + 2);
  }
  return text;
}

std::string smallest_block(const TrainingJob& job,
                           const SearchOptions& options,
                           const SearchResult& result,
                           int width) {
  if (!result.smallest) {
    return paragraph("smallest",
                     "no cluster of up to " + with_commas(kLargestCluster) + " GPUs holds this job",
                     width);
  }
  const Estimate& estimate = *result.smallest;
  const Layout& layout = estimate.layout;
  const std::int64_t gpus = layout.tp * layout.cp * layout.pp * layout.dp;
  const std::string recompute = recompute_text(estimate);
  const std::string why = result.refutes(layout)
                              ? "does not fit when simulated"
                              : why_not_simulated(job, estimate, options.assumptions);
  return paragraph("smallest",
                   with_commas(gpus) + " " + plural("GPU", gpus) +
                       (gpus == 1 ? " holds" : " hold") + " this job: " + layout_text(layout) +
                       " · " + gigabytes_text(estimate.memory.total()) + " of memory · MFU " +
                       percent(estimate.mfu) + (recompute.empty() ? "" : " · " + recompute) +
                       (why.empty() ? "" : " · " + why),
                   width);
}

std::string assumed_block(const SearchOptions& options, int width) {
  const Assumptions& given = options.assumptions;
  const std::int64_t fewest = std::llround(given.minimum_cp_tokens);
  return paragraph("assumed",
                   percent(given.efficiency, 0) + " of " + fixed(given.peak / 1e12, 0) +
                       " TFLOP/s · " + human_rate(given.node_bandwidth) + " a GPU inside a node, " +
                       human_rate(given.network_bandwidth) + " between · " +
                       gigabytes_text(given.memory * given.memory_fraction) + " of " +
                       gigabytes_text(given.memory) + " for states and activations · " +
                       fixed(given.weight_bytes + given.gradient_bytes + given.optimizer_bytes, 0) +
                       " bytes a parameter · at least " + with_commas(fewest) + " " +
                       plural("token", fewest) + " a cp rank (--assume KEY=VALUE; all in --json)",
                   width);
}

}  // namespace

std::string search_text(const TrainingJob& job,
                        const SearchOptions& options,
                        const SearchResult& result,
                        const SearchPage& page) {
  const int width = page_width();
  std::string text = title(job, options, result, width) + "\n";
  const std::vector<const RankedLayout*> list = rows(result, page.top);
  if (!list.empty()) {
    text += search_table(list, options.simulate > 0, width) + not_simulated(list, width) +
            refuted(result, width) + shares_block(list, width) + "\n";
  }
  text += paragraphs("why", result.reason, width);
  text += absent(result, width);
  text += left_out_block(result, width);
  if (result.reason.empty()) {  // which says so too
    text += smallest_block(job, options, result, width);
  }
  text += assumed_block(options, width);
  return text + pad("next", kReasonWidth) + page.next + "\n";  // one line, to be copied
}

}  // namespace foretrain
