// metadata.json: what the compiler knew about an artifact, schema version 1.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/preprocessing.h>
#include <run_model/task.h>

namespace run_model {

inline constexpr int kMetadataSchema = 1;

struct MetadataTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // -1 for a dimension that may be any number
  DLDataType dtype{};
  std::string layout;  // as layout_name() has it; empty where it does not apply
  // value = scale * (stored - zero_point), for integer outputs of quantised networks.
  double scale = 1.0;
  std::int64_t zero_point = 0;
};

struct MetadataFile {
  std::uint64_t bytes = 0;
  std::string sha256;                    // 64 hex digits, or empty
  std::optional<std::uint64_t> xxh3_64;  // XXH3 with seed 0
};

struct Metadata {
  std::string model;
  std::string target_name;  // "native"
  std::string target;       // "llvm -mcpu=…": TVM's full target string
  std::string machine;      // as `uname -m` says: "x86_64", "aarch64", "armv7l", "riscv64"
  // What the code needs of the CPU, by LLVM's names; nothing where the compiler did not say.
  std::optional<std::vector<std::string>> features;
  std::string device;  // "opencl", "vulkan", "cuda": the GPU's interface; empty for the CPU
  std::string tvm_version;
  // Of the ONNX or TensorFlow Lite file that was compiled: 64 hex digits, or empty.
  std::string source_sha256;
  std::vector<MetadataTensor> inputs;
  std::vector<MetadataTensor> outputs;
  std::optional<Preprocessing> preprocessing;
  std::vector<Task> tasks;                    // what the outputs mean; empty where nothing says
  std::map<std::string, MetadataFile> files;  // by file name
};

// Only schema_version is required, so that a few lines written by hand are enough for an artifact
// that was compiled elsewhere; whatever is present must be right, and inside "preprocessing"
// and "tasks" nothing may be missing or unknown, because a guess there gives wrong answers. Throws
// Error(kFile), Error(kFormat) for malformed content, Error(kIncompatible) for another schema
// version.
Metadata read_metadata(const std::filesystem::path& path);

// The same from memory; `name` stands for the file in messages.
Metadata parse_metadata(std::string_view text, const std::string& name);

}  // namespace run_model
