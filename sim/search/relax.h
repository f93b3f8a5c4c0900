#pragma once

#include "foretrain/search.h"

#include <optional>

namespace foretrain {

/// A search as it was asked, to be asked otherwise.
struct AskedSearch {
  TrainingJob job;
  SearchAxes axes;
  Assumptions assumptions;
};

/// Each changes a search so that a layout keeps a rule it breaks, and says how; nothing where the
/// search is asked that way already.
std::optional<SearchChange> share_layers(AskedSearch& asked, const Layout& layout);
std::optional<SearchChange> thinner_context(AskedSearch& asked, const Layout& layout);
std::optional<SearchChange> divisible_batch(AskedSearch& asked, const Layout& layout);
std::optional<SearchChange> divisible_sequence(AskedSearch& asked, const Layout& layout);
std::optional<SearchChange> fewer_micro_batches(AskedSearch& asked, const Layout& layout);
std::optional<SearchChange> run_chunks(AskedSearch& asked, const Layout& layout);
std::optional<SearchChange> one_chunk(AskedSearch& asked, const Layout& layout);
std::optional<SearchChange> recompute_as_needed(AskedSearch& asked, const Layout& layout);

}  // namespace foretrain
