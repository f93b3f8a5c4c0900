#include "foretrain/scenario.h"
#include "sim/scenario/fabric_keys.h"
#include "sim/scenario/imported_hardware.h"
#include "sim/scenario/json_cursor.h"
#include "sim/scenario/named_file.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <variant>

namespace foretrain {
namespace {

constexpr NumberRange kFraction = {0.0, 1.0};
constexpr NumberRange kRatio = {0.001, 1000.0};
constexpr NumberRange kSizeRange = {0.0, 1e9};

/// Reads the constants of a file: objects of a value and the source it comes from.
class ConstantReader {
 public:
  ConstantReader(JsonCursor& file, std::map<std::string, std::string>& sources)
      : file_(file), sources_(sources) {}

  void require(std::string_view key, Bandwidth& target, bool required = true) {
    put(key, required, target, [](const JsonCursor& at) { return at.bandwidth(); });
  }
  void require(std::string_view key, Bytes& target) {
    put(key, true, target, [](const JsonCursor& at) { return at.bytes(); });
  }
  void require(std::string_view key, Duration& target, bool required = true) {
    put(key, required, target, [](const JsonCursor& at) { return at.duration(); });
  }
  void require(std::string_view key, FlopRate& target, bool required = true) {
    put(key, required, target, [](const JsonCursor& at) { return at.flop_rate(); });
  }
  void require(std::string_view key, double& target, NumberRange range, bool required = true) {
    put(key, required, target, [range](const JsonCursor& at) { return at.number(range); });
  }
  void read(std::string_view key, bool& target) {
    put(key, false, target, [](const JsonCursor& at) { return at.boolean(); });
  }
  void require(std::string_view key, int& target, IntegerRange range, bool required = true) {
    std::int64_t wide = target;
    put(key, required, wide, [range](const JsonCursor& at) { return at.integer(range); });
    target = static_cast<int>(wide);
  }

 private:
  static constexpr std::string_view kForm = R"(write {"value": ..., "source": "..."})";

  template <typename T, typename Read>
  void put(std::string_view key, bool required, T& target, Read read) {
    std::optional<JsonCursor> at =
        required ? file_.require(key, std::string(kForm)) : file_.member(key);
    if (!at) {
      return;
    }
    if (!at->is_object()) {
      at->fault("a constant must be an object of its value and its source", std::string(kForm));
      return;
    }
    if (const std::optional<JsonCursor> value = at->require("value")) {
      target = read(*value).value_or(target);
    }
    if (const std::optional<JsonCursor> source =
            at->require("source", "say where the constant comes from")) {
      sources_[at->pointer()] = source->string().value_or("");
    }
    at->finish();
  }

