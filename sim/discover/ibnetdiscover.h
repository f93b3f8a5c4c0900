#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/units.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// ibnetdiscover's blocks as they stand in the text, before anything is made of them.
namespace foretrain {

enum class IbNodeKind { kSwitch, kAdapter, kRouter };

/// What a port's line says.
struct IbPort {
  std::string_view peer;  ///< "S-0002c90000000020"
  std::int32_t peer_port = 0;
  Bandwidth rate;
  std::int64_t line = 0;
};

struct IbNode {
  IbNodeKind kind = IbNodeKind::kSwitch;
  std::string_view guid;  ///< "H-0002c90000000030"
  std::string_view name;  ///< "node001 mlx5_5"
  std::int32_t ports = 0;
  std::int64_t line = 0;
  std::map<std::int32_t, IbPort> links;
};

/// The blocks of a text, in its order; views into it. Every fault of a single line, and of a guid
/// or port that stands there twice.
Expected<std::vector<IbNode>> read_ib_blocks(std::string_view text);

}  // namespace foretrain
