#include "sim/lower/message.h"

#include "sim/schedule/lists.h"

namespace foretrain {

std::int32_t message_number(const Schedule& schedule, const Action& producer) {
  const bool gradient = producer.kind != ActionKind::kForward;
  return static_cast<std::int32_t>(cell(schedule, producer)) * 4 + (gradient ? 2 : 0);
}

Message message_of(const Schedule& schedule, std::int32_t number) {
  const ScheduleSize& size = schedule.size;
  std::int32_t rest = number / 4;
  const auto take = [&rest](std::int32_t count) {
    const std::int32_t value = rest % count;
    rest /= count;
    return value;
  };
  ActionInput output;
  const std::int32_t slice = take(size.slices);
  output.slice = static_cast<std::int16_t>(size.slices > 1 ? slice : -1);
  output.gradient = (number & 2) != 0;
  Action action;
  action.micro_batch = take(size.micro_batches);
  output.stage = take(schedule.stages());
  action.copy = static_cast<std::int8_t>(schedule.copies() > 1 ? rest : -1);
  return {producer_of(schedule, action, output), (number & 1) != 0};
}

}  // namespace foretrain
