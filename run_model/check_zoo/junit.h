// check_zoo's report as JUnit XML, which build servers read: a test suite for each artifact, a test
// case for each picture.
// Format: https://github.com/testmoapp/junitxml
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "run_model/check_zoo/table.h"

namespace run_model {

std::string zoo_junit(const std::vector<JobResult>& jobs, double seconds,
                      const RepeatCommand& repeat);

// `text` for an attribute or element: markup is escaped, and what XML 1.0 cannot hold (control
// characters, bytes that are no UTF-8) becomes "?".
std::string xml_escaped(std::string_view text);

}  // namespace run_model
