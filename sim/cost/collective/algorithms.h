#pragma once

#include "sim/cost/collective/wire.h"

/// One function per algorithm (MODEL 4.3): what its bytes and its hops take. Start-up is added by
/// who calls. All need a group of at least two and some bytes.
namespace foretrain {

/// One ring through all members, a node's members side by side over their own NICs.
CollectiveCost ring_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire);

/// The textbook's: rings inside the nodes, then k rings between them; uneven nodes take one ring
/// over a single NIC.
CollectiveCost hierarchical_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire);

/// NCCL's double binary tree between nodes, a chain inside them; also a broadcast.
CollectiveCost tree_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire);

/// What a node's lanes take to send the payloads of a double binary tree.
Duration tree_exit_time(Bytes bytes, const GroupWire& wire);

/// The NVLink switch adds up and multiplies (NVLS), in one node.
CollectiveCost nvls_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire);

/// The same inside each node, a double binary tree between them.
CollectiveCost nvls_tree_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire);

/// All-to-all: every rank sends each other rank its part.
CollectiveCost pairwise_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire);

/// All-to-all: parts for the same place in other nodes gather on one rank first.
CollectiveCost gathered_pairwise_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire);

/// A broadcast as a pipelined chain from the root.
CollectiveCost chain_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire);

/// One message.
CollectiveCost send_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire);

}  // namespace foretrain