  JsonCursor& file_;
  std::map<std::string, std::string>& sources_;
};

/// A narrow format's peak and its GEMM constants, which are there exactly when the peak is.
void read_narrow(JsonCursor& file,
                 ConstantReader& constants,
                 const std::string& format,
                 FlopRate& peak,
                 double& efficiency,
                 double& half_size) {
  constants.require(format + "_dense", peak, false);
  const std::string keys[] = {format + "_gemm_efficiency", format + "_gemm_half_size"};
  if (peak.flops_per_second > 0) {
    constants.require(keys[0], efficiency, kFraction);
    constants.require(keys[1], half_size, kSizeRange);
    return;
  }
  for (const std::string& key : keys) {
    if (const std::optional<JsonCursor> at = file.member(key)) {
      at->fault("the GPU has no " + format, "state " + format + "_dense, or leave it out");
    }
  }
}

/// What collectives take from kernels: all of it known, or none, and then nothing is slowed.
void read_contention(ConstantReader& constants, const JsonCursor& file, GpuSpec& gpu) {
  constexpr IntegerRange kMultiprocessors = {1, 100'000};
  constants.require("multiprocessors", gpu.multiprocessors, kMultiprocessors, false);
  constants.require(
      "collective_multiprocessors", gpu.collective_multiprocessors, kMultiprocessors, false);
  constants.require(
      "collective_memory_traffic", gpu.collective_memory_traffic, NumberRange{0.0, 100.0}, false);
  if (gpu.collective_multiprocessors > 0 && gpu.collective_multiprocessors >= gpu.multiprocessors) {
    file.fault("collectives hold " + std::to_string(gpu.collective_multiprocessors) + " of " +
                   std::to_string(gpu.multiprocessors) + " multiprocessors",
               "collective_multiprocessors must be below multiprocessors");
  }
}

void read_gpu(JsonCursor& file, GpuSpec& gpu, std::map<std::string, std::string>& sources) {
  if (!file.expect_object()) {
    return;
  }
  gpu.display_name = gpu.name;
  file.read("name", gpu.name);
  file.read("display_name", gpu.display_name);
  file.read("bf16", gpu.bf16);
  ConstantReader constants(file, sources);
  constants.require("bf16_dense", gpu.bf16_dense);
  read_narrow(
      file, constants, "fp8", gpu.fp8_dense, gpu.fp8_gemm_efficiency, gpu.fp8_gemm_half_size);
  read_narrow(file,
              constants,
              "nvfp4",
              gpu.nvfp4_dense,
              gpu.nvfp4_gemm_efficiency,
              gpu.nvfp4_gemm_half_size);
  constants.require("fp32_vector", gpu.fp32_vector);
  constants.require("memory_as_sold", gpu.memory_as_sold);
  constants.require("memory_reported", gpu.memory_reported);
  constants.require("memory_bandwidth", gpu.memory_bandwidth);
  constants.require("gemm_efficiency", gpu.gemm_efficiency, kFraction);
  constants.require("gemm_half_size", gpu.gemm_half_size, kSizeRange);
  constants.require("attention_forward_efficiency", gpu.attention_forward_efficiency, kFraction);
  constants.require("attention_backward_efficiency", gpu.attention_backward_efficiency, kFraction);
  constants.require("flash2_forward_efficiency", gpu.flash2_forward_efficiency, kFraction);
  constants.require("flash2_backward_efficiency", gpu.flash2_backward_efficiency, kFraction);
  constants.require("batched_gemm_efficiency", gpu.batched_gemm_efficiency, kFraction);
  constants.require("attention_half_sequence", gpu.attention_half_sequence, kSizeRange);
  constants.require("memory_efficiency", gpu.memory_efficiency, kFraction);
  constants.require("kernel_fixed", gpu.kernel_fixed);
  read_contention(constants, file, gpu);
  file.finish();
}

void read_fabric(JsonCursor& file,
                 ConstantReader& constants,
                 const ToldKeys& told,
                 TopologySpec& spec) {
  file.require("fabric");
  read_fabric_words(file, spec);
  const bool fabric = spec.fabric != FabricKind::kNone;
  const bool discovered = spec.fabric == FabricKind::kDiscovered;
  if (discovered) {
    file.require("fabric_file", "the text of ibnetdiscover");
  } else if (const std::optional<JsonCursor> at = file.member("fabric_file")) {
    at->fault("the fabric is drawn by rule", "say \"fabric\": \"discovered\", or leave it out");
  }
  constants.require(
      "nics_per_node", spec.nics_per_node, kCountOrNone, fabric && !told.contains("nics_per_node"));
  if (fabric) {
    constants.require("nic_bandwidth", spec.nic_bandwidth, !told.contains("nic_bandwidth"));
    constants.require("nic_latency", spec.nic_latency);
    constants.require("switch_latency", spec.switch_latency);
    constants.require("nic_efficiency", spec.nic_efficiency, kFraction);
    constants.require("collective_latency_hop", spec.collective_latency_hop);
    constants.require("nodes_per_leaf_group", spec.nodes_per_leaf_group, kCount, !discovered);
    constants.require(
        "low_latency_nic_efficiency", spec.low_latency_nic_efficiency, kFraction, false);
    constants.require("low_latency_hop", spec.low_latency_hop, false);
    constants.require("all_to_all_efficiency", spec.all_to_all_efficiency, kFraction, false);
    constants.read("network_reduction", spec.network_reduction);
  }
  constants.require("oversubscription", spec.oversubscription, kRatio, false);
  constants.require("gpus_per_pod", spec.gpus_per_pod, kCountOrNone, false);
  constants.require("pod_oversubscription", spec.pod_oversubscription, kRatio, false);
  refuse_idle_keys(file, spec, fabric ? "" : "nics_per_node");  // nodes have NICs without a network
}

void read_cluster(JsonCursor& file,
                  TopologySpec& spec,
                  std::string& gpu_name,
                  const std::string& folder) {
  constexpr std::string_view kInterconnects[] = {"nvswitch", "pcie"};
  if (!file.expect_object()) {
    return;
  }
  spec.display_name = spec.name;
  file.read("name", spec.name);
  file.read("display_name", spec.display_name);
  file.read("network_name", spec.network_name);
  if (const std::optional<JsonCursor> at = file.require("gpu", "a file of topologies/gpu")) {
    gpu_name = at->string().value_or("");
  }
  const ToldKeys told = read_imported_hardware(file, spec, gpu_name, folder);
  if (const std::optional<JsonCursor> at = told.contains("node_interconnect")
                                               ? file.member("node_interconnect")
                                               : file.require("node_interconnect")) {
    spec.node_interconnect = at->choice(kInterconnects).value_or("");
  }
  ConstantReader constants(file, spec.sources);
  constants.require(
      "gpus_per_node", spec.gpus_per_node, {1, 65536}, !told.contains("gpus_per_node"));
  constants.require("nvswitches_per_node", spec.nvswitches_per_node, {0, 65536}, false);
  const bool nvlink = spec.node_interconnect != "pcie";
  constants.require(
      "nvlink_bandwidth", spec.nvlink_bandwidth, nvlink && !told.contains("nvlink_bandwidth"));
  constants.require("nvlink_latency", spec.nvlink_latency, nvlink);
  constants.require("nvlink_efficiency", spec.nvlink_efficiency, kFraction);
  constants.require("collective_latency_inside", spec.collective_latency_inside);
  constants.require("low_latency_efficiency", spec.low_latency_efficiency, kFraction, false);
  constants.require("low_latency_start", spec.low_latency_start, false);
  constants.require("collective_step_inside", spec.collective_step_inside, false);
  constants.require("nvls_efficiency", spec.nvls_efficiency, kFraction, false);
  constants.require("collective_phase_overlap", spec.collective_phase_overlap, kFraction, false);
  constants.require("pcie_bandwidth", spec.pcie_bandwidth);
  constants.require("pcie_latency", spec.pcie_latency);
  constants.require("max_gpus", spec.max_gpus, kCountOrNone, false);
  read_fabric(file, constants, told, spec);
  file.finish();
}

/// Rates and efficiencies divide: zero is refused here, once, for every reader.
void refuse_zeros(const TopologySpec& spec, std::vector<Diagnostic>& faults) {
  const auto positive = [&](std::string_view pointer, double value) {
    if (!(value > 0.0)) {
      faults.push_back({std::string(pointer) + "/value", "must be above 0", ""});
    }
  };
  const auto rate = [](std::int64_t value) { return static_cast<double>(value); };
  if (spec.node_interconnect != "pcie") {
    positive("/nvlink_bandwidth", rate(spec.nvlink_bandwidth.bytes_per_second));
  }
  positive("/pcie_bandwidth", rate(spec.pcie_bandwidth.bytes_per_second));
  positive("/nvlink_efficiency", spec.nvlink_efficiency);
  if (spec.low_latency_efficiency > 0 && spec.fabric != FabricKind::kNone) {
    positive("/low_latency_nic_efficiency", spec.low_latency_nic_efficiency);
  }
  if (spec.fabric != FabricKind::kNone) {
    positive("/nics_per_node", spec.nics_per_node);
    positive("/nic_bandwidth", rate(spec.nic_bandwidth.bytes_per_second));
    positive("/nic_efficiency", spec.nic_efficiency);
  }
  positive("/gpu/bf16_dense", rate(spec.gpu.bf16_dense.flops_per_second));
  positive("/gpu/fp32_vector", rate(spec.gpu.fp32_vector.flops_per_second));
  positive("/gpu/memory_as_sold", rate(spec.gpu.memory_as_sold.value));
  positive("/gpu/memory_reported", rate(spec.gpu.memory_reported.value));
  positive("/gpu/memory_bandwidth", rate(spec.gpu.memory_bandwidth.bytes_per_second));
  positive("/gpu/gemm_efficiency", spec.gpu.gemm_efficiency);
  if (spec.gpu.fp8_dense.flops_per_second > 0) {
    positive("/gpu/fp8_gemm_efficiency", spec.gpu.fp8_gemm_efficiency);
  }
  if (spec.gpu.nvfp4_dense.flops_per_second > 0) {
    positive("/gpu/nvfp4_gemm_efficiency", spec.gpu.nvfp4_gemm_efficiency);
  }
  positive("/gpu/attention_forward_efficiency", spec.gpu.attention_forward_efficiency);
  positive("/gpu/attention_backward_efficiency", spec.gpu.attention_backward_efficiency);
  positive("/gpu/flash2_forward_efficiency", spec.gpu.flash2_forward_efficiency);
  positive("/gpu/flash2_backward_efficiency", spec.gpu.flash2_backward_efficiency);
  positive("/gpu/batched_gemm_efficiency", spec.gpu.batched_gemm_efficiency);
  positive("/gpu/memory_efficiency", spec.gpu.memory_efficiency);
}

/// Why a file that is not JSON is no topology: it may be what one refers to.
Faults no_topology(const std::string& path, const Faults& json) {
  if (json.kind == FaultKind::kFile) {
    return json;
  }
  const Expected<Import> import = read_import(path);
  if (!import) {
    return import.error();
  }
  const bool fabric = std::holds_alternative<FabricDiscovery>(*import);
  if (!fabric && !std::holds_alternative<NodeDescription>(*import)) {
    return json;
  }
  return {{{"",
            std::string("the file lists a ") + (fabric ? "fabric" : "node") +
                " and is no topology, which tells more",
            "foretrain topology " + path + " --write FILE makes one of it"}}};
}

}  // namespace

Expected<TopologySpec> read_topology(const std::string& name_or_path) {
  const Expected<NamedFile> file = find_named_file(name_or_path, "topologies", "topology", ".");
  if (!file) {
    return tl::unexpected<Faults>(file.error());
  }
  const Expected<JsonValue> text = read_json_file(file->path);
  if (!text) {
    return tl::unexpected<Faults>(no_topology(file->path, text.error()));
  }
  TopologySpec spec;
  spec.name = file->stem;
  std::vector<Diagnostic> faults;
  std::string gpu_name;
  JsonCursor root(*text, "", faults);
  const std::string folder = std::filesystem::path(file->path).parent_path().string();
  read_cluster(root, spec, gpu_name, folder);
  if (gpu_name.empty()) {
    return refuse(std::move(faults));
  }
  Expected<NamedFile> gpu = find_named_file(gpu_name, "topologies/gpu", "GPU", folder);
  if (!gpu) {
    gpu.error().list.front().pointer = "/gpu";
    faults.insert(faults.end(), gpu.error().list.begin(), gpu.error().list.end());
    return tl::unexpected<Faults>(Faults{std::move(faults), gpu.error().kind});
  }
  const Expected<JsonValue> gpu_text = read_json_file(gpu->path);
  if (!gpu_text) {
    return tl::unexpected<Faults>(gpu_text.error());
  }
  spec.gpu.name = gpu->stem;
  JsonCursor gpu_root(*gpu_text, "/gpu", faults);
  read_gpu(gpu_root, spec.gpu, spec.sources);
  if (faults.empty()) {
    refuse_zeros(spec, faults);
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return spec;
}

}  // namespace foretrain
