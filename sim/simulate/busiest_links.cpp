#include "sim/lower/link_traffic.h"
#include "sim/simulate/parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace foretrain {
namespace {

constexpr std::size_t kShown = 10;

/// Whose traffic a link carries, in the order of the network table.
std::string names_of(const LinkTraffic& traffic) {
  static constexpr std::array<const char*, kPipelineTraffic + 1> kNames = {
      "tp", "cp", "ep", "dp", "pp"};
  std::string names;
  for (std::size_t of = 0; of < kNames.size(); ++of) {
    if (traffic.bytes[of] > 0) {
      names += (names.empty() ? "" : ", ") + std::string(kNames[of]);
    }
  }
  return names;
}

}  // namespace

std::vector<LinkReport> busiest_links(const Scenario& scenario,
                                      const Program& full,
                                      const Topology& topology,
                                      Duration step) {
  const std::vector<LinkTraffic> traffic = link_traffic(scenario, full, topology);
  // Links that carry as many bytes of the same dimensions are one row, named by the first.
  using Key = std::tuple<std::string, std::int64_t, std::int64_t>;
  std::map<Key, std::size_t> rows;
  std::vector<LinkReport> reports;
  for (std::size_t at = 0; at < traffic.size(); ++at) {
    const double bytes = traffic[at].total();
    if (bytes <= 0) {
      continue;
    }
    const Link& link = topology.links()[at];
    const auto [row, fresh] = rows.try_emplace(
        {names_of(traffic[at]), std::llround(bytes), link.capacity.bytes_per_second},
        reports.size());
    if (!fresh) {
      ++reports[row->second].alike;
      continue;
    }
    LinkReport& report = reports.emplace_back();
    report.id = link.id;
    report.bytes = bytes;
    report.bandwidth = static_cast<double>(link.capacity.bytes_per_second);
    report.utilisation = bytes / (report.bandwidth * seconds(step));
    report.carries = names_of(traffic[at]);
  }
  std::stable_sort(reports.begin(), reports.end(), [](const LinkReport& a, const LinkReport& b) {
    return a.utilisation > b.utilisation;
  });
  reports.resize(std::min(reports.size(), kShown));
  return reports;
}

}  // namespace foretrain
