#include "foretrain/report.h"
#include "sim/report/trace_events.h"

#include <algorithm>
#include <map>

namespace foretrain {
namespace {

/// speedscope's own format: a profile per rank and stream, integer nanoseconds, one frame per name,
/// so that its merged views add up equal work. On the compute stream kernels stand inside actions.
class ProfileWriter {
 public:
  ProfileWriter(const Program& program, const Timeline& timeline, const TraceOptions& options)
      : view_(program, timeline, options.steps), options_(options), text_(events_) {}

  std::string write() {
    const std::vector<Span>& spans = view_.timeline.spans;
    const Span* const last = spans.data() + spans.size();
    for (const Span* first = spans.data(); first != last;) {
      const Span* end = std::find_if(
          first, last, [&](const Span& span) { return span.instance != first->instance; });
      for (std::size_t stream = 0; stream < view_.program.streams.size(); ++stream) {
        write_profile(first, end, static_cast<std::int32_t>(stream));
      }
      first = end;
    }
    return "{\n\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n\"name\": " +
           json_string(options_.title) +
           ",\n\"exporter\": \"foretrain\",\n\"activeProfileIndex\": 0,\n\"shared\": {\"frames\": "
           "[" +
           frame_list() + "]},\n\"profiles\": [" + events_ + (any_profile_ ? "]}" : "") +
           "\n]\n}\n";
  }

 private:
  std::string frame_list() const {
    std::vector<const std::string*> names(frames_.size());
    for (const auto& [name, index] : frames_) {
      names[static_cast<std::size_t>(index)] = &name;
    }
    std::string list;
    for (const std::string* name : names) {
      list += (list.empty() ? "\n{\"name\": " : ",\n{\"name\": ") + json_string(*name) + "}";
    }
    return list;
  }

  std::int64_t frame(const std::string& name) {
    return frames_.emplace(name, static_cast<std::int64_t>(frames_.size())).first->second;
  }

  /// "3F": all micro-batches of a virtual stage are one frame; else the block's name.
  std::string action_name(const Call& call) const {
    const std::string& block = view_.program.blocks[static_cast<std::size_t>(call.block)].name;
    const char letter = action_letter(block);
    return letter == '\0' || call.stage < 0 ? block : std::to_string(call.stage) + letter;
  }

  void event(char type, std::int64_t frame_index, std::int64_t time) {
    text_ << (any_event_ ? "," : "") << "\n{\"type\":\"" << std::string_view(&type, 1)
          << "\",\"frame\":";
    text_.integer(frame_index) << ",\"at\":";
    text_.integer(time) << "}";
    any_event_ = true;
  }

  void write_profile(const Span* first, const Span* last, std::int32_t stream) {
    std::vector<const Span*> shown;
    for (const Span* span = first; span != last; ++span) {
      if (view_.shows(*span) && span->end > span->start && view_.task(*span).stream == stream) {
        shown.push_back(span);
      }
    }
    if (shown.empty()) {
      return;
    }
    const Instance& instance = view_.program.instances[static_cast<std::size_t>(first->instance)];
    text_ << (any_profile_ ? "]}," : "") << "\n{\"type\": \"evented\", \"name\": "
          << json_string("rank " + std::to_string(instance.rank) + " " +
                         view_.program.streams[static_cast<std::size_t>(stream)].name)
          << ", \"unit\": \"nanoseconds\", \"startValue\": 0, \"endValue\": ";
    text_.integer(view_.end(*shown.back())) << ", \"events\": [";
    any_profile_ = true;
    any_event_ = false;
    write_events(shown, stream == 0);
  }

  void write_events(const std::vector<const Span*>& shown, bool in_actions) {
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const Span& span = *shown[i];
      const auto same_call = [&](std::size_t other) {
        return shown[other]->call == span.call && shown[other]->step == span.step;
      };
      const std::int64_t action = in_actions ? frame(action_name(view_.call(span))) : 0;
      if (in_actions && (i == 0 || !same_call(i - 1))) {
        event('O', action, view_.start(span));
      }
      const auto label = static_cast<std::size_t>(view_.task(span).label);
      const std::int64_t kernel = frame(view_.program.labels[label]);
      event('O', kernel, view_.start(span));
      event('C', kernel, view_.end(span));
      if (in_actions && (i + 1 == shown.size() || !same_call(i + 1))) {
        event('C', action, view_.end(span));
      }
    }
  }

  TraceView view_;
  const TraceOptions& options_;
  std::map<std::string, std::int64_t> frames_;
  std::string events_;
  TraceText text_;
  bool any_profile_ = false, any_event_ = false;
};

}  // namespace

std::string speedscope_profile(const Program& program,
                               const Timeline& timeline,
                               const TraceOptions& options) {
  return ProfileWriter(program, timeline, options).write();
}

}  // namespace foretrain
