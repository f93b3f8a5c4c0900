#include "foretrain/node_description.h"
#include "sim/discover/node.h"
#include "sim/discover/text_lines.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace foretrain {
namespace {

constexpr std::size_t kMostDevices = 256;
constexpr std::int32_t kSelf = -1;
constexpr std::int32_t kNvlinkCell = 100;  // NV<n> is kNvlinkCell + n, others a PciePath

/// The words of a line, terminal codes left out.
std::vector<std::string> words_of(std::string_view line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] != '\x1b') {
      plain += line[at];
      continue;
    }
    if (at + 1 < line.size() && line[at + 1] == '[') {
      ++at;
    }
    // A code ends with a letter.
    while (at + 1 < line.size() && (line[at + 1] < '@' || line[at + 1] > '~')) {
      ++at;
    }
    ++at;
  }
  std::vector<std::string> words;
  std::string_view rest = plain;
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    words.emplace_back(word);
  }
  return words;
}

bool is_gpu(std::string_view word) {
  return word.starts_with("GPU") && whole_number_in(word.substr(3)).has_value();
}

bool is_header(const std::vector<std::string>& words) {
  return !words.empty() && is_gpu(words[0]) &&
         (words.size() == 1 || words[1] == "CPU" || words[1] == "NUMA" || is_gpu(words[1]) ||
          words[1].find_first_of("0123456789") != std::string::npos) &&
         (words.size() == 1 || !words[1].starts_with("NV"));
}

std::optional<std::int32_t> cell_of(std::string_view word) {
  constexpr std::pair<std::string_view, PciePath> kPaths[] = {{"PIX", PciePath::kPix},
                                                              {"PXB", PciePath::kPxb},
                                                              {"PHB", PciePath::kPhb},
                                                              {"NODE", PciePath::kNode},
                                                              {"SYS", PciePath::kSys},
                                                              {"SOC", PciePath::kSys}};
  if (word == "X") {
    return kSelf;
  }
  for (const auto& [name, path] : kPaths) {
    if (word == name) {
      return static_cast<std::int32_t>(path);
    }
  }
  if (word.starts_with("NV")) {
    const std::optional<std::int32_t> links = whole_number_in(word.substr(2));
    if (links && *links >= 1 && *links <= 64) {
      return kNvlinkCell + *links;
    }
  }
  return std::nullopt;
}

class TopoMatrixReader {
 public:
  Expected<NodeDescription> read(std::string_view text) {
    TextLines lines(text);
    for (std::string_view line; lines.next(line);) {
      line_ = lines.number();
      take(words_of(line));
    }
    check();
    if (!faults_.none()) {
      return refuse(faults_.take());
    }
    return describe();
  }

 private:
  struct Row {
    std::int64_t line = 0;
    std::vector<std::int32_t> cells;
    std::string cpus;
  };

  void take(const std::vector<std::string>& words) {
    if (columns_.empty()) {
      if (is_header(words)) {
        header(words);
      }
      return;
    }
    if (words.empty()) {
      return;
    }
    if (words[0] == "Legend:" || (words.size() > 1 && words[1] == "Legend:")) {
      in_legend_ = true;
    } else if (in_legend_) {
      if (words.size() == 2 && words[0].ends_with(':')) {
        names_[words[0].substr(0, words[0].size() - 1)] = words[1];
      }
    } else {
      row(words);
    }
  }

  void header(const std::vector<std::string>& words) {
    for (std::size_t at = 0; at < words.size(); ++at) {
      const bool affinity = words[at] == "CPU" || words[at] == "NUMA" || words[at] == "GPU";
      if (affinity) {
        cpus_ = words[at] == "CPU";
        break;
      }
      if (columns_.size() == kMostDevices) {
        faults_.add(line_,
                    "more than " + std::to_string(kMostDevices) + " columns",
                    "is this the matrix of one node?");
        break;
      }
      if (std::find(columns_.begin(), columns_.end(), words[at]) != columns_.end()) {
        faults_.add(line_, "column " + quoted_name(words[at]) + " stands twice");
      }
      columns_.push_back(words[at]);
    }
    header_line_ = line_;
    rows_.resize(columns_.size());
  }

