#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/text.h"
#include "rpc/device_buffer.h"
#include "rpc/functions/builtin.h"
#include "rpc/modules/graph_executor_module.h"
#include "rpc/timing.h"

namespace run_model::rpc {
namespace {

// Takes the arguments of the function that is measured; gives the bytes of `repeat` doubles.
class TimeEvaluator final : public Function {
 public:
  TimeEvaluator(FunctionPointer measured, FunctionPointer before_repeat, const Timing& timing,
                const Device& device)
      : Function("time_evaluator of " + measured->name()),
        measured_(std::move(measured)),
        before_repeat_(std::move(before_repeat)),
        timing_(timing),
        device_(device) {}

  Value call(Values arguments) const override {
    const std::function<void()> call = measured_->prepare(arguments);
    std::function<void()> before;
    if (before_repeat_ != nullptr) before = before_repeat_->prepare(arguments);
    std::function<void()> wait;
    if (is_gpu(device_)) wait = [this] { wait_for(device_); };
    return bytes_of(measure(call, timing_, before, wait));
  }

 private:
  FunctionPointer measured_;
  FunctionPointer before_repeat_;
  Timing timing_;
  Device device_;
};

FunctionPointer registered(const Registry& registry, const std::string& name) {
  FunctionPointer function = registry.find(name);
  if (function == nullptr) {
    throw Error(ErrorKind::kMismatch, "this server has no function " + in_quotes(name));
  }
  return function;
}

FunctionPointer measured_function(const Registry& registry, const Arguments& arguments) {
  const std::string& name = arguments.text(1);
  if (arguments.is_null(0)) return registered(registry, name);
  FunctionPointer function = arguments.module(0)->find(name);
  if (function == nullptr) {
    throw Error(ErrorKind::kMismatch, "the module (" + arguments.module(0)->kind() +
                                          ") has no function " + in_quotes(name));
  }
  return function;
}

// Module or null, function, device type, device number, what timing_arguments() takes, since 0.14
// cache_flush_bytes, and the name of a function to call before each row of calls (may be empty).
Value make_time_evaluator(const Registry& registry, const Arguments& arguments) {
  constexpr std::size_t kFirstTiming = 4;
  constexpr std::size_t kMost = kFirstTiming + kTimingArguments + 2;
  arguments.check_count(kFirstTiming + kTimingArgumentsOf08 + 1, kMost);
  FunctionPointer measured = measured_function(registry, arguments);
  const Device device = device_numbers(arguments, 2);
  const bool flushes = arguments.size() == kMost;
  Timing timing = timing_arguments(arguments, kFirstTiming,
                                   arguments.size() - kFirstTiming - (flushes ? 2 : 1));
  if (flushes) {
    timing.cache_flush_bytes =
        arguments.integer_within(kMost - 2, 0, std::numeric_limits<std::int32_t>::max());
  }
  const std::string& before_repeat = arguments.text(arguments.size() - 1);
  return std::make_shared<const TimeEvaluator>(
      std::move(measured), before_repeat.empty() ? nullptr : registered(registry, before_repeat),
      timing, device);
}

// The first argument is left alone: a layer's input comes from the layer before, still in the
// caches.
Value flush_all_but_first(const Arguments& arguments) {
  std::vector<std::span<const std::byte>> areas;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const Tensor& tensor = arguments.tensor(i).tensor;
    areas.emplace_back(static_cast<const std::byte*>(tensor.data()), tensor.nbytes());
  }
  flush_from_caches(areas);
  return {};
}

}  // namespace

void add_time_evaluator(Registry& registry) {
  registry.add("runtime.RPCTimeEvaluator", [&registry](const Arguments& arguments) {
    return make_time_evaluator(registry, arguments);
  });
  registry.add("cache_flush_cpu_non_first_arg", flush_all_but_first);
}

}  // namespace run_model::rpc
