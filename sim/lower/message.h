#pragma once

#include "foretrain/schedule.h"

#include <cstdint>

namespace foretrain {

/// What travels between two pipeline ranks: the output of an action, or the token of a rendezvous
/// that goes against it.
struct Message {
  Action producer;  ///< of a backward whichever kind hands the gradient on
  bool token = false;
};

/// A number for an action's output that nothing else of the step has, and that of its token.
std::int32_t message_number(const Schedule& schedule, const Action& producer);
constexpr std::int32_t token_of(std::int32_t message) {
  return message + 1;
}
/// The message of a number; its producer as the lists have it.
Message message_of(const Schedule& schedule, std::int32_t number);

}  // namespace foretrain
