// The pieces that the executor reads. Whatever is accepted is run as well: the run must be
// memory-safe (the asan preset sees to that), and its result must follow from what was read.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include <run_model/graph.h>
#include <run_model/graph_executor.h>
#include "runtime/loading/device_blob.h"
#include "runtime/loading/params_file.h"
#include "runtime/memory/storage_plan.h"
#include "tests/corruption/damage.h"
#include "tests/corruption/small_model.h"
#include "tests/corruption/sweep.h"
#include "tests/runtime/devices/test_code.h"

namespace run_model::corruption {
namespace {

class ModelSweep : public testing::Test {
 protected:
  ModelSweep() {
    files_.library = CORRUPTION_MODEL;
    files_.graph = folder_.write("model.json", small_graph().dump());
    files_.params = folder_.write("model.params", small_params());
    pool_ = std::make_shared<ThreadPool>(ThreadPoolOptions{.threads = 1});
    keep_loaded_ = std::make_unique<GraphExecutor>(files_, ExecutorOptions{pool_});
  }

  // Loads the model as it stands and runs it on kX. Inputs of another shape get zeros.
  void load_and_run(std::vector<Floats>* outputs = nullptr) {
    GraphExecutor model(files_, {pool_});
    if (model.memory().activations > 1 << 20) return;  // a graph may ask for that much
    for (std::size_t i = 0; i < model.inputs().size(); ++i) {
      Tensor input = model.input(i);
      std::memset(input.data(), 0, input.nbytes());
      std::memcpy(input.data(), kX.data(), std::min(input.nbytes(), sizeof(kX)));
    }
    model.run();
    for (std::size_t i = 0; i < model.outputs().size(); ++i) {
      Tensor output = model.output(i).clone();
      if (outputs == nullptr) continue;
      ASSERT_EQ(output.nbytes(), sizeof(Floats));
      std::memcpy(outputs->emplace_back().data(), output.data(), sizeof(Floats));
    }
  }

