// Sweeps over damaged files damage a file at every damage_stride()-th byte.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>

namespace run_model {

// 1, or what RUN_MODEL_DAMAGE_EVERY says: 3 in the quick tests and in `scripts/test.sh --all`.
inline std::size_t damage_stride() {
  const char* every = std::getenv("RUN_MODEL_DAMAGE_EVERY");
  return every == nullptr ? 1 : std::stoul(every);
}

}  // namespace run_model
