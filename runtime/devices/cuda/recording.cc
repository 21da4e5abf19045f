#include "runtime/devices/cuda/recording.h"

#include <utility>

#include <run_model/error.h>

namespace run_model::cuda {
namespace {

class CudaRecording final : public DeviceRecording {
 public:
  CudaRecording(std::shared_ptr<GpuContext> gpu, GraphExec exec)
      : gpu_(std::move(gpu)), exec_(exec) {}
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  ~CudaRecording() override {
    try {
      const CurrentContext current(*gpu_);
      gpu_->api().graph_exec_destroy(exec_);
    } catch (const Error&) {
      // The device was lost, and the graph with it.
    }
  }

  void replay() override {
    const CurrentContext current(*gpu_);
    gpu_->check(gpu_->api().graph_launch(exec_, gpu_->stream()), "starting recorded work");
  }

 private:
  std::shared_ptr<GpuContext> gpu_;
  GraphExec exec_;
};

// Ends the capture whatever happens, since the stream can do nothing else before.
Graph capture(GpuContext& gpu, const std::function<void()>& work) {
  const Api& api = gpu.api();
  gpu.check(api.capture_begin(gpu.stream(), kCaptureThreadLocal), "recording work");
  Graph graph = nullptr;
  try {
    work();
  } catch (...) {
    if (api.capture_end(gpu.stream(), &graph) == kSuccess && graph != nullptr) {
      api.graph_destroy(graph);
    }
    throw;
  }
  gpu.check(api.capture_end(gpu.stream(), &graph), "recording work");
  return graph;
}

}  // namespace

std::unique_ptr<DeviceRecording> record(const std::shared_ptr<GpuContext>& gpu,
                                        const std::function<void()>& work) {
  const Api& api = gpu->api();
  if (api.graph_instantiate == nullptr) return nullptr;
  Graph graph = capture(*gpu, work);
  GraphExec exec = nullptr;
  const Result result = api.graph_instantiate(&exec, graph, 0);
  api.graph_destroy(graph);
  gpu->check(result, "preparing recorded work");
  return std::make_unique<CudaRecording>(gpu, exec);
}

}  // namespace run_model::cuda
