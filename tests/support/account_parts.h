#pragma once

#include "foretrain/timeline.h"

#include <tuple>

/// Everything an account says, to compare two of them.
namespace foretrain {

inline auto parts(const RankAccount& a) {
  return std::tie(a.window,
                  a.busy,
                  a.exposed,
                  a.transfer,
                  a.member_wait,
                  a.bytes,
                  a.point_to_point,
                  a.point_to_point_bytes,
                  a.received_bytes,
                  a.host,
                  a.idle);
}

}  // namespace foretrain
