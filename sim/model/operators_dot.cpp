#include "foretrain/model.h"
#include "sim/base/format.h"

namespace foretrain {

namespace {

std::string node_label(const Operator& op) {
  std::string label(op.name);
  if (op.kind == OperatorKind::kCollective)
    return label + "\\n" + human_bytes(op.payload.value);
  if (op.kind == OperatorKind::kGemm) {
    label += op.gemms > 1 ? "\\n" + std::to_string(op.gemms) + " of" : "";
    label +=
        "\\n" + std::to_string(op.m) + " x " + std::to_string(op.n) + " x " + std::to_string(op.k);
  }
  return label + "\\n" + human_bytes(op.bytes.value);
}

}  // namespace

std::string operators_dot(const std::vector<Operator>& operators) {
  std::string dot = "digraph operators {\n  rankdir=TB;\n";
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = operators[i];
    const bool wire = op.kind == OperatorKind::kCollective;
    dot += "  n" + std::to_string(i) + " [shape=" + (wire ? "ellipse" : "box") + ", label=\"" +
           node_label(op) + "\"];\n";
    for (const std::int32_t input : op.inputs)
      dot += "  n" + std::to_string(input) + " -> n" + std::to_string(i) + ";\n";
  }
  return dot + "}\n";
}

}  // namespace foretrain
