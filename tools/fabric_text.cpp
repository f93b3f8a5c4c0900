#include "tools/fabric_text.h"

#include "tools/output.h"

#include "sim/base/format.h"
#include "sim/base/wrapped.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace foretrain {
namespace {

/// Rates of InfiniBand are spoken of in bits: "400 Gb/s".
std::string bit_rate(std::int64_t bytes_per_second) {
  const double gigabits = static_cast<double>(bytes_per_second) * 8.0 / 1e9;
  return (bytes_per_second % 125'000'000 == 0 ? fixed(gigabits, 0) : fixed(gigabits, 1)) + " Gb/s";
}

std::string counted_noun(std::int64_t count, const std::string& one, const std::string& many) {
  return with_commas(count) + " " + (count == 1 ? one : many);
}

/// "1,064 at 400 Gb/s, 2 at 200 Gb/s", the fastest first
std::string rates_text(const std::map<std::int64_t, std::int64_t>& by_rate) {
  std::string text;
  for (auto entry = by_rate.rbegin(); entry != by_rate.rend(); ++entry) {
    text +=
        (text.empty() ? "" : ", ") + with_commas(entry->second) + " at " + bit_rate(entry->first);
  }
  return text.empty() ? "none" : text;
}

std::string levels_text(const FabricSummary& summary) {
  constexpr const char* kOne[] = {"leaf", "spine", "core"};
  constexpr const char* kMany[] = {"leaves", "spines", "cores"};
  std::string text;
  for (std::size_t level = 0; level < summary.switches_by_level.size(); ++level) {
    const std::string above = "at level " + std::to_string(level);
    const bool named = level < 3;
    text += (text.empty() ? "" : ", ") + counted_noun(summary.switches_by_level[level],
                                                      named ? kOne[level] : above,
                                                      named ? kMany[level] : above);
  }
  return text;
}

std::string adapters_text(const FabricDiscovery& discovery, const FabricSummary& summary) {
  const auto hosts = static_cast<std::int64_t>(discovery.fabric.hosts.size());
  std::string text = counted_noun(discovery.adapters, "adapter", "adapters") + ": " +
                     counted_noun(summary.adapters, "port of ", "ports of ") +
                     counted_noun(hosts, "host", "hosts");
  if (discovery.aggregation_nodes > 0) {
    text += ", " + with_commas(discovery.aggregation_nodes) + " in switches (SHARP)";
  }
  if (discovery.unnamed_adapters > 0) {
    text += ", " + with_commas(discovery.unnamed_adapters) + " unnamed";
  }
  return text;
}

std::string hosts_text(const FabricSummary& summary) {
  std::string text;
  for (auto entry = summary.hosts_by_adapters.rbegin(); entry != summary.hosts_by_adapters.rend();
       ++entry) {
    text += (text.empty() ? "" : ", ") + counted_noun(entry->second, "host has ", "hosts have ") +
            std::to_string(entry->first);
  }
  return text.empty() ? "none" : text;
}

std::string rails_text(const FabricSummary& summary) {
  constexpr std::size_t kShown = 16;
  std::string text = "  rails, names of adapters that share leaves with no other name\n";
  for (std::size_t rail = 0; rail < std::min(summary.rails.size(), kShown); ++rail) {
    std::string names;
    for (const std::string& name : summary.rails[rail].names) {
      names += (names.empty() ? "" : ", ") + name;
    }
    const auto leaves = static_cast<std::int64_t>(summary.rails[rail].switches.size());
    const std::string first = "    " + pad(counted_noun(leaves, "leaf", "leaves"), 12) +
                              pad(counted_noun(summary.rails[rail].adapters, "port", "ports"), 14);
    text += wrapped(first, names, 30, page_width());
  }
  if (summary.rails.size() > kShown) {
    text += "    and " + std::to_string(summary.rails.size() - kShown) + " more\n";
  }
  return text;
}

/// Leaves with the same rates in one row, the most loaded first.
std::string leaves_text(const FabricDiscovery& discovery, const FabricSummary& summary) {
  constexpr std::size_t kShown = 12;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int32_t>> kinds;
  for (const FabricSummary::Leaf& leaf : summary.leaves) {
    kinds[{leaf.down.bytes_per_second, leaf.up.bytes_per_second}].push_back(leaf.at);
  }
  const auto load = [](const auto& kind) {
    return static_cast<double>(kind.first.first) /
           static_cast<double>(std::max<std::int64_t>(kind.first.second, 1));
  };
  std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, std::vector<std::int32_t>>> rows(
      kinds.begin(), kinds.end());
  std::stable_sort(
      rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return load(a) > load(b); });
  std::string text = "  leaves, rate of their hosts against rate of their cables upwards\n";
  for (std::size_t row = 0; row < std::min(rows.size(), kShown); ++row) {
    const auto& [rates, at] = rows[row];
    const std::string ratio =
        rates.second == 0 ? "no cable up" : fixed(load(rows[row]), 2) + " : 1";
    text += "    " + pad(counted_noun(static_cast<std::int64_t>(at.size()), "leaf", "leaves"), 12) +
            pad(bit_rate(rates.first), 12, true) + " down" + pad(bit_rate(rates.second), 13, true) +
            " up   " + pad(ratio, 12) + "e.g. " +
            discovery.fabric.switches[static_cast<std::size_t>(at.front())] + "\n";
  }
  if (rows.size() > kShown) {
    text += "    and " + std::to_string(rows.size() - kShown) + " more kinds\n";
  }
  return text;
}

}  // namespace

std::string fabric_text(const FabricDiscovery& discovery, const std::string& name) {
  const FabricSummary summary = summarise(discovery);
  const auto switches = static_cast<std::int64_t>(discovery.fabric.switches.size());
  std::string text = name + ": a fabric as ibnetdiscover lists it\n";
  text += "  " + counted_noun(switches, "switch", "switches") + ": " + levels_text(summary) + "\n";
  text += "  " + adapters_text(discovery, summary) + "\n";
  text += "  ports of hosts         " + rates_text(summary.adapters_by_rate) + "\n";
  text += "  cables of switches     " + rates_text(summary.cables_by_rate) + "\n";
  text += "  ports of a host        " + hosts_text(summary) + "\n";
  text += rails_text(summary) + leaves_text(discovery, summary);
  text += "  bisection bandwidth " +
          human_rate(static_cast<double>(summary.bisection.bytes_per_second)) +
          " (one direction, between the two halves of the hosts by name)\n";
  for (const std::string& odd : summary.odd) {
    text += wrapped("  odd: ", odd, 7, page_width());
  }
  return text;
}

}  // namespace foretrain
