#pragma once

#include "foretrain/model_config.h"
#include "sim/scenario/json_cursor.h"

namespace foretrain {

/// The fields of a Hugging Face config.json, from a file or inline in a scenario. Faults go to the
/// cursor's list at the field's pointer; what comes back then is not to be used.
ModelConfig read_model_object(JsonCursor& cursor);

}  // namespace foretrain