  TemporaryFolder folder_;
  ModelFiles files_;
  std::shared_ptr<ThreadPool> pool_;
  std::unique_ptr<GraphExecutor> keep_loaded_;  // so that the library is loaded once only
};

Floats floats_of(const Param& param) {
  Floats values;
  EXPECT_EQ(param.data.size(), sizeof(values)) << param.name;
  std::memcpy(values.data(), param.data.data(), sizeof(values));
  return values;
}

TEST_F(ModelSweep, UndamagedModelRuns) {
  std::vector<Floats> outputs;
  load_and_run(&outputs);
  EXPECT_EQ(outputs, (std::vector<Floats>{{2, -6, -3, 4}, {12, 14, 27, 44}}));
}

// A parameters file has no checksum of its own, so that damaged weights pass; but nothing else
// does: what the executor computes with must be what the file says for exactly these two tensors.
TEST_F(ModelSweep, Params) {
  Sweep sweep({ErrorKind::kFormat, ErrorKind::kMismatch}, "model.params");
  std::size_t damaged_weights = 0;
  for_each_damage(small_params(), [&](const std::string& how, const std::string& bytes) {
    replace_file(files_.params, bytes);
    std::vector<Floats> outputs;
    if (!sweep.accepts(how, [&] { load_and_run(&outputs); })) return;
    SCOPED_TRACE(how);
    Floats w{}, b{};
    std::size_t found = 0;
    for (const Param& param : parse_params(std::as_bytes(std::span(bytes)), "model.params")) {
      (param.name == "w" ? w : b) = floats_of(param);
      found += param.name == "w" || param.name == "b";
    }
    ASSERT_EQ(found, 2u);
    damaged_weights += w != kW || b != kB;
    ASSERT_EQ(outputs.size(), 2u);
    for (std::size_t i = 0; i < kX.size(); ++i) {
      float product = kX[i] * w[i];
      float sum = product + b[i];
      // By their bits: a damaged weight may be a NaN.
      EXPECT_EQ(std::memcmp(&outputs[0][i], &product, sizeof(float)), 0);
      EXPECT_TRUE(std::memcmp(&outputs[1][i], &sum, sizeof(float)) == 0 ||
                  (std::isnan(outputs[1][i]) && std::isnan(sum)));
    }
  });
  EXPECT_GT(damaged_weights, 0u);
}

TEST_F(ModelSweep, GraphText) {
  Sweep sweep(
      {ErrorKind::kFormat, ErrorKind::kIncompatible, ErrorKind::kMismatch, ErrorKind::kModel}, "");
  for_each_damage(small_graph().dump(), [&](const std::string& how, const std::string& text) {
    replace_file(files_.graph, text);
    sweep.accepts(how, [&] { load_and_run(); });
  });
}

TEST_F(ModelSweep, GraphValues) {
  Sweep sweep(
      {ErrorKind::kFormat, ErrorKind::kIncompatible, ErrorKind::kMismatch, ErrorKind::kModel}, "");
  for_each_json_change(small_graph(), [&](const std::string& how, const std::string& text) {
    replace_file(files_.graph, text);
    sweep.accepts(how, [&] { load_and_run(); });
  });
}

// What parse_graph and plan_storage refuse names the file.
TEST(GraphSweep, MessagesNameTheFile) {
  Sweep sweep({ErrorKind::kFormat, ErrorKind::kIncompatible}, "model.json");
  auto read = [&](const std::string& how, const std::string& text) {
    sweep.accepts(how, [&] { plan_storage(parse_graph(text, "'model.json'"), "'model.json'"); });
  };
  for_each_damage(small_graph().dump(), read);
  for_each_json_change(small_graph(), read);
}

TEST(DeviceBlobSweep, EveryByte) {
  std::string blob = small_device_blob();
  ASSERT_TRUE(read_device_blob(std::as_bytes(std::span(blob)), "'model.so'").graph);
  Sweep sweep({ErrorKind::kFormat, ErrorKind::kIncompatible}, "model.so");
  for_each_damage(blob, [&](const std::string& how, const std::string& bytes) {
    sweep.accepts(how, [&] {
      auto embedded = read_device_blob(std::as_bytes(std::span(bytes)), "'model.so'").graph;
      if (!embedded) return;
      plan_storage(parse_graph(embedded->graph_json, "'model.so'"), "'model.so'");
    });
  });
}

// What is accepted, drivers get: each kernel has its code, in its piece or as whole instructions.
TEST(DeviceCodeSweep, EveryByte) {
  using namespace testing_code;  // NOLINT(google-build-using-namespace)
  const TestKernel kernel = add_kernel();
  const std::vector<std::string> modules = {
      text("opencl") + opencl_module({kernel}, opencl_source(kernel.name)),
      text("cuda") + cuda_module({kernel}, ptx_source(kernel.name), "ptx"),
      text("vulkan") + vulkan_module({kernel}, {shader(kernel.name, 0, spirv(kernel.name))})};
  for (const std::string& module : modules) {
    const std::string blob = blob_of({text("_lib"), module});
    ASSERT_EQ(read_device_blob(std::as_bytes(std::span(blob)), "'model.so'").codes.size(), 1u);
    Sweep sweep({ErrorKind::kFormat, ErrorKind::kIncompatible}, "model.so");
    for_each_damage(blob, [&](const std::string& how, const std::string& bytes) {
      DeviceBlob parsed;
      if (!sweep.accepts(how, [&] {
            parsed = read_device_blob(std::as_bytes(std::span(bytes)), "'model.so'");
          })) {
        return;
      }
      SCOPED_TRACE(how);
      for (const auto& code : parsed.codes) {
        for (const KernelInfo& info : code->kernels) {
          EXPECT_NE(code->data.find(info.name) != std::string::npos,
                    code->shaders.size() == 1 && code->shaders[0].kernel == info.name);
          EXPECT_LE(info.argument_types.size(), kernel.arguments.size());
        }
      }
    });
  }
}

}  // namespace
}  // namespace run_model::corruption
