// A program of OpenCL C, built: from what the driver made of it at an earlier start where that was
// kept.
#pragma once

#include <string>
#include <string_view>

#include "runtime/devices/code/code_cache.h"
#include "runtime/devices/device.h"
#include "runtime/devices/opencl/queue.h"

namespace run_model {

// Released with its owner; kernels keep what they need of it.
class OpenClProgram {
 public:
  // `source` is that of one kernel; `disk` may be null. Throws Error(kIncompatible) with the
  // beginning of the compiler's log where the driver refuses the source, or the extension that it
  // lacks for it.
  OpenClProgram(const OpenClQueue& queue, const DeviceInfo& device, const std::string& kernel,
                std::string_view source, const CodeCache* disk);
  ~OpenClProgram();
  OpenClProgram(const OpenClProgram&) = delete;
  OpenClProgram& operator=(const OpenClProgram&) = delete;

  cl_program get() const { return program_; }

 private:
  // False where there is none, or where the driver does not take it.
  bool load(const CodeCache& disk, const std::string& key);
  void build(const std::string& kernel, std::string_view source);
  void keep(const CodeCache& disk, const std::string& key) const;
  void release();
  std::string log() const;
  // The first extension that the source asks for and the device has not; empty without any.
  std::string missing_extension(std::string_view source) const;

  const OpenClQueue& queue_;
  cl_program program_ = nullptr;
};

}  // namespace run_model
