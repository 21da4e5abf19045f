// What a SPIR-V shader needs and touches, read within bounds before a driver sees it: drivers
// follow a shader's words blindly.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace run_model {

// A buffer that a shader declares in descriptor set 0.
struct ShaderBinding {
  bool uniform = false;  // else a storage buffer
  bool written = false;  // or nobody can tell
};

// A number in the block of scalars: push constants or a uniform buffer.
struct ShaderScalar {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;  // 0 where it is no number
};

struct ShaderFacts {
  std::uint32_t major = 0, minor = 0;  // of SPIR-V
  std::vector<std::uint32_t> capabilities;
  std::vector<std::string> extensions;
  std::array<std::uint32_t, 3> threads{};  // of a group
  std::uint64_t shared_bytes = 0;          // of a group, packed as tightly as can be
  std::map<std::uint32_t, ShaderBinding> bindings;
  bool has_push_constants = false;
  std::vector<ShaderScalar> scalars;  // of the push constants, or of the uniform buffer
};

// The facts of the entry point `kernel`. Throws Error(kFormat) for words that are no well-formed
// module for compute, and Error(kIncompatible) for one that wants what compiled code never does:
// images, buffers in other sets, a group size that is left open.
ShaderFacts read_shader(std::span<const std::uint32_t> words, const std::string& kernel);

}  // namespace run_model
