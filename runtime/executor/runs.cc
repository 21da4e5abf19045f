// Runs of an executor: whole ones, on the CPU and on devices, and node by node.
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/executor/impl.h"
#include "runtime/relax/interpreter.h"

namespace run_model {

void GraphExecutor::Impl::set_threads(std::shared_ptr<ThreadPool> threads) {
  threads_ = std::move(threads);
}

std::shared_ptr<ThreadPool> GraphExecutor::Impl::pool() const {
  return threads_ != nullptr ? threads_ : ThreadPool::shared();
}

void GraphExecutor::Impl::run() {
  check_all_set();
  check_waiting();
  run_calls();
}

void GraphExecutor::Impl::run_async() {
  check_all_set();
  check_waiting();
  if (now_->device_run.uses_devices()) {
    start_calls();
  } else {
    run_calls();
  }
}

void GraphExecutor::Impl::wait() {
  if (!now_->device_run.uses_devices()) return;
  const auto locks = now_->device_run.lock();
  or_no_outputs([this] {
    now_->sides.download();
    now_->device_run.wait();
  });
}

// A run that failed leaves numbers that are no outputs.
void GraphExecutor::Impl::or_no_outputs(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

void GraphExecutor::Impl::run_calls() {
  if (now_->device_run.uses_devices()) {
    const auto locks = now_->device_run.lock();
    start_calls();
    wait();
    return;
  }
  const std::shared_ptr<ThreadPool> threads = pool();
  CurrentPool use(*threads);
  failure_ = nullptr;
  or_no_outputs([this] { now_->calls.run_all(); });
  if (now_->model.interpreter != nullptr) describe_outputs();
}

// Outputs are stale from here on, should a function fail.
void GraphExecutor::Impl::start_calls() {
  const auto locks = now_->device_run.lock();
  const std::shared_ptr<ThreadPool> threads = pool();
  CurrentPool use(*threads);
  check_overlaps();
  failure_ = nullptr;
  or_no_outputs([this] {
    now_->sides.upload();
    now_->sides.note_change();
    now_->device_run.start();
  });
}

// On devices it is done when this returns.
void GraphExecutor::Impl::run_node(std::size_t index) {
  check_all_set();
  check_waiting();
  const auto locks = now_->device_run.lock();
  const std::shared_ptr<ThreadPool> threads = pool();
  CurrentPool use(*threads);
  failure_ = nullptr;
  if (!now_->device_run.uses_devices()) {
    now_->calls.run(index);
    return;
  }
  now_->sides.upload();
  now_->sides.note_change();
  now_->calls.run(index);
  now_->device_run.wait();
}

OpenDevice* GraphExecutor::Impl::device_of_node(std::size_t index) const {
  const GraphNode& node = graph().nodes[now_->calls.in_graph().at(index)];
  return node.num_outputs == 0 ? nullptr : now_->entries.device_of(node.first_output);
}

std::optional<double> GraphExecutor::Impl::run_node_timed(std::size_t index) {
  OpenDevice* device = device_of_node(index);
  if (device == nullptr) {
    run_node(index);
    return std::nullopt;
  }
  const std::lock_guard lock(device->mutex());
  now_->sides.upload();
  const Device::Mark start = device->device().mark();
  run_node(index);
  const double seconds = device->device().seconds_between(start, device->device().mark());
  device->device().forget_marks();
  return seconds;
}

void GraphExecutor::Impl::check_all_set() const {
  std::string missing;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (set_[i]) continue;
    missing += (missing.empty() ? "" : ", ") + in_quotes(arguments_[i].name) + " (" +
               tensor_form_name(arguments_[i].dtype, arguments_[i].shape) + ")";
  }
  if (missing.empty()) return;
  throw Error(ErrorKind::kMismatch, "these inputs of the model were never set: " + missing,
              "set them; if one of them is a parameter, the parameter file does not belong to "
              "this graph");
}

}  // namespace run_model
