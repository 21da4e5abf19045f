#include <run_model/c_api.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <run_model/decode.h>
#include <run_model/dtype.h>
#include <run_model/error.h>
#include "bindings/session.h"
#include "runtime/devices/device_name.h"

using run_model::Error;
using run_model::ErrorKind;

// What the texts and shapes that were handed out lie in.
struct run_model_model {
  explicit run_model_model(const run_model::SessionOptions& options) : session(options) {}

  run_model::Session session;
  struct Described {
    std::string name;
    std::vector<std::int64_t> shape;
  };
  // By index; what was handed out stays where it is.
  std::map<std::size_t, Described> inputs, outputs;
  std::map<std::size_t, run_model::Tensor> views;
  std::string json;
};

namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

// Nothing that a function does may end in a caller that knows no exceptions.
template <typename Function>
int guarded(Function function) {
  try {
    function();
    return RUN_MODEL_OK;
  } catch (const Error& error) {
    last_error() = error.what();
    return 1 + static_cast<int>(error.kind());  // as the programs' exit codes
  } catch (const std::exception& error) {
    last_error() = error.what();
  } catch (...) {
    last_error() = "a compiled function threw something that is no exception of C++";
  }
  return RUN_MODEL_INTERNAL;
}

// Dereferences what the caller had to give.
template <typename T>
T& given(T* pointer, const char* what) {
  if (pointer == nullptr) throw Error(ErrorKind::kUsage, std::string(what) + " is a null pointer");
  return *pointer;
}

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

void check_index(std::size_t index, std::size_t count, const char* kind) {
  if (index < count) return;
  throw Error(ErrorKind::kUsage, "there is no " + std::string(kind) + " " + std::to_string(index) +
                                     ": the model has " + std::to_string(count));
}

run_model::Session& session_with_input(run_model_model* model, std::size_t index) {
  run_model::Session& session = given(model, "the model").session;
  check_index(index, session.executor().inputs().size(), "input");
  return session;
}

void describe(const run_model::TensorInfo& tensor, std::string name, std::size_t index,
              std::map<std::size_t, run_model_model::Described>& kept,
              run_model_tensor_info& info) {
  run_model_model::Described& described = kept[index];
  described = {std::move(name), tensor.shape};
  for (std::size_t i = 0; i < std::min(tensor.symbols.size(), tensor.shape.size()); ++i) {
    if (!tensor.symbols[i].empty()) described.shape[i] = -1;
  }
  info = {described.name.c_str(), described.shape.data(), static_cast<int>(tensor.shape.size()),
          tensor.dtype};
}

// What models say of bool, and DLPack since its release 0.7.
constexpr DLDataType kModelBool{kDLUInt, 1, 1};
constexpr DLDataType kDlpackBool{6, 8, 1};

// The tensor's numbers where they are, which the caller keeps.
run_model::Tensor borrowed(DLTensor tensor) {
  if (run_model::same_dtype(tensor.dtype, kDlpackBool)) tensor.dtype = kModelBool;
  DLManagedTensor managed{tensor, nullptr, nullptr};  // which what is made of it needs
  const run_model::Tensor seen = run_model::Tensor::from_dlpack(&managed);
  return run_model::Tensor::view(seen.data(), seen.shape(), seen.dtype(), nullptr);
}

void check_tensor(const DLTensor& tensor) {
  const bool has_shape = tensor.ndim == 0 || (tensor.ndim > 0 && tensor.shape != nullptr);
  if (has_shape && tensor.data != nullptr) return;
  throw Error(ErrorKind::kUsage, has_shape ? "the tensor's data is a null pointer"
                                           : "the tensor has " + std::to_string(tensor.ndim) +
                                                 " dimensions and no shape that says how long");
}

// A tensor that another framework handed over, once it is ours.
struct Received {
  Received() = default;
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;
  ~Received() {
    if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
  }
  DLManagedTensor* tensor = nullptr;
};

const run_model::GraphExecutor& executor_with_output(const run_model_model* model,
                                                     std::size_t index) {
  const run_model::GraphExecutor& executor = given(model, "the model").session.executor();
  check_index(index, executor.outputs().size(), "output");
  return executor;
}

}  // namespace

const char* run_model_version(void) { return RUN_MODEL_VERSION; }

const char* run_model_last_error(void) { return last_error().c_str(); }

int run_model_open(const char* name, const char* artifacts, const run_model_options* options,
                   run_model_model** model) {
  return guarded([&] {
    given(model, "the place for the model") = nullptr;
    const run_model_options chosen = options == nullptr ? run_model_options{} : *options;
    run_model::SessionOptions own;
    own.request.model = text_or_empty(name);
    own.request.artifacts = std::filesystem::path(&given(artifacts, "the path of the artifacts"));
    own.request.target = text_or_empty(chosen.target);
    own.request.verify = chosen.skip_checksums == 0;
    if (const std::string device = text_or_empty(chosen.device); !device.empty()) {
      own.devices = {run_model::parse_device_name(device)};
      // By which of an artifact's targets are chosen.
      own.request.device = run_model::device_type_name(own.devices[0].device_type).value_or("");
    }
    own.tasks = {text_or_empty(chosen.tasks), {}, text_or_empty(chosen.labels)};
    if (chosen.score_threshold != 0.0) own.tasks.score_threshold = chosen.score_threshold;
    own.threads = chosen.threads;
    *model = new run_model_model(own);
  });
}

