// Transfers between pipeline ranks. Rendezvous: the receiver's stream sends a token when it comes
// to the receive, and the sender's stream waits for the token before it sends; so both ends have
// come when the transfer begins.
#include "sim/lower/message.h"
#include "sim/lower/template_writer.h"

#include <algorithm>

namespace foretrain {

/// `producer` makes what is sent. Forward messages go to the neighbour on the side where the next
/// stage lies, gradients back the same way.
TemplateWriter::Hop TemplateWriter::hop(const Action& producer, bool sends) const {
  const bool gradient = producer.kind != ActionKind::kForward;
  const std::int32_t copy = std::max<std::int32_t>(producer.copy, 0);
  const std::int32_t low = gradient ? producer.stage - 1 : producer.stage;
  const std::int32_t pp = in_.schedule.size.pp;
  const std::int32_t step = in_.schedule.owner(low + 1, copy) - in_.schedule.owner(low, copy) + pp;
  const bool forward_is_next = step % pp == 1;
  const bool to_next = (forward_is_next != gradient) == sends;
  return {message_number(in_.schedule, producer), to_next ? kNext : kPrevious};
}

std::optional<TemplateWriter::Hop> TemplateWriter::input_of(const Action& action,
                                                            std::int32_t rank) const {
  if (action.kind == ActionKind::kWeightGradient) {
    return std::nullopt;
  }
  const std::int32_t from = action.stage + (action.kind == ActionKind::kForward ? -1 : 1);
  Action producer = action;
  producer.stage = from;
  if (from < 0 || from >= in_.schedule.stages() || in_.schedule.owner(producer) == rank) {
    return std::nullopt;
  }
  return hop(producer, false);
}

std::optional<TemplateWriter::Hop> TemplateWriter::output_of(const Action& action) const {
  if (action.kind == ActionKind::kWeightGradient) {
    return std::nullopt;
  }
  const std::int32_t to = action.stage + (action.kind == ActionKind::kForward ? 1 : -1);
  Action consumer = action;
  consumer.stage = to;
  if (to < 0 || to >= in_.schedule.stages() || in_.schedule.owner(consumer) == links_.pp_rank) {
    return std::nullopt;
  }
  return hop(action, true);
}

std::int32_t TemplateWriter::stream_of(TaskKind kind, std::int32_t slot) const {
  const std::string& sharing = in_.scenario.schedule.streams;
  if (sharing == "shared" || (sharing == "pair" && in_.schedule.size.pp == 2)) {
    return kSendNextStream;
  }
  if (sharing == "pair" || kind == TaskKind::kSend) {
    return slot == kNext ? kSendNextStream : kSendPreviousStream;
  }
  return slot == kNext ? kReceiveNextStream : kReceivePreviousStream;
}

/// Appends one transfer, or the token of one, which travels against it on the same stream.
std::int32_t TemplateWriter::transfer(TaskKind kind,
                                      const Hop& hop,
                                      const Action& action,
                                      bool token) {
  const bool receives = (kind == TaskKind::kReceive) != token;
  Task task;
  task.kind = receives ? TaskKind::kReceive : TaskKind::kSend;
  task.stream = stream_of(kind, hop.slot);
  task.peer_slot = hop.slot;
  const char* const label = token ? "pp ready" : receives ? "pp receive" : "pp send";
  task.label = in_.vocabulary.label(label);
  if (!token) {
    task.bytes = in_.parts.boundary().value;
  }
  if (kind == TaskKind::kSend && !token) {
    const std::int32_t shape = hop.slot == kNext ? links_.to_next : links_.to_previous;
    task.work = transfer_work(collective_cost(CollectiveKind::kSendReceive,
                                              in_.parts.boundary(),
                                              in_.places.shapes.shape(shape),
                                              in_.prices.links()));
    if (in_.scenario.costs.stated) {
      task.work = {};
      task.work[static_cast<std::size_t>(Resource::kNic)] = in_.scenario.costs.stated->p2p.count();
    }
  }
  const std::int32_t call =
      calls_.append_single(task, label, token ? Duration{} : in_.prices.launch());
  calls_.last().message = token ? token_of(hop.message) : hop.message;
  calls_.last().stage = action.stage;
  calls_.last().micro_batch = action.micro_batch;
  return calls_.task_of(call, 0);
}

/// Transfers that block the rank: posted when the unit before is done, and one after another unless
/// they are batched.
void TemplateWriter::wait_in_gap() {
  if (in_.scenario.overlap.pp) {
    return;
  }
  if (latest_.call >= 0 && latest_.hooks->last_compute >= 0) {
    calls_.wait(0, calls_.task_of(latest_.call, latest_.hooks->last_compute));
  }
  if (!in_.scenario.schedule.batched && !gap_.empty()) {
    calls_.wait(0, gap_.back());
  }
}

std::int32_t TemplateWriter::receive(const Hop& hop, const Action& action) {
  if (rendezvous()) {
    transfer(TaskKind::kReceive, hop, action, true);
    wait_in_gap();
  }
  const std::int32_t task = transfer(TaskKind::kReceive, hop, action, false);
  wait_in_gap();
  gap_.push_back(task);
  return task;
}

/// What the neighbour receives from this rank, in its order.
std::vector<std::int32_t> TemplateWriter::messages_awaited(std::int32_t slot) const {
  const std::int32_t pp = in_.schedule.size.pp;
  const std::int32_t neighbour = (links_.pp_rank + (slot == kNext ? 1 : pp - 1)) % pp;
  std::vector<std::int32_t> order;
  for (const Action& action : in_.schedule.ranks[static_cast<std::size_t>(neighbour)]) {
    const std::optional<Hop> input = input_of(action, neighbour);
    if (input && input->slot != slot) {
      order.push_back(input->message);
    }
  }
  return order;
}

/// A pair matches messages in the order both issue them (NCCL), so under rendezvous an output waits
/// until its turn at the receiver has come.
void TemplateWriter::send_in_order(const Hop& hop, const ComputeCall& from, const Action& action) {
  if (!rendezvous()) {
    send(hop, from, action);
    return;
  }
  Outbox& outbox = outboxes_[static_cast<std::size_t>(hop.slot)];
  if (outbox.order.empty()) {
    outbox.order = messages_awaited(hop.slot);
  }
  outbox.made[hop.message] = {from, action};
  while (outbox.next < outbox.order.size()) {
    const auto found = outbox.made.find(outbox.order[outbox.next]);
    if (found == outbox.made.end()) {
      return;
    }
    send({found->first, hop.slot}, found->second.first, found->second.second);
    outbox.made.erase(found);
    ++outbox.next;
  }
}

void TemplateWriter::send(const Hop& hop, const ComputeCall& from, const Action& action) {
  if (rendezvous()) {
    transfer(TaskKind::kSend, hop, action, true);
  }
  const std::int32_t task = transfer(TaskKind::kSend, hop, action, false);
  wait_in_gap();
  if (in_.scenario.overlap.pp) {
    calls_.wait(0, calls_.task_of(from.call, from.hooks->last_compute));
  }
  for (const std::int32_t open : from.hooks->open) {
    calls_.wait(0, calls_.task_of(from.call, open));
  }
  gap_.push_back(task);
  if (!in_.scenario.overlap.pp) {
    blocking_.push_back(task);
  }
}

}  // namespace foretrain
