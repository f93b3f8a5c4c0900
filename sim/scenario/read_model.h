#pragma once

#include "foretrain/model_config.h"
#include "sim/scenario/json_cursor.h"

#include <string>

namespace foretrain {

/// A model inline in a scenario: the fields of a Hugging Face config.json. Faults go to the
/// cursor's list: at the field's pointer, or at the object's when fields contradict each other;
/// what comes back then is not to be used. Keys that say nothing about shape are accepted, unknown
/// ones are faults.
ModelConfig read_model_object(JsonCursor& cursor);

/// The same for a config.json somebody else wrote: unknown keys are left alone.
ModelConfig read_config_object(JsonCursor& cursor);

/// Reads a preset of scenarios/models or a config.json; relative paths as find_named_file resolves
/// them. An unknown name has pointer "", faults inside the file pointers of that file and messages
/// that name it.
Expected<ModelConfig> read_model_reference(const std::string& name_or_path,
                                           const std::string& base_directory);

/// JSON text of an object that read_model_object reads back to the same configuration.
std::string write_model_object(const ModelConfig& model);

}  // namespace foretrain
