#include "tests/search/naive_chapter.h"

#include <algorithm>
#include <optional>

namespace foretrain::test {
namespace {

constexpr double kFlopRate = 989e12 * 0.6;
constexpr double kMemory = 0.9 * 80e9;

double wire(double ranks_inside, double ranks) {
  return ranks_inside * ranks > 8 ? 50e9 : 450e9;
}

/// Memory: parameters and gradients of 2 bytes each, 12 bytes of optimizer over dp x cp; 34 bytes a
/// token and hidden element and layer over tp, 2 where the layer recomputes.
std::optional<std::int64_t> recomputed_layers(const NaiveJob& job,
                                              double tokens,
                                              NaiveLayout& layout) {
  const double owned = job.parameters / static_cast<double>(layout.tp * layout.pp);
  const double states =
      owned * 2 + owned * 2 + owned * 12 / static_cast<double>(layout.dp * layout.cp);
  const std::int64_t in_flight = std::min(layout.pp, job.batch / layout.dp);
  const std::int64_t layers = job.layers / layout.pp;
  for (std::int64_t again = 0; again <= layers; ++again) {
    const double kept = static_cast<double>(34 * (layers - again) + 2 * again);
    layout.bytes = states + kept * tokens * job.hidden / static_cast<double>(layout.tp) *
                                static_cast<double>(in_flight);
    if (layout.bytes <= kMemory) {
      return again;
    }
  }
  return std::nullopt;
}

void reckon_time(const NaiveJob& job, double tokens, NaiveLayout& layout) {
  const auto tp = static_cast<double>(layout.tp);
  const auto cp = static_cast<double>(layout.cp);
  const auto pp = static_cast<double>(layout.pp);
  const auto dp = static_cast<double>(layout.dp);
  const auto all_layers = static_cast<double>(job.layers);
  const auto length = static_cast<double>(job.sequence);
  const double layers = all_layers / pp;
  const double rounds = static_cast<double>(job.batch) / dp;
  const double both_tables = 2 * job.vocabulary * job.hidden;
  const double attention = 6 * length * job.hidden;
  const double layer = 6 * (job.parameters - both_tables) / all_layers + attention;
  const double head = 6 * job.vocabulary * job.hidden;
  const double per_flop = tokens / tp / kFlopRate;
  const double mean = (all_layers * layer + head) / pp * per_flop;
  const double again = static_cast<double>(layout.recomputed) * layer / 3 * per_flop;
  const double last_stage = layers * layer * per_flop + head * per_flop;
  const double message = tokens * job.hidden * 2;
  const double tensor = layers * 4 * 2 * (tp - 1) / tp * message / wire(1, tp);
  const double ring = layers * 3 * (cp - 1) * 2 * tokens * job.key_value_width * 2 / wire(tp, cp);
  const double bare_ring = std::max(0.0, ring - layers * attention * per_flop);
  const double between = layout.pp > 1 ? message / tp / wire(tp * cp * dp, pp) : 0;
  const double round = last_stage + again + tensor + bare_ring + between;
  const double copies = dp * cp;
  const double reduce =
      0.2 * 2 * 2 * (copies - 1) / copies * (job.parameters / (tp * pp)) / wire(tp, copies);
  layout.parts = {rounds * mean,
                  rounds * again,
                  rounds * (last_stage - mean),
                  rounds * tensor,
                  rounds * bare_ring,
                  rounds * between,
                  (pp - 1) * round,
                  reduce};
  layout.step = 0;
  for (const double part : layout.parts) {
    layout.step += part;
  }
  layout.mfu = (all_layers * layer + head) * static_cast<double>(job.batch) * length /
               (layout.step * (tp * cp * pp * dp) * 989e12);
}

std::optional<NaiveLayout> judge(const NaiveJob& job, NaiveLayout layout) {
  if (job.layers % layout.pp != 0 || job.batch % layout.dp != 0 ||
      (layout.cp > 1 && job.sequence / layout.cp < 4096)) {
    return std::nullopt;
  }
  const auto tokens = static_cast<double>(job.sequence / layout.cp);
  const std::optional<std::int64_t> again = recomputed_layers(job, tokens, layout);
  if (!again) {
    return std::nullopt;
  }
  layout.recomputed = *again;
  reckon_time(job, tokens, layout);
  return layout;
}

template <typename Visit>
void each_triple(const Visit& visit) {
  for (std::int64_t tp = 1; tp <= 8; tp *= 2) {
    for (std::int64_t cp = 1; cp <= 32; cp *= 2) {
      for (std::int64_t pp = 1; pp <= 16; pp *= 2) {
        visit(NaiveLayout{tp, cp, pp, 0, 0, 0, 0, 0, {}});
      }
    }
  }
}

}  // namespace

std::vector<NaiveLayout> naive_search(const NaiveJob& job) {
  std::vector<NaiveLayout> found;
  each_triple([&](NaiveLayout layout) {
    const std::int64_t ranks = layout.tp * layout.cp * layout.pp;
    if (job.gpus % ranks != 0) {
      return;
    }
    layout.dp = job.gpus / ranks;
    if (const std::optional<NaiveLayout> judged = judge(job, layout)) {
      found.push_back(*judged);
    }
  });
  std::stable_sort(found.begin(), found.end(), [](const NaiveLayout& a, const NaiveLayout& b) {
    return a.mfu > b.mfu;
  });
  return found;
}

std::int64_t naive_fewest_gpus(const NaiveJob& job, std::int64_t most) {
  for (std::int64_t gpus = 1; gpus <= most; ++gpus) {
    NaiveJob other = job;
    other.gpus = gpus;
    if (!naive_search(other).empty()) {
      return gpus;
    }
  }
  return 0;
}

}  // namespace foretrain::test
