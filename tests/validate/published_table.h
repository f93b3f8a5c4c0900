#pragma once

#include "sim/scenario/json_value.h"
#include "sim/validate/published_row.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain::test {

/// The rows of a shipped table.
inline const std::vector<PublishedRow>& shipped_rows(const std::string& name) {
  static std::map<std::string, std::vector<PublishedRow>> tables;
  std::vector<PublishedRow>& rows = tables[name];
  if (rows.empty()) {
    const std::string path =
        std::string(FORETRAIN_SOURCE_DIR) + "/scenarios/published/" + name + ".csv";
    rows = *published_rows(*parse_csv(*read_text_file(path)));
  }
  return rows;
}

inline const PublishedRow& shipped_row(const std::string& id) {
  for (const PublishedRow& row : shipped_rows("published")) {
    if (row.id == id) {
      return row;
    }
  }
  ADD_FAILURE() << "no row " << id;
  return shipped_rows("published").front();
}

}  // namespace foretrain::test
