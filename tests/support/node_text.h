#pragma once

#include <string>
#include <vector>

/// Texts about one machine, as nvidia-smi and NCCL write them.
namespace foretrain::test {

struct MatrixText {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> cells;  ///< by row and column
  std::vector<std::string> cpus;                ///< of the GPUs; empty: no such columns
  std::string separator = std::string(1, '\x09');
  bool underlined = false;               ///< the header, with terminal codes
  std::vector<std::string> nic_names{};  ///< for a legend

  std::string text() const {
    std::string text = separator;
    for (const std::string& column : columns) {
      text += underlined ? "\x1b[4m" + column + "\x1b[0m" + separator : column + separator;
    }
    text += cpus.empty()
                ? "\n"
                : "CPU Affinity" + separator + "NUMA Affinity" + separator + "GPU NUMA ID\n";
    for (std::size_t row = 0; row < columns.size(); ++row) {
      text += columns[row];
      for (std::size_t column = 0; column < columns.size(); ++column) {
        text += separator + (row == column ? " X " : cells[row][column]);
      }
      text +=
          row < cpus.size() ? separator + cpus[row] + separator + "0" + separator + "N/A\n" : "\n";
    }
    text +=
        "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n";
    for (std::size_t nic = 0; nic < nic_names.size(); ++nic) {
      text += nic == 0 ? "\nNIC Legend:\n\n" : "";
      text += "  NIC" + std::to_string(nic) + ": " + nic_names[nic] + "\n";
    }
    return text;
  }
};

/// GPUs that are all NV<links> from each other (or PIX, PXB, ... given as a word), each pair of
/// `gpus_per_nic` with a NIC of its own at PIX, all others at SYS; two CPUs.
inline MatrixText matrix(int gpus, const std::string& between, int nics) {
  MatrixText made;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    made.columns.push_back("GPU" + std::to_string(gpu));
    made.cpus.push_back(gpu < gpus / 2 ? "0-63" : "64-127");
  }
  for (int nic = 0; nic < nics; ++nic) {
    made.columns.push_back("NIC" + std::to_string(nic));
    made.nic_names.push_back("mlx5_" + std::to_string(nic + 4));
  }
  const int all = gpus + nics;
  made.cells.assign(static_cast<std::size_t>(all),
                    std::vector<std::string>(static_cast<std::size_t>(all), "SYS"));
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < all; ++b) {
      const bool near = b >= gpus && a * nics / gpus == b - gpus;
      const std::string cell = b < gpus ? between : near ? "PIX" : "SYS";
      made.cells[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = cell;
      made.cells[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = cell;
    }
  }
  return made;
}

/// NCCL's file of a machine of two CPUs with `gpus` GPUs, each on a PCIe bridge of its own beside a
/// NIC; `links` of each to each of `switches` NVLink switches.
struct NcclText {
  int gpus = 8;
  int sm = 90;
  int links = 6;
  int switches = 3;
  int megabits = 400'000;

  std::string text() const {
    std::string text = "<system version=\"1\">\n";
    for (int cpu = 0; cpu < 2; ++cpu) {
      text += " <cpu numaid=\"" + std::to_string(cpu) + "\" arch=\"x86_64\">\n";
      for (int gpu = cpu * gpus / 2; gpu < (cpu + 1) * gpus / 2; ++gpu) {
        text += slot(gpu);
      }
      text += " </cpu>\n";
    }
    return text + "</system>\n";
  }

  static std::string bus(int number) { return "0000:" + std::to_string(10 + number) + ":00.0"; }

  std::string slot(int gpu) const {
    const std::string speed = " link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"";
    std::string text = "  <pci busid=\"" + bus(gpu + 60) + "\" class=\"0x060400\"" + speed + ">\n";
    text += "   <pci busid=\"" + bus(gpu) + "\" class=\"0x030200\"" + speed + ">\n    <gpu dev=\"" +
            std::to_string(gpu) + "\" sm=\"" + std::to_string(sm) + "\" gdr=\"1\">\n";
    for (int at = 0; at < switches; ++at) {
      text += "     <nvlink target=\"" + bus(at + 40) + "\" count=\"" + std::to_string(links) +
              "\" tclass=\"0x068000\"/>\n";
    }
    text += "    </gpu>\n   </pci>\n   <pci busid=\"" + bus(gpu + 20) + "\" class=\"0x020700\"" +
            speed + ">\n    <nic>\n     <net name=\"mlx5_" + std::to_string(gpu) + "\" dev=\"" +
            std::to_string(gpu) + "\" speed=\"" + std::to_string(megabits) +
            "\" port=\"1\"/>\n    </nic>\n   </pci>\n";
    return text + "  </pci>\n";
  }
};

}  // namespace foretrain::test
