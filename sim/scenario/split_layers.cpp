// Transformer layers of each virtual stage, from whichever form a scenario uses. The sum over
// stages is the model's number of layers in every form, or the form is refused.
#include "foretrain/scenario.h"
#include "sim/base/format.h"
#include "sim/scenario/layout.h"

#include <algorithm>
#include <numeric>

namespace foretrain {
namespace {

using Layers = std::vector<std::int64_t>;

constexpr char kPointer[] = "/parallelism";
constexpr char kListPointer[] = "/parallelism/layers_per_stage";

std::string stages_text(const Parallelism& parallelism) {
  return parallelism.vpp == 1
             ? "pp " + std::to_string(parallelism.pp) + " " + plural("stage", parallelism.pp)
             : "pp " + std::to_string(parallelism.pp) + " x vpp " +
                   std::to_string(parallelism.vpp) + " = " +
                   std::to_string(parallelism.pp * parallelism.vpp) + " stages";
}

std::int64_t sum(const Layers& layers) {
  return std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
}

std::string joined(const Layers& layers) {
  std::string list;
  for (const std::int64_t count : layers) {
    list += (list.empty() ? "" : " ") + std::to_string(count);
  }
  return layers.size() > 32 ? std::to_string(static_cast<std::int64_t>(layers.size())) + " entries"
                            : "[" + list + "]";
}

/// The ways out of an indivisible split, each with numbers that work here.
std::string options(std::int64_t layers, const Parallelism& parallelism) {
  const std::int64_t pp = parallelism.pp;
  const std::int64_t vpp = parallelism.vpp;
  const std::int64_t stages = pp * vpp;
  std::string hint;
  const auto offer = [&](const std::string& option) {
    hint += (hint.empty() ? "" : ", or ") + option;
  };
  if ((layers + 2) % stages == 0) {
    offer("embedding_and_loss_as_layers (" + std::to_string(layers) +
          " + 2 = " + std::to_string(stages) + " x " + std::to_string((layers + 2) / stages) + ")");
  }
  const std::int64_t middle = (layers + pp - 1) / pp + vpp - 1;
  const std::int64_t each = middle / vpp * vpp;
  const std::int64_t rest = layers - each * (pp - 2);
  const std::int64_t first = (rest / vpp + 1) / 2 * vpp;
  if (pp > 2 && rest >= 0 && rest % vpp == 0) {
    offer("first_stage_layers " + std::to_string(first) + " with last_stage_layers " +
          std::to_string(rest - first) + " (" + std::to_string(each) + " on the others)");
  }
  offer("layers_per_stage with a list that sums to " + std::to_string(layers));
  return hint;
}

Expected<Layers> split_evenly(std::int64_t layers, const Parallelism& parallelism) {
  const std::int64_t stages = parallelism.pp * parallelism.vpp;
  if (layers % stages != 0) {
    return refuse(Diagnostic{kPointer,
                             std::to_string(layers) + (layers == 1 ? " layer does" : " layers do") +
                                 " not divide over " + stages_text(parallelism) + ": " +
                                 std::to_string(layers / stages) + " each leave " +
                                 std::to_string(layers % stages) + " over",
                             options(layers, parallelism)});
  }
  return Layers(static_cast<std::size_t>(stages), layers / stages);
}

/// Embedding and loss count as a layer each: the first and the last stage hold one layer less.
Expected<Layers> split_with_ends(std::int64_t layers, const Parallelism& parallelism) {
  const std::int64_t stages = parallelism.pp * parallelism.vpp;
  if ((layers + 2) % stages != 0) {
    Parallelism plain = parallelism;
    plain.embedding_and_loss_as_layers = false;
    return refuse(Diagnostic{
        kPointer,
        std::to_string(layers) + " " + plural("layer", layers) +
            " + 2 (embedding and loss) do not divide over " + stages_text(parallelism) + ": " +
            std::to_string((layers + 2) % stages) + " left over",
        layers % stages == 0
            ? "leave embedding_and_loss_as_layers out: " + std::to_string(layers) + " = " +
                  std::to_string(stages) + " x " + std::to_string(layers / stages)
            : options(layers, plain)});
  }
  Layers split(static_cast<std::size_t>(stages), (layers + 2) / stages);
  split.front() -= 1;
  split.back() -= 1;
  return split;
}

/// One count per pipeline rank, dealt evenly to its chunks.
Expected<Layers> deal_to_chunks(const Layers& ranks,
                                const Parallelism& parallelism,
                                const std::string& pointer) {
  const auto pp = static_cast<std::size_t>(parallelism.pp);
  const std::int64_t vpp = parallelism.vpp;
  Layers split(pp * static_cast<std::size_t>(vpp));
  for (std::size_t rank = 0; rank < pp; ++rank) {
    if (ranks[rank] % vpp != 0) {
      return refuse(Diagnostic{pointer,
                               std::to_string(ranks[rank]) + " " + plural("layer", ranks[rank]) +
                                   " on stage " + std::to_string(rank) +
                                   (ranks[rank] == 1 ? " does" : " do") + " not divide over vpp " +
                                   std::to_string(vpp) + " chunks",
                               "give pp x vpp = " + std::to_string(parallelism.pp * vpp) +
                                   " entries to layers_per_stage"});
    }
    for (std::size_t stage = rank; stage < split.size(); stage += pp) {
      split[stage] = ranks[rank] / vpp;
    }
  }
  return split;
}

/// Some layers on the first and the last pipeline rank, the others alike (Megatron-LM's
/// decoder-first/last-pipeline-num-layers).
Expected<Layers> split_uneven_ends(std::int64_t layers, const Parallelism& parallelism) {
  const std::int64_t pp = parallelism.pp;
  const std::int64_t first = parallelism.first_stage_layers.value_or(0);
  const std::int64_t last = parallelism.last_stage_layers.value_or(0);
  const std::int64_t others =
      pp - (parallelism.first_stage_layers ? 1 : 0) - (parallelism.last_stage_layers ? 1 : 0);
  const std::int64_t rest = layers - first - last;
  const std::string given =
      (parallelism.first_stage_layers ? "first " + std::to_string(first) : "") +
      (parallelism.first_stage_layers && parallelism.last_stage_layers ? " and last "
       : parallelism.last_stage_layers                                 ? "last "
                                                                       : "") +
      (parallelism.last_stage_layers ? std::to_string(last) : "");
  const std::int64_t share = std::max<std::int64_t>(others, 0) * parallelism.vpp;
  const bool whole = others < 0 || rest < 0 ? false : share == 0 ? rest == 0 : rest % share == 0;
  if (!whole) {
    const std::string why = others < 0 ? "one stage is both first and last"
                            : rest < 0 ? "more than the model has"
                            : share == 0
                                ? std::to_string(rest) + " left over for no stage"
                                : std::to_string(rest) + " left for " + std::to_string(others) +
                                      " x vpp " + std::to_string(parallelism.vpp) + ", " +
                                      std::to_string(rest % share) + " over";
    return refuse(Diagnostic{kPointer,
                             std::to_string(layers) + " " + plural("layer", layers) + " with " +
                                 given + " over " + stages_text(parallelism) + ": " + why,
                             others < 0 ? "give one of them" : options(layers, parallelism)});
  }
  Layers ranks(static_cast<std::size_t>(pp), others > 0 ? rest / others : 0);
  if (parallelism.first_stage_layers) {
    ranks.front() = first;
  }
  if (parallelism.last_stage_layers) {
    ranks.back() = last;
  }
  return deal_to_chunks(ranks, parallelism, kPointer);
}

Expected<Layers> split_by_layout(std::int64_t layers, const Parallelism& parallelism) {
  const Expected<std::vector<LayoutStage>> stages = parse_layout(parallelism.layout);
  if (!stages) {
    return tl::unexpected<Faults>(stages.error());
  }
  Layers split;
  for (const LayoutStage& stage : *stages) {
    split.push_back(stage.layers);
  }
  const char pointer[] = "/parallelism/layout";
  const auto count = static_cast<std::int64_t>(split.size());
  if (count != parallelism.pp * parallelism.vpp) {
    return refuse(Diagnostic{pointer,
                             "has " + std::to_string(count) + " " + plural("stage", count) +
                                 ", not " + stages_text(parallelism),
                             ""});
  }
  if (sum(split) != layers) {
    return refuse(Diagnostic{pointer,
                             "has " + std::to_string(sum(split)) + " " +
                                 plural("layer", sum(split)) + ", the model has " +
                                 std::to_string(layers),
                             ""});
  }
  return split;
}

Expected<Layers> split_by_list(std::int64_t layers, const Parallelism& parallelism) {
  const Layers& list = parallelism.layers_per_stage;
  const auto count = static_cast<std::int64_t>(list.size());
  const std::int64_t stages = parallelism.pp * parallelism.vpp;
  if (count != parallelism.pp && count != stages) {
    const std::string wanted =
        parallelism.vpp == 1
            ? "pp = " + std::to_string(stages)
            : "pp = " + std::to_string(parallelism.pp) + " or pp x vpp = " + std::to_string(stages);
    return refuse(Diagnostic{
        kListPointer,
        "has " + std::to_string(count) + (count == 1 ? " entry, not " : " entries, not ") + wanted,
        ""});
  }
  if (std::any_of(list.begin(), list.end(), [](std::int64_t n) { return n < 0; }) ||
      sum(list) != layers) {
    return refuse(Diagnostic{kListPointer,
                             joined(list) + " sums to " + std::to_string(sum(list)) +
                                 ", the model has " + std::to_string(layers) + " " +
                                 plural("layer", layers),
                             ""});
  }
  if (count == stages) {
    return list;
  }
  return deal_to_chunks(list, parallelism, kListPointer);
}

/// A list beside another form must say the same: the ends that were given, or the whole split.
Expected<Layers> agree(const Layers& list, std::int64_t layers, const Parallelism& parallelism) {
  if (parallelism.first_stage_layers || parallelism.last_stage_layers) {
    const auto held = [&](std::int64_t rank) {
      std::int64_t count = 0;
      for (std::int64_t chunk = 0; chunk < parallelism.vpp; ++chunk) {
        count += list[static_cast<std::size_t>(chunk * parallelism.pp + rank)];
      }
      return count;
    };
    std::vector<Diagnostic> faults;
    const auto compare = [&](const std::optional<std::int64_t>& given, bool first) {
      const std::int64_t listed = held(first ? 0 : parallelism.pp - 1);
      if (given && *given != listed) {
        const std::string name = first ? "first" : "last";
        faults.push_back({kListPointer,
                          joined(parallelism.layers_per_stage) + " puts " + std::to_string(listed) +
                              " " + plural("layer", listed) + " on the " + name + " stage, " +
                              name + "_stage_layers says " + std::to_string(*given),
                          "give layers_per_stage alone, or leave it out"});
      }
    };
    compare(parallelism.first_stage_layers, true);
    compare(parallelism.last_stage_layers, false);
    return faults.empty() ? Expected<Layers>(list) : refuse(std::move(faults));
  }
  Expected<Layers> form = parallelism.layout.empty() ? split_with_ends(layers, parallelism)
                                                     : split_by_layout(layers, parallelism);
  if (form && *form != list) {
    return refuse(Diagnostic{kListPointer,
                             joined(parallelism.layers_per_stage) + " contradicts " +
                                 joined(*form) + ", which the other keys ask for",
                             "give layers_per_stage alone, or leave it out"});
  }
  return form;
}

}  // namespace

Expected<std::vector<std::int64_t>> split_layers(std::int64_t layers,
                                                 const Parallelism& parallelism) {
  const std::int64_t pp = parallelism.pp;
  const std::int64_t vpp = parallelism.vpp;
  if (pp < 1 || vpp < 1 || pp > kMostStages || vpp > kMostStages || pp * vpp > kMostStages) {
    return refuse(Diagnostic{kPointer,
                             "pp " + std::to_string(pp) + " x vpp " + std::to_string(vpp) +
                                 " is not from 1 to " + std::to_string(kMostStages) + " stages",
                             ""});
  }
  const bool ends = parallelism.first_stage_layers || parallelism.last_stage_layers;
  const bool layout = !parallelism.layout.empty();
  const int forms =
      (ends ? 1 : 0) + (layout ? 1 : 0) + (parallelism.embedding_and_loss_as_layers ? 1 : 0);
  if (forms > 1) {
    return refuse(Diagnostic{kPointer,
                             "layers are split in more than one way",
                             "give one of embedding_and_loss_as_layers, layout, and "
                             "first_stage_layers with last_stage_layers"});
  }
  const bool listed = !parallelism.layers_per_stage.empty();
  const auto by_form = ends                                       ? split_uneven_ends
                       : layout                                   ? split_by_layout
                       : parallelism.embedding_and_loss_as_layers ? split_with_ends
                                                                  : split_evenly;
  if (!listed) {
    return by_form(layers, parallelism);
  }
  Expected<Layers> list = split_by_list(layers, parallelism);
  return list && forms > 0 ? agree(*list, layers, parallelism) : list;
}

}  // namespace foretrain
