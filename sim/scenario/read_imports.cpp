#include "foretrain/imports.h"
#include "sim/scenario/json_value.h"

#include <utility>

namespace foretrain {
namespace {

template <typename T>
Expected<Import> as_import(Expected<T> read) {
  if (!read) {
    return tl::unexpected<Faults>(std::move(read.error()));
  }
  return Import(std::move(*read));
}

}  // namespace

Expected<Import> read_import(const std::string& path) {
  const Expected<std::string> text = read_text_file(path);
  if (!text) {
    return tl::unexpected<Faults>(text.error());
  }
  if (is_ibnetdiscover(*text)) {
    return as_import(parse_ibnetdiscover(*text));
  }
  if (is_nccl_topology(*text)) {
    return as_import(parse_nccl_topology(*text));
  }
  if (is_topo_matrix(*text)) {
    return as_import(parse_topo_matrix(*text));
  }
  return Import();
}

}  // namespace foretrain