void run_model_close(run_model_model* model) { delete model; }

int run_model_input_count(const run_model_model* model, size_t* count) {
  return guarded([&] {
    given(count, "the place for the count") =
        given(model, "the model").session.executor().inputs().size();
  });
}

int run_model_output_count(const run_model_model* model, size_t* count) {
  return guarded([&] {
    given(count, "the place for the count") =
        given(model, "the model").session.executor().outputs().size();
  });
}

int run_model_input_info(run_model_model* model, size_t index, run_model_tensor_info* info) {
  return guarded([&] {
    const run_model::TensorInfo& tensor =
        session_with_input(model, index).executor().inputs()[index];
    describe(tensor, tensor.name, index, model->inputs, given(info, "the place for the answer"));
  });
}

int run_model_output_info(run_model_model* model, size_t index, run_model_tensor_info* info) {
  return guarded([&] {
    describe(executor_with_output(model, index).outputs()[index], model->session.output_name(index),
             index, model->outputs, given(info, "the place for the answer"));
  });
}

int run_model_set_input(run_model_model* model, size_t index, const DLTensor* tensor) {
  return guarded([&] {
    run_model::Session& session = session_with_input(model, index);
    check_tensor(given(tensor, "the tensor"));
    session.executor().set_input(index, borrowed(*tensor));
  });
}

int run_model_share_input(run_model_model* model, size_t index, DLManagedTensor* tensor) {
  return guarded([&] {
    run_model::Session& session = session_with_input(model, index);
    check_tensor(given(tensor, "the tensor").dl_tensor);
    const run_model::Tensor seen = borrowed(tensor->dl_tensor);
    const auto owner = std::make_shared<Received>();
    session.executor().set_input_zero_copy(
        index, run_model::Tensor::view(seen.data(), seen.shape(), seen.dtype(), owner));
    owner->tensor = tensor;
  });
}

int run_model_load_pixels(const char* path, uint8_t** pixels, int* width, int* height) {
  return guarded([&] {
    given(pixels, "the place for the pixels") = nullptr;
    int& its_width = given(width, "the place for the width");
    int& its_height = given(height, "the place for the height");
    const std::string file = &given(path, "the path of the picture");
    const run_model::Image image = run_model::load_picture(file).image;
    *pixels = new std::uint8_t[image.byte_count()];
    std::copy_n(image.data(), image.byte_count(), *pixels);
    its_width = image.width();
    its_height = image.height();
  });
}

void run_model_free_pixels(uint8_t* pixels) { delete[] pixels; }

int run_model_set_region(run_model_model* model, const run_model_region* region) {
  return guarded([&] {
    std::optional<run_model::PictureRegion> own;
    if (region != nullptr) {
      own = {region->x, region->y, region->width, region->height, region->angle};
    }
    given(model, "the model").session.set_region(own);
  });
}

int run_model_set_picture(run_model_model* model, size_t index, const char* path, int width,
                          int height) {
  return guarded([&] {
    run_model::Session& session = session_with_input(model, index);
    const std::string file = &given(path, "the path of the picture");
    session.set_picture(index, run_model::load_picture(file).image, width, height);
  });
}

int run_model_set_pixels(run_model_model* model, size_t index, const uint8_t* pixels,
                         int pixels_width, int pixels_height, int width, int height) {
  return guarded([&] {
    run_model::Session& session = session_with_input(model, index);
    const std::uint8_t* first = &given(pixels, "the pixels");
    run_model::Image image(pixels_width, pixels_height);
    std::copy_n(first, image.byte_count(), image.data());
    session.set_picture(index, image, width, height);
  });
}

int run_model_run(run_model_model* model) {
  return guarded([&] { given(model, "the model").session.run(); });
}

int run_model_output(run_model_model* model, size_t index, DLTensor* view) {
  return guarded([&] {
    const run_model::GraphExecutor& executor = executor_with_output(model, index);
    DLTensor& answer = given(view, "the place for the view");
    run_model::Tensor& kept = model->views[index];
    kept = executor.output(index);
    answer = kept.dl_tensor();
  });
}

int run_model_share_output(run_model_model* model, size_t index, DLManagedTensor** tensor) {
  return guarded([&] {
    given(tensor, "the place for the tensor") = nullptr;
    const run_model::GraphExecutor& executor = executor_with_output(model, index);
    const run_model::Tensor output = executor.output(index);
    // What a GPU's driver gave may only be given back while it does nothing else.
    *tensor = (executor.devices().empty() ? output : output.clone()).to_dlpack();
  });
}

int run_model_results(run_model_model* model, size_t classes, const char** json) {
  return guarded([&] {
    given(json, "the place for the text") = nullptr;
    model->json = given(model, "the model").session.results(classes);
    *json = model->json.c_str();
  });
}

int run_model_regions(run_model_model* model, const run_model_model* detector, const char** json) {
  return guarded([&] {
    given(json, "the place for the text") = nullptr;
    const run_model::Session& follower = given(model, "the model").session;
    model->json = given(detector, "the detector").session.regions_for(follower);
    *json = model->json.c_str();
  });
}
