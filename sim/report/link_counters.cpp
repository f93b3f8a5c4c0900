#include "sim/report/trace_events.h"

#include <algorithm>
#include <cmath>

namespace foretrain {

void write_link_counters(const TraceView& view,
                         const std::vector<LinkTrack>& links,
                         std::int64_t pid,
                         TraceText& text) {
  if (links.empty()) {
    return;
  }
  text << ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":";
  text.integer(pid) << ",\"tid\":0,\"args\":{\"name\":\"links\"}},\n"
                    << "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":";
  text.integer(pid) << ",\"tid\":0,\"args\":{\"sort_index\":";
  text.integer(pid) << "}}";
  for (const LinkTrack& link : links) {
    const std::string name = json_string(link.id + " (bytes/s)");
    const auto level = [&](std::int64_t time, double rate) {
      text << ",\n{\"ph\":\"C\",\"name\":" << name << ",\"pid\":";
      text.integer(pid) << ",\"tid\":0,\"ts\":";
      text.micros(time) << ",\"args\":{\"rate\":";
      text.integer(std::llround(rate)) << "}}";
    };
    // What ran before the first step shown is the level at its start.
    double before = 0;
    std::size_t at = 0;
    for (; at < link.rates.size() && link.rates[at].first <= view.zero; ++at) {
      before = link.rates[at].second;
    }
    level(0, before);
    for (; at < link.rates.size(); ++at) {
      level(trace_time(link.rates[at].first, view.zero), link.rates[at].second);
    }
  }
}

}  // namespace foretrain
