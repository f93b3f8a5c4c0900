#include "foretrain/search.h"
#include "sim/scenario/json_value.h"
#include "sim/scenario/sections.h"
#include "sim/search/stages.h"

namespace foretrain {
namespace {

/// Members of an object, a comma and a line between them.
class Members {
 public:
  explicit Members(std::string indent) : indent_(std::move(indent)) {}

  void add(const std::string& key, const std::string& value) {
    text_ += (text_.empty() ? "" : ",\n") + indent_ + "\"" + key + "\": " + value;
  }
  void add(const std::string& key, std::int64_t value) { add(key, std::to_string(value)); }
  void add_above_one(const std::string& key, std::int64_t degree) {
    if (degree > 1) {
      add(key, degree);
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string indent_, text_;
};

/// On one line, or where that would be long, on lines of their own.
std::string list(const std::vector<std::int64_t>& values) {
  constexpr std::size_t kOneLine = 16;
  const bool broken = values.size() > kOneLine;
  std::string text;
  for (std::size_t at = 0; at < values.size(); ++at) {
    const bool starts = broken && at % kOneLine == 0;
    text += (at > 0 ? "," : "") +
            std::string(starts   ? "\n      "
                        : at > 0 ? " "
                                 : "") +
            std::to_string(values[at]);
  }
  return "[" + text + (broken ? "\n    ]" : "]");
}

std::string parallelism(const TrainingJob& job, const Layout& layout) {
  const Layout usual;
  Members members("    ");
  members.add("tp", layout.tp);
  members.add_above_one("cp", layout.cp);
  members.add("pp", layout.pp);
  members.add_above_one("vpp", layout.vpp);
  members.add_above_one("ep", layout.ep);
  members.add_above_one("etp", layout.etp);
  members.add("dp", layout.dp);
  members.add("sharding",
              json_string(std::string(kShardings[static_cast<std::size_t>(layout.sharding)])));
  if (layout.order != usual.order) {
    members.add("order", json_string(layout.order));
  }
  if (const auto split = split_stages(job.model.layers, layout.pp, layout.vpp, true)) {
    if (split->ends_as_layers) {
      members.add("embedding_and_loss_as_layers", "true");
    } else if (!split->per_stage.empty()) {
      members.add("layers_per_stage", list(split->per_stage));
    }
  }
  return "{\n" + members.text() + "\n  }";
}

std::string training(const TrainingJob& job, const Layout& layout, const Assumptions& assumptions) {
  Members members("    ");
  members.add("sequence_length", job.sequence_length);
  members.add("global_batch_size", job.global_batch_size);
  members.add("micro_batch_size", layout.micro_batch_size);
  if (!job.hardware.gpu.bf16) {
    members.add("dtype", "\"fp16\"");
  }
  members.add("grad_dtype", assumptions.gradient_bytes < 4 ? "\"bf16\"" : "\"fp32\"");
  return "{\n" + members.text() + "\n  }";
}

}  // namespace

std::string scenario_text(const TrainingJob& job,
                          const Layout& layout,
                          const Assumptions& assumptions,
                          const std::string& name) {
  Members members("  ");
  members.add("name", json_string(name));
  members.add("model", json_string(job.model_reference));
  members.add("cluster",
              "{\"topology\": " + json_string(job.topology) +
                  ", \"gpus\": " + std::to_string(job.gpus) + "}");
  members.add("training", training(job, layout, assumptions));
  members.add("parallelism", parallelism(job, layout));
  members.add("schedule",
              layout.slices > 1 ? "{\"name\": " + json_string(layout.schedule) +
                                      ", \"slices\": " + std::to_string(layout.slices) + "}"
                                : json_string(layout.schedule));
  if (layout.recompute_layers > 0) {
    // The simulation counts recomputed layers of each chunk.
    const std::int64_t of_chunk = (layout.recompute_layers + layout.vpp - 1) / layout.vpp;
    members.add("recompute", R"({"mode": "full", "layers": )" + std::to_string(of_chunk) + "}");
  }
  return "{\n" + members.text() + "\n}\n";
}

}  // namespace foretrain
