#include "runtime/devices/opencl/program.h"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

// Of a compiler's log, which may fill pages.
constexpr std::size_t kShownLog = 600;

}  // namespace

OpenClProgram::OpenClProgram(const OpenClQueue& queue, const DeviceInfo& device,
                             const std::string& kernel, std::string_view source,
                             const CodeCache* disk)
    : queue_(queue) {
  if (disk == nullptr) {
    build(kernel, source);
    return;
  }
  const std::string key = CodeCache::key({"opencl", device.driver, device.name, source});
  if (load(*disk, key)) return;
  build(kernel, source);
  keep(*disk, key);
}

OpenClProgram::~OpenClProgram() { release(); }

void OpenClProgram::release() {
  if (program_ != nullptr) queue_.api.clReleaseProgram(std::exchange(program_, nullptr));
}

bool OpenClProgram::load(const CodeCache& disk, const std::string& key) {
  const std::optional<std::vector<std::byte>> kept = disk.find(key);
  if (!kept || kept->empty()) return false;
  const std::size_t size = kept->size();
  const auto* bytes = reinterpret_cast<const unsigned char*>(kept->data());
  cl_int of_binary = CL_SUCCESS;
  cl_int status = CL_SUCCESS;
  program_ = queue_.api.clCreateProgramWithBinary(queue_.context(), 1, &queue_.device, &size,
                                                  &bytes, &of_binary, &status);
  if (status == CL_SUCCESS && of_binary == CL_SUCCESS &&
      queue_.api.clBuildProgram(program_, 1, &queue_.device, "", nullptr, nullptr) == CL_SUCCESS) {
    return true;
  }
  release();
  return false;
}

void OpenClProgram::build(const std::string& kernel, std::string_view source) {
  const char* text = source.data();
  const std::size_t size = source.size();
  cl_int status = CL_SUCCESS;
  program_ = queue_.api.clCreateProgramWithSource(queue_.context(), 1, &text, &size, &status);
  queue_.check(status, "taking the source of kernel " + in_quotes(kernel));
  status = queue_.api.clBuildProgram(program_, 1, &queue_.device, "", nullptr, nullptr);
  if (status == CL_SUCCESS) return;
  const std::string said = log();
  release();
  // Compilers say it in many ways, or nothing.
  const std::string missing = missing_extension(source);
  if (!missing.empty()) {
    throw Error(ErrorKind::kIncompatible,
                "device " + queue_.name + " has no " + missing + ", which kernel " +
                    in_quotes(kernel) + " needs",
                missing == "cl_khr_fp16" ? "take another device, or the model in float32"
                                         : "take another device");
  }
  throw Error(ErrorKind::kIncompatible, "device " + queue_.name + " cannot compile kernel " +
                                            in_quotes(kernel) + " (" + opencl_error_name(status) +
                                            "): " + said);
}

std::string OpenClProgram::missing_extension(std::string_view source) const {
  constexpr std::string_view kPragma = "#pragma OPENCL EXTENSION ";
  std::size_t size = 0;
  cl_int status =
      queue_.api.clGetDeviceInfo(queue_.device, CL_DEVICE_EXTENSIONS, 0, nullptr, &size);
  std::string known(size, '\0');
  if (status == CL_SUCCESS) {
    status = queue_.api.clGetDeviceInfo(queue_.device, CL_DEVICE_EXTENSIONS, size, known.data(),
                                        nullptr);
  }
  if (status != CL_SUCCESS) return "";
  for (std::size_t at = source.find(kPragma); at != std::string_view::npos;
       at = source.find(kPragma, at + 1)) {
    const std::string_view rest = source.substr(at + kPragma.size());
    const std::string_view name = rest.substr(0, rest.find_first_of(" :\n"));
    // A device of OpenCL 1.2 has what was an extension of 1.0, named or not.
    if (name.starts_with("cl_khr_") && known.find(name) == std::string::npos) {
      return std::string(name);
    }
  }
  return "";
}

void OpenClProgram::keep(const CodeCache& disk, const std::string& key) const {
  std::size_t size = 0;
  cl_int status =
      queue_.api.clGetProgramInfo(program_, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr);
  if (status != CL_SUCCESS || size == 0) return;
  std::vector<unsigned char> bytes(size);
  unsigned char* place = bytes.data();
  status =
      queue_.api.clGetProgramInfo(program_, CL_PROGRAM_BINARIES, sizeof(place), &place, nullptr);
  if (status == CL_SUCCESS) disk.keep(key, std::as_bytes(std::span(bytes)));
}

std::string OpenClProgram::log() const {
  std::size_t size = 0;
  queue_.api.clGetProgramBuildInfo(program_, queue_.device, CL_PROGRAM_BUILD_LOG, 0, nullptr,
                                   &size);
  std::string text(size, '\0');
  if (size != 0) {
    queue_.api.clGetProgramBuildInfo(program_, queue_.device, CL_PROGRAM_BUILD_LOG, size,
                                     text.data(), nullptr);
  }
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
  if (text.size() > kShownLog) text = text.substr(0, kShownLog) + " …";
  return text.empty() ? "the compiler says nothing" : text;
}

}  // namespace run_model
