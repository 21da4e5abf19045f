#include "runtime/devices/cuda/stream.h"

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

std::uint64_t Marks::mark() {
  if (in_use_ == events_.size()) {
    Event event = nullptr;
    gpu_.check(gpu_.api().event_create(&event, 0), "making an event");
    events_.push_back(event);
  }
  gpu_.check(gpu_.api().event_record(events_[in_use_], gpu_.stream()), "recording an event");
  return forgotten_ + in_use_++;
}

Event Marks::event(std::uint64_t mark) const {
  if (mark < forgotten_ || mark - forgotten_ >= in_use_) {
    throw Error(ErrorKind::kInternal, "a time was asked for that was forgotten");
  }
  return events_[static_cast<std::size_t>(mark - forgotten_)];
}

double Marks::seconds_between(std::uint64_t first, std::uint64_t second) {
  constexpr double kMillisecondsPerSecond = 1000;
  Event begin = event(first);
  Event end = event(second);
  gpu_.wait();
  float milliseconds = 0;
  gpu_.check(gpu_.api().event_elapsed(&milliseconds, begin, end), "taking the time");
  return static_cast<double>(milliseconds) / kMillisecondsPerSecond;
}

void Marks::forget() {
  forgotten_ += in_use_;
  in_use_ = 0;
}

void Marks::destroy() noexcept {
  for (Event event : events_) gpu_.api().event_destroy(event);
  events_.clear();
}

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
