// TVM's own runtime, as the benches run it:
//   trial_tvm RUNS WARM_UP_RUNS LIBTVM_RUNTIME ARTIFACT_FOLDER INPUT_NAME...  one trial
//                                                                             (trial.h)
//   trial_tvm serve INPUT OUTPUT LIBTVM_RUNTIME ARTIFACT_FOLDER INPUT_NAME...  asked over a
//                                                                            pipe (serve.h)
// Loads as TVM's C++ deployment example does: library, graph and parameters read into strings. A
// graph for a GPU gets its inputs from memory of the CPU and gives its output back there in every
// run, as this project's executor does.
#include <cstddef>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "bench/serve.h"
#include "bench/trial.h"
#include "bench/tvm_c_api.h"

namespace run_model::bench {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A parameter blob as the C API takes it (TVMByteArray).
struct ByteArray {
  const char* data;
  std::size_t size;
};

std::span<std::byte> bytes_of(const DLTensor* tensor) {
  std::size_t count = tensor->dtype.bits / 8;
  for (int i = 0; i < tensor->ndim; ++i) count *= static_cast<std::size_t>(tensor->shape[i]);
  return {static_cast<std::byte*>(tensor->data) + tensor->byte_offset, count};
}

class TvmSubject {
 public:
  explicit TvmSubject(const std::vector<std::string>& arguments)
      : tvm_(arguments.at(0)),
        folder_(arguments.at(1)),
        inputs_(arguments.begin() + 2, arguments.end()) {}

  void load() {
    TvmRuntime::Handle library = tvm_.load_module(folder_ + "/model.so");
    std::string graph = read_file(folder_ + "/model.json");
    PackedValue values[4];
    values[0].v_str = graph.c_str();
    values[1].v_handle = library;
    // Of each tensor; one device computes the whole graph.
    device_ = nlohmann::json::parse(graph).at("attrs").at("device_index").at(1).at(0);
    values[2].v_int64 = device_;
    values[3].v_int64 = 0;
    int codes[] = {kTypeString, kTypeModuleHandle, kTypeInt, kTypeInt};
    executor_ =
        tvm_.call(tvm_.global_function("tvm.graph_executor.create"), values, codes, 4).v_handle;
    run_ = tvm_.module_function(executor_, "run");

    std::string params = read_file(folder_ + "/model.params");
    ByteArray bytes{params.data(), params.size()};
    PackedValue value;
    value.v_handle = &bytes;
    int code = kTypeBytes;
    tvm_.call(tvm_.module_function(executor_, "load_params"), &value, &code, 1);
    if (device_ != kDLCPU) make_host_sides();
  }

  std::vector<std::span<std::byte>> inputs() {
    std::vector<std::span<std::byte>> found;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      found.push_back(device_ == kDLCPU ? bytes_of(input(inputs_[i])) : std::span(host_inputs_[i]));
    }
    return found;
  }

  void run() {
    for (std::size_t i = 0; i < host_inputs_.size(); ++i) {
      copy("set_input", inputs_[i], *input(inputs_[i]), host_inputs_[i]);
    }
    tvm_.call(run_);
    if (device_ != kDLCPU) copy("get_output", 0, *output_tensor(), host_output_);
  }

  std::vector<float> output() {
    const DLTensor* tensor = output_tensor();
    if (tensor->dtype.code != kDLFloat || tensor->dtype.bits != 32) {
      throw std::runtime_error("its first output is not of float32");
    }
    std::span<std::byte> bytes = device_ == kDLCPU ? bytes_of(tensor) : std::span(host_output_);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::string extra_json() const { return ""; }

 private:
  // A returned NDArray's handle is a pointer to its DLTensor. The reference is kept for good.
  static const DLTensor* tensor_of(PackedValue array) {
    return static_cast<const DLTensor*>(array.v_handle);
  }

  const DLTensor* input(const std::string& input_name) {
    PackedValue name;
    name.v_str = input_name.c_str();
    int code = kTypeString;
    return tensor_of(tvm_.call(tvm_.module_function(executor_, "get_input"), &name, &code, 1));
  }

  const DLTensor* output_tensor() {
    PackedValue index;
    index.v_int64 = 0;
    int code = kTypeInt;
    return tensor_of(tvm_.call(tvm_.module_function(executor_, "get_output"), &index, &code, 1));
  }

  void make_host_sides() {
    for (const std::string& name : inputs_) host_inputs_.emplace_back(bytes_of(input(name)).size());
    host_output_.resize(bytes_of(output_tensor()).size());
  }

  // Between the executor's tensor `which`, which is like `like`, and `bytes` on the CPU.
  template <typename Which>
  void copy(const char* function, const Which& which, DLTensor like, std::span<std::byte> bytes) {
    like.data = bytes.data();
    like.byte_offset = 0;
    like.device = {kDLCPU, 0};
    PackedValue values[2];
    int codes[] = {kTypeInt, kTypeTensorHandle};
    if constexpr (std::is_same_v<Which, std::string>) {
      values[0].v_str = which.c_str();
      codes[0] = kTypeString;
    } else {
      values[0].v_int64 = which;
    }
    values[1].v_handle = &like;
    tvm_.call(tvm_.module_function(executor_, function), values, codes, 2);
  }

  TvmRuntime tvm_;
  std::string folder_;
  std::vector<std::string> inputs_;
  int device_ = kDLCPU;
  TvmRuntime::Handle executor_ = nullptr;
  TvmRuntime::Handle run_ = nullptr;
  // Of models that a GPU computes.
  std::vector<std::vector<std::byte>> host_inputs_;
  std::vector<std::byte> host_output_;
};

}  // namespace
}  // namespace run_model::bench

int main(int argc, char** argv) {
  using namespace run_model::bench;
  return is_serve(argc, argv) ? serve_main<TvmSubject>(argc, argv)
                              : trial_main<TvmSubject>(argc, argv);
}
