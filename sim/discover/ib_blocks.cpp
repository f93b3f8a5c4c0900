#include "foretrain/discover.h"
#include "sim/discover/ibnetdiscover.h"
#include "sim/discover/text_lines.h"

#include <optional>
#include <utility>

namespace foretrain {
namespace {

constexpr std::int32_t kMostPorts = 254;  // a port number is a byte; 0 and 255 mean other things

struct IbSpeed {
  std::string_view name;
  std::int64_t lane_megabits;  // nominal: four lanes are the figure a product is sold by
};
constexpr IbSpeed kSpeeds[] = {{"SDR", 2'500},
                               {"DDR", 5'000},
                               {"QDR", 10'000},
                               {"FDR10", 10'250},
                               {"FDR", 14'000},
                               {"EDR", 25'000},
                               {"HDR", 50'000},
                               {"NDR", 100'000},
                               {"XDR", 200'000}};
constexpr std::pair<std::string_view, std::int64_t> kWidths[] = {
    {"1x", 1}, {"2x", 2}, {"4x", 4}, {"8x", 8}, {"12x", 12}};

/// "4xNDR" -> 50 GB/s
std::optional<Bandwidth> ib_rate(std::string_view word) {
  const std::size_t x = word.find('x');
  if (x == std::string_view::npos) {
    return std::nullopt;
  }
  for (const auto& [width, lanes] : kWidths) {
    for (const IbSpeed& speed : kSpeeds) {
      if (word.substr(0, x + 1) == width && word.substr(x + 1) == speed.name) {
        return Bandwidth{lanes * speed.lane_megabits * 1'000'000 / 8};
      }
    }
  }
  return std::nullopt;
}

/// Takes what stands between two marks at the front of a text, blanks before them skipped.
std::optional<std::string_view> take_between(std::string_view& text, char open, char close) {
  while (text.starts_with(' ') || text.starts_with('\t')) {
    text.remove_prefix(1);
  }
  if (text.empty() || text.front() != open) {
    return std::nullopt;
  }
  const std::size_t end = text.find(close, 1);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view inside = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  return inside;
}

std::optional<std::int32_t> port_number(std::optional<std::string_view> text) {
  const std::optional<std::int32_t> port = text ? whole_number_in(*text) : std::nullopt;
  return port && *port >= 1 && *port <= kMostPorts ? port : std::nullopt;
}

std::optional<IbNodeKind> kind_of(std::string_view word) {
  return word == "Switch" ? std::optional(IbNodeKind::kSwitch)
         : word == "Ca"   ? std::optional(IbNodeKind::kAdapter)
         : word == "Rt"   ? std::optional(IbNodeKind::kRouter)
                          : std::nullopt;
}

/// What stands between the first and the last quote of a comment.
std::optional<std::string_view> name_in(std::string_view comment) {
  const std::size_t first = comment.find('"');
  const std::size_t last = comment.rfind('"');
  if (first == std::string_view::npos || last == first) {
    return std::nullopt;
  }
  return comment.substr(first + 1, last - first - 1);
}

/// Lines that carry nothing needed here: chassis, verbose paths, identifiers.
bool is_skipped(std::string_view line) {
  constexpr std::string_view kBeginnings[] = {"#",
                                              "vendid=",
                                              "devid=",
                                              "sysimgguid=",
                                              "switchguid=",
                                              "caguid=",
                                              "rtguid=",
                                              "Chassis",
                                              "DR path",
                                              "Topology file",
                                              "Initiated from",
                                              "Max of "};
  for (const std::string_view beginning : kBeginnings) {
    if (line.starts_with(beginning)) {
      return true;
    }
  }
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

class IbBlockReader {
 public:
  Expected<std::vector<IbNode>> read(std::string_view text) {
    TextLines lines(text);
    for (std::string_view line; lines.next(line);) {
      line_ = lines.number();
      if (line.starts_with('[')) {
        port(line);
      } else if (!is_skipped(line)) {
        node(line);
      }
    }
    if (faults_.none() && nodes_.empty()) {
      faults_.add(1, "no switch and no adapter is listed", kLooks);
    }
    if (!faults_.none()) {
      return refuse(faults_.take());
    }
    return std::move(nodes_);
  }

 private:
  static constexpr const char* kLooks =
      "give the text of ibnetdiscover: blocks that begin with Switch or Ca";

  void node(std::string_view line) {
    open_ = false;
    std::string_view rest = line;
    const std::optional<IbNodeKind> kind = kind_of(take_word(rest));
    if (!kind) {
      faults_.add(line_, quoted_name(line) + " is no line of ibnetdiscover", kLooks);
      return;
    }
    IbNode read;
    read.kind = *kind;
    read.line = line_;
    const std::optional<std::int32_t> ports = whole_number_in(take_word(rest));
    const std::optional<std::string_view> guid = take_between(rest, '"', '"');
    const std::optional<std::string_view> name = name_in(rest);
    if (!ports || *ports < 1 || *ports > kMostPorts || !guid || guid->empty() || !name) {
      faults_.add(line_,
                  quoted_name(line) + " does not name a node",
                  "a node is: Switch 65 \"S-GUID\" # \"NAME\" ..., with 1 to 254 ports");
      return;
    }
    read.ports = *ports;
    read.guid = *guid;
    read.name = *name;
    const auto [twin, fresh] = lines_.emplace(*guid, line_);
    if (!fresh) {
      faults_.add(line_,
                  quoted_name(*guid) + " is listed a second time, first in line " +
                      std::to_string(twin->second),
                  "a guid has one block");
    }
    nodes_.push_back(std::move(read));
    open_ = true;
  }

  void port(std::string_view line) {
    std::string_view rest = line;
    const std::optional<std::int32_t> own = port_number(take_between(rest, '[', ']'));
    take_between(rest, '[', ']');  // "[ext 3]", a port of a chassis
    take_between(rest, '(', ')');  // the port's guid
    const std::optional<std::string_view> peer = take_between(rest, '"', '"');
    const std::optional<std::int32_t> peer_port = port_number(take_between(rest, '[', ']'));
    if (!own || !peer || !peer_port) {
      faults_.add(line_,
                  quoted_name(line) + " does not name a port and its peer",
                  "a port is: [1] \"S-GUID\"[2] # ... 4xNDR");
      return;
    }
    const std::optional<Bandwidth> rate = last_rate(rest);
    if (!rate || nodes_.empty() || !open_) {
      if (nodes_.empty()) {
        faults_.add(line_, "a port of no node", "a block begins with Switch or Ca");
      }
      return;
    }
    IbNode& node = nodes_.back();
    if (*own > node.ports) {
      faults_.add(line_,
                  "port " + std::to_string(*own) + " of " + quoted_name(node.guid) +
                      ", which has " + std::to_string(node.ports));
    }
    const auto [twin, fresh] = node.links.emplace(*own, IbPort{*peer, *peer_port, *rate, line_});
    if (!fresh) {
      faults_.add(line_,
                  "port " + std::to_string(*own) + " of " + quoted_name(node.guid) +
                      " is listed a second time, first in line " +
                      std::to_string(twin->second.line));
    }
  }

  /// The last word of a port's line that looks like a width and a speed.
  std::optional<Bandwidth> last_rate(std::string_view rest) {
    const std::size_t quote = rest.rfind('"');
    std::string_view words = quote == std::string_view::npos ? rest : rest.substr(quote + 1);
    std::string_view found;
    for (std::string_view word = take_word(words); !word.empty(); word = take_word(words)) {
      if (word.find('x') != std::string_view::npos && word.front() >= '0' && word.front() <= '9') {
        found = word;
        if (const std::optional<Bandwidth> rate = ib_rate(word)) {
          return rate;
        }
      }
    }
    faults_.add(line_,
                found.empty() ? "the cable's width and speed are missing"
                              : quoted_name(found) + " is no width and speed",
                "1x, 2x, 4x, 8x or 12x of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR");
    return std::nullopt;
  }

  std::vector<IbNode> nodes_;
  std::map<std::string_view, std::int64_t> lines_;
  LineFaults faults_;
  std::int64_t line_ = 0;
  bool open_ = false;
};

}  // namespace

Expected<std::vector<IbNode>> read_ib_blocks(std::string_view text) {
  return IbBlockReader().read(text);
}

bool is_ibnetdiscover(std::string_view text) {
  TextLines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (!is_skipped(line)) {
      return kind_of(take_word(line)).has_value();
    }
    if (line.starts_with("vendid=") || line.starts_with("sysimgguid=")) {
      return true;
    }
  }
  return false;
}

}  // namespace foretrain
