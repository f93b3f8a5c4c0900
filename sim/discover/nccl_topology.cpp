#include "foretrain/node_description.h"
#include "sim/discover/nccl_elements.h"
#include "sim/discover/node.h"
#include "sim/discover/text_lines.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace foretrain {
namespace {

/// "32.0 GT/s PCIe" over 16 lanes -> 64 GB/s, before framing as data sheets have it.
Bandwidth slot_rate(const NcclElement& pci) {
  const std::string speed = pci.attribute("link_speed");
  const std::optional<std::int32_t> lanes = whole_number_in(pci.attribute("link_width"));
  const std::size_t dot = std::min(speed.find_first_not_of("0123456789"), speed.size());
  const std::optional<std::int32_t> whole = whole_number_in(speed.substr(0, dot));
  if (!lanes || !whole || *whole > 1000 || *lanes > 64 || speed.find("GT/s") == std::string::npos) {
    return {};
  }
  const std::int64_t half = speed.substr(dot).starts_with(".5") ? 1 : 0;  // 2.5 GT/s, PCIe 1
  return {(2 * std::int64_t{*whole} + half) * *lanes * 1'000'000'000 / 16};
}

class NcclNode {
 public:
  NcclNode(const std::vector<NcclElement>& elements, LineFaults& faults)
      : elements_(elements), faults_(faults) {}

  NodeDescription build() {
    node_.form = "NCCL topology";
    for (std::size_t at = 0; at < elements_.size(); ++at) {
      take(at);
    }
    if (faults_.none() && gpus_.empty()) {
      faults_.add(1,
                  "no GPU: no <pci> of class 0x0302 and no <gpu>",
                  "NCCL writes a whole file with NCCL_TOPO_DUMP_FILE");
    }
    if (gpus_.size() > kMostDevices || nics_.size() > kMostDevices) {
      faults_.add(
          1,
          std::to_string(gpus_.size()) + " GPUs and " + std::to_string(nics_.size()) + " NICs",
          "a node has at most " + std::to_string(kMostDevices) + " of each");
    }
    if (!faults_.none()) {
      return {};
    }
    connect();
    node_.looped = static_cast<std::int32_t>(looped_.size());
    std::vector<std::vector<PciePath>> paths;
    for (const std::size_t gpu : gpus_) {
      paths.emplace_back();
      for (const std::size_t nic : nics_) {
        paths.back().push_back(path_between(gpu, nic));
      }
    }
    finish_node(node_, paths, switched_);
    if (!details_) {
      node_.interconnect = NodeDescription::Interconnect::kNotTold;
    }
    return node_;
  }

 private:
  static constexpr std::size_t kMostDevices = 256;

  void take(std::size_t at) {
    const NcclElement& element = elements_[at];
    if (element.name == "cpu") {
      cpus_.emplace(at, static_cast<std::int32_t>(cpus_.size()));
      node_.domains = static_cast<std::int32_t>(cpus_.size());
    } else if (element.name == "pci") {
      take_pci(at);
    } else if (element.name == "gpu") {
      take_gpu(at);
    } else if (element.name == "net") {
      take_net(at);
    }
  }

  void take_pci(std::size_t at) {
    const std::string kind = elements_[at].attribute("class").substr(0, 6);
    if (kind == "0x0302" || kind == "0x0300") {
      add_gpu(at);
    } else if ((kind == "0x0200" || kind == "0x0207") && !has_child(at, "nic")) {
      add_nic(at, elements_[at].attribute("busid"), {});
    }
  }

  bool has_child(std::size_t parent, const std::string& name) const {
    for (std::size_t at = parent + 1; at < elements_.size(); ++at) {
      if (elements_[at].depth <= elements_[parent].depth) {
        return false;
      }
      if (elements_[at].name == name) {
        return true;
      }
    }
    return false;
  }

  void add_gpu(std::size_t pci) {
    NodeDescription::Gpu gpu;
    gpu.name = "GPU" + std::to_string(gpus_.size());
    gpu.bus = clean_name(elements_[pci].attribute("busid"));
    gpu.pcie = slot_rate(elements_[pci]);
    for (std::optional<std::size_t> up = elements_[pci].parent; up; up = elements_[*up].parent) {
      if (const auto cpu = cpus_.find(*up); cpu != cpus_.end()) {
        gpu.domain = cpu->second;
      }
    }
    if (!gpu.bus.empty() && !by_bus_.emplace(gpu.bus, gpus_.size()).second) {
      faults_.add(elements_[pci].line, "a second GPU on the bus " + quoted_name(gpu.bus));
    }
    gpus_.push_back(pci);
    node_.gpus.push_back(std::move(gpu));
  }

  void take_gpu(std::size_t at) {
    const NcclElement& element = elements_[at];
    if (!element.parent || elements_[*element.parent].name != "pci") {
      faults_.add(element.line, "a <gpu> outside a <pci>", "NCCL lists a GPU in its PCIe slot");
      return;
    }
    if (gpus_.empty() || gpus_.back() != *element.parent) {
      add_gpu(*element.parent);
    }
    const std::string sm = element.attribute("sm");
    const std::optional<std::int32_t> number = whole_number_in(sm);
    if (!sm.empty() && (!number || *number < 10 || *number > 999)) {
      faults_.add(
          element.line, "sm=" + quoted_name(sm) + " is no compute capability", "90 stands for 9.0");
      return;
    }
    node_.gpus.back().sm = number.value_or(0);
    details_ = true;
  }

  void take_net(std::size_t at) {
    const NcclElement& element = elements_[at];
    std::optional<std::size_t> pci = element.parent;
    while (pci && elements_[*pci].name != "pci") {
      pci = elements_[*pci].parent;
    }
    const std::string speed = element.attribute("speed");
    const std::optional<std::int32_t> megabits = whole_number_in(speed);
    if (!speed.empty() && (!megabits || *megabits > 100'000'000)) {
      faults_.add(element.line,
                  "speed=" + quoted_name(speed) + " is no number of Mbit/s",
                  "400000 is 400 Gb/s");
      return;
    }
    const std::string name = element.attribute("name");
    add_nic(pci.value_or(at),
            name.empty() ? "net" + std::to_string(nics_.size()) : name,
            {std::int64_t{megabits.value_or(0)} * 125'000});
  }

  void add_nic(std::size_t at, const std::string& name, Bandwidth rate) {
    nics_.push_back(at);
    node_.nics.push_back({clean_name(name), rate});
  }

  /// NVLinks of each GPU: to switches, or to GPUs by their bus.
  void connect() {
    const std::size_t count = gpus_.size();
    node_.nvlinks.assign(count, std::vector<std::int32_t>(count, 0));
    for (const NcclElement& element : elements_) {
      if (element.name == "nvlink") {
        connect(element);
      }
    }
    for (std::size_t gpu = 0; switched_ && gpu < count; ++gpu) {
      for (std::size_t to = 0; to < count; ++to) {
        node_.nvlinks[gpu][to] =
            gpu == to ? 0 : std::min(node_.gpus[gpu].nvlinks, node_.gpus[to].nvlinks);
      }
    }
  }

  void connect(const NcclElement& element) {
    std::optional<std::size_t> pci = element.parent;
    while (pci && elements_[*pci].name != "pci") {
      pci = elements_[*pci].parent;
    }
    const auto found = pci ? std::find(gpus_.begin(), gpus_.end(), *pci) : gpus_.end();
    if (found == gpus_.end()) {
      return;  // links of a CPU or of a switch to itself
    }
    const auto gpu = static_cast<std::size_t>(found - gpus_.begin());
    const std::optional<std::int32_t> links = whole_number_in(element.attribute("count"));
    if (!links || *links < 1 || *links > 64) {
      faults_.add(element.line,
                  "count=" + quoted_name(element.attribute("count")) + " is no number of NVLinks",
                  "a GPU has 1 to 18");
      return;
    }
    const std::string target = clean_name(element.attribute("target"));
    if (element.attribute("tclass").starts_with("0x0680")) {
      switched_ = true;
      node_.gpus[gpu].nvlinks = std::min(node_.gpus[gpu].nvlinks + *links, 64);
    } else if (!target.empty() && target == node_.gpus[gpu].bus) {
      looped_.insert(gpu);
    } else if (const auto peer = by_bus_.find(target); peer != by_bus_.end()) {
      node_.nvlinks[gpu][peer->second] = *links;
    } else if (element.attribute("tclass").starts_with("0x03")) {
      faults_.add(element.line,
                  "an NVLink to " + quoted_name(target) + ", which is no GPU here",
                  "a target is the busid of a GPU");
    }
  }

  /// How near two PCIe devices are: what their ways up the tree have in common.
  PciePath path_between(std::size_t a, std::size_t b) const {
    std::map<std::size_t, int> above;  // element -> steps from a
    int steps = 0;
    for (std::optional<std::size_t> up = a; up; up = elements_[*up].parent) {
      above.emplace(*up, steps++);
    }
    steps = 0;
    for (std::optional<std::size_t> up = b; up; up = elements_[*up].parent, ++steps) {
      const auto met = above.find(*up);
      if (met == above.end()) {
        continue;
      }
      if (elements_[*up].name == "pci") {
        return met->second <= 1 && steps <= 1 ? PciePath::kPix : PciePath::kPxb;
      }
      return elements_[*up].name == "cpu" ? PciePath::kPhb : PciePath::kSys;
    }
    return PciePath::kSys;
  }

  const std::vector<NcclElement>& elements_;
  LineFaults& faults_;
  NodeDescription node_;
  std::vector<std::size_t> gpus_;  ///< elements: their <pci>
  std::vector<std::size_t> nics_;
  std::map<std::size_t, std::int32_t> cpus_;
  std::map<std::string, std::size_t> by_bus_;
  std::set<std::size_t> looped_;
  bool switched_ = false;
  bool details_ = false;  ///< there are <gpu> elements, as NCCL writes them itself
};

}  // namespace

Expected<NodeDescription> parse_nccl_topology(std::string_view text) {
  const Expected<std::vector<NcclElement>> elements = read_nccl_elements(text);
  if (!elements) {
    return tl::unexpected<Faults>(elements.error());
  }
  LineFaults faults;
  NcclNode reader(*elements, faults);
  NodeDescription node = reader.build();
  if (!faults.none()) {
    return refuse(faults.take());
  }
  return node;
}

bool is_nccl_topology(std::string_view text) {
  const std::string_view head = text.substr(0, std::size_t{1} << 14);
  const std::size_t first = head.find_first_not_of(" \x09\x0d\n\xef\xbb\xbf");
  return first != std::string_view::npos && head[first] == '<' &&
         head.find("<system") != std::string_view::npos;
}

}  // namespace foretrain
