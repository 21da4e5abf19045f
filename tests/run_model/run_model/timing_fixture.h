// Statistics by NumPy and SciPy, see scripts/make_timing_fixtures.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>

namespace run_model {

inline nlohmann::json timing_fixture() {
  std::ifstream file(TIMING_FIXTURE);
  return nlohmann::json::parse(file);
}

}  // namespace run_model
