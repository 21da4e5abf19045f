// TVM's own Relax virtual machine, as the benches run it:
//   trial_tvm_relax RUNS WARM_UP_RUNS LIBTVM_FFI LIBTVM_RUNTIME SHAPE ARTIFACT_FOLDER INPUT_NAME
// one trial (trial.h) of a model with one input of float32, SHAPE as in 1x3x224x224. By dlopen and
// with our own declarations of tvm-ffi's C ABI, so that the bench needs no headers of TVM.
#include <dlfcn.h>
#include <dlpack/dlpack.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/trial.h"
#include "runtime/relax/ffi_abi.h"

namespace run_model::bench {
namespace {

struct ByteArray {
  const char* data;
  std::size_t size;
};

void* open_library(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return library;
}

class TvmFfi {
 public:
  TvmFfi(const std::string& ffi, const std::string& runtime) {
    void* library = open_library(ffi);
    open_library(runtime);
    find(library, "TVMFFIFunctionGetGlobal", get_global_);
    find(library, "TVMFFIFunctionCall", call_);
    find(library, "TVMFFIObjectDecRef", drop_);
    find(library, "TVMFFITensorFromDLPack", from_dlpack_);
    find(library, "TVMFFIErrorMoveFromRaised", take_error_);
  }

  FfiObject* global(const std::string& name) const {
    const ByteArray bytes{name.data(), name.size()};
    void* function = nullptr;
    check(get_global_(&bytes, &function));
    if (function == nullptr) throw std::runtime_error("TVM has no function " + name);
    return static_cast<FfiObject*>(function);
  }

  FfiAny call(FfiObject* function, std::vector<FfiAny> arguments = {}) const {
    FfiAny result;
    check(call_(function, arguments.data(), static_cast<std::int32_t>(arguments.size()), &result));
    return result;
  }

  FfiAny tensor(DLManagedTensor* managed) const {
    void* object = nullptr;
    check(from_dlpack_(managed, 64, 1, &object));
    FfiAny any;
    any.type = kFfiTensor;
    any.pointer = object;
    return any;
  }

  void drop(const FfiAny& any) const {
    if (any.type >= kFfiObjects) drop_(any.pointer);
  }

 private:
  template <typename Function>
  static void find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(std::string("libtvm_ffi lacks ") + name);
  }

  // An error is an object: behind its head two texts, its kind and what it says.
  void check(int status) const {
    if (status == 0) return;
    void* error = nullptr;
    take_error_(&error);
    if (error == nullptr) throw std::runtime_error("TVM failed and says nothing");
    const auto* texts = reinterpret_cast<const ByteArray*>(static_cast<FfiObject*>(error) + 1);
    throw std::runtime_error(std::string(texts[1].data, texts[1].size));
  }

  int (*get_global_)(const ByteArray* name, void** function) = nullptr;
  int (*call_)(void* function, FfiAny* args, std::int32_t count, FfiAny* result) = nullptr;
  int (*drop_)(void* object) = nullptr;
  int (*from_dlpack_)(DLManagedTensor* from, std::int32_t alignment, std::int32_t contiguous,
                      void** object) = nullptr;
  void (*take_error_)(void** error) = nullptr;
};

FfiAny text(const std::string& value) {
  FfiAny any;
  any.type = kFfiRawText;
  any.pointer = const_cast<char*>(value.c_str());
  return any;
}

FfiAny number(std::int64_t value, FfiType type = kFfiInt) {
  FfiAny any;
  any.type = type;
  any.integer = value;
  return any;
}

std::vector<std::int64_t> shape_of(const std::string& text) {
  std::vector<std::int64_t> shape;
  std::istringstream stream(text);
  for (std::string dim; std::getline(stream, dim, 'x');) shape.push_back(std::stoll(dim));
  return shape;
}

class TvmRelaxSubject {
 public:
  explicit TvmRelaxSubject(const std::vector<std::string>& arguments)
      : tvm_(arguments.at(0), arguments.at(1)),
        shape_(shape_of(arguments.at(2))),
        library_(arguments.at(3) + "/model.so") {}

  void load() {
    const FfiAny library = tvm_.call(tvm_.global("ffi.ModuleLoadFromFile"), {text(library_)});
    const FfiAny machine = tvm_.call(function_of(library, "vm_load_executable"));
    // The CPU, its number, and memory that is kept for later runs.
    tvm_.call(function_of(machine, "vm_initialization"), {number(kDLCPU), number(0), number(2)});
    main_ = function_of(machine, "main");
    std::size_t count = 1;
    for (const std::int64_t dim : shape_) count *= static_cast<std::size_t>(dim);
    // The size of an aligned block is a multiple of the alignment.
    constexpr std::size_t kAlignment = 64;
    bytes_ = count * sizeof(float);
    data_ = std::aligned_alloc(kAlignment, (bytes_ + kAlignment - 1) / kAlignment * kAlignment);
    managed_.dl_tensor = {data_,
                          {kDLCPU, 0},
                          static_cast<int>(shape_.size()),
                          {kDLFloat, 32, 1},
                          shape_.data(),
                          nullptr,
                          0};
    input_ = tvm_.tensor(&managed_);
  }

  std::vector<std::span<std::byte>> inputs() { return {{static_cast<std::byte*>(data_), bytes_}}; }

  void run() {
    tvm_.drop(std::exchange(result_, FfiAny()));
    result_ = tvm_.call(main_, {input_});
  }

  std::vector<float> output() {
    FfiAny first = result_;
    if (first.type == kFfiArray) {
      first = tvm_.call(tvm_.global("ffi.ArrayGetItem"), {result_, number(0)});
    }
    const auto& tensor = *reinterpret_cast<const DLTensor*>(first.object + 1);
    if (tensor.dtype.code != kDLFloat || tensor.dtype.bits != 32) {
      throw std::runtime_error("its first output is not of float32");
    }
    std::size_t count = 1;
    for (int i = 0; i < tensor.ndim; ++i) count *= static_cast<std::size_t>(tensor.shape[i]);
    const auto* values =
        reinterpret_cast<const float*>(static_cast<const char*>(tensor.data) + tensor.byte_offset);
    return {values, values + count};
  }

  std::string extra_json() const { return ""; }

 private:
  FfiObject* function_of(const FfiAny& module, const std::string& name) const {
    const FfiAny found =
        tvm_.call(tvm_.global("ffi.ModuleGetFunction"), {module, text(name), number(1, kFfiBool)});
    if (found.type != kFfiFunction) throw std::runtime_error("no function " + name);
    return found.object;
  }

  TvmFfi tvm_;
  std::vector<std::int64_t> shape_;
  std::string library_;
  FfiObject* main_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  DLManagedTensor managed_{};
  FfiAny input_;
  FfiAny result_;
};

}  // namespace
}  // namespace run_model::bench

int main(int argc, char** argv) {
  return run_model::bench::trial_main<run_model::bench::TvmRelaxSubject>(argc, argv);
}