  void row(const std::vector<std::string>& words) {
    const auto found = std::find(columns_.begin(), columns_.end(), words[0]);
    if (found == columns_.end()) {
      faults_.add(line_,
                  quoted_name(words[0]) + " is no column of line " + std::to_string(header_line_),
                  "rows and columns are the same devices");
      return;
    }
    Row& row = rows_[static_cast<std::size_t>(found - columns_.begin())];
    if (row.line != 0) {
      faults_.add(line_,
                  "row " + quoted_name(words[0]) + " stands twice, first in line " +
                      std::to_string(row.line));
      return;
    }
    row.line = line_;
    if (words.size() < columns_.size() + 1) {
      faults_.add(line_,
                  quoted_name(words[0]) + " has " + std::to_string(words.size() - 1) +
                      " cells for " + std::to_string(columns_.size()) + " columns",
                  "is the text whole?");
      return;
    }
    for (std::size_t at = 0; at < columns_.size(); ++at) {
      const std::optional<std::int32_t> cell = cell_of(words[at + 1]);
      if (!cell) {
        faults_.add(line_,
                    quoted_name(words[at + 1]) + " from " + quoted_name(words[0]) + " to " +
                        quoted_name(columns_[at]),
                    "a cell is X, NV and a number of links, PIX, PXB, PHB, NODE or SYS");
      }
      row.cells.push_back(cell.value_or(static_cast<std::int32_t>(PciePath::kSys)));
    }
    if (cpus_ && words.size() > columns_.size() + 1) {
      row.cpus = words[columns_.size() + 1];
    }
  }

  void check() {
    if (columns_.empty()) {
      faults_.add(1, "no row of columns that begins with GPU0", "give `nvidia-smi topo -m`");
    }
    for (std::size_t a = 0; a < columns_.size(); ++a) {
      if (rows_[a].line == 0) {
        faults_.add(header_line_,
                    "the row of " + quoted_name(columns_[a]) + " is missing",
                    "is the text whole?");
      }
    }
    for (std::size_t a = 0; faults_.none() && a < columns_.size(); ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        check_pair(a, b);
      }
    }
  }

  void check_pair(std::size_t a, std::size_t b) {
    const std::string pair = quoted_name(columns_[a]) + " to " + quoted_name(columns_[b]);
    if ((rows_[a].cells[b] == kSelf || rows_[b].cells[a] == kSelf) != (a == b)) {
      faults_.add(
          rows_[a].line, pair + (a == b ? " is not X" : " is X"), "X stands for a device itself");
    } else if (rows_[a].cells[b] != rows_[b].cells[a]) {
      faults_.add(
          rows_[a].line,
          pair + " is not what line " + std::to_string(rows_[b].line) + " says of the way back",
          "the matrix is symmetric");
    } else if (rows_[a].cells[b] > kNvlinkCell && !(is_gpu(columns_[a]) && is_gpu(columns_[b]))) {
      faults_.add(rows_[a].line, pair + " is NVLink", "NVLinks join GPUs");
    }
  }

  NodeDescription describe() const {
    NodeDescription node;
    node.form = "nvidia-smi topo -m";
    std::vector<std::size_t> gpus;
    std::vector<std::size_t> nics;
    for (std::size_t at = 0; at < columns_.size(); ++at) {
      (is_gpu(columns_[at]) ? gpus : nics).push_back(at);
    }
    std::map<std::string, std::int32_t> domains;
    std::vector<std::vector<PciePath>> paths;
    for (const std::size_t at : gpus) {
      NodeDescription::Gpu gpu;
      gpu.name = clean_name(columns_[at]);
      if (!rows_[at].cpus.empty() && rows_[at].cpus != "N/A") {
        const auto next = static_cast<std::int32_t>(domains.size());
        gpu.domain = domains.emplace(rows_[at].cpus, next).first->second;
      }
      node.gpus.push_back(gpu);
      node.nvlinks.emplace_back();
      for (const std::size_t to : gpus) {
        node.nvlinks.back().push_back(std::max(rows_[at].cells[to] - kNvlinkCell, 0));
      }
      paths.emplace_back();
      for (const std::size_t to : nics) {
        paths.back().push_back(static_cast<PciePath>(rows_[at].cells[to]));
      }
    }
    for (const std::size_t at : nics) {
      const auto name = names_.find(columns_[at]);
      node.nics.push_back({clean_name(name == names_.end() ? columns_[at] : name->second), {}});
    }
    node.domains = static_cast<std::int32_t>(domains.size());
    finish_node(node, paths, false);
    return node;
  }

  std::vector<std::string> columns_;
  std::vector<Row> rows_;
  std::map<std::string, std::string> names_;  ///< "NIC0" -> "mlx5_0"
  std::int64_t header_line_ = 0;
  std::int64_t line_ = 0;
  bool cpus_ = false;  ///< the first column after the cells is the CPU affinity
  bool in_legend_ = false;
  LineFaults faults_;
};

}  // namespace

Expected<NodeDescription> parse_topo_matrix(std::string_view text) {
  return TopoMatrixReader().read(text);
}

bool is_topo_matrix(std::string_view text) {
  constexpr std::int64_t kLinesBefore = 50;  // a prompt, a banner
  TextLines lines(text.substr(0, std::size_t{1} << 16));
  for (std::string_view line; lines.number() < kLinesBefore && lines.next(line);) {
    const std::vector<std::string> words = words_of(line);
    if (is_header(words)) {
      return true;
    }
  }
  return false;
}

}  // namespace foretrain
