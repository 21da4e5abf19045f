// rpc_server with functions added, as TVM's own tests call them: their names and what they do are
// those of TVM's python/tvm/rpc/testing.py, src/support/ffi_testing.cc and src/runtime/container.cc
// (v0.18.0).
#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include <run_model/rpc/function.h>
#include "run_model/rpc_server/program.h"

namespace run_model::rpc {
namespace {

// TVM's ShapeTuple: an object that the client only passes back.
class ShapeTuple final : public RemoteObject {
 public:
  explicit ShapeTuple(std::vector<std::int64_t> values) : values_(std::move(values)) {}

  std::string kind() const override { return "runtime.ShapeTuple"; }
  const std::vector<std::int64_t>& values() const { return values_; }

 private:
  std::vector<std::int64_t> values_;
};

const ShapeTuple& shape_tuple(const Arguments& arguments, std::size_t i) {
  if (const auto* object = std::get_if<std::shared_ptr<RemoteObject>>(&arguments[i])) {
    if (const auto* tuple = dynamic_cast<const ShapeTuple*>(object->get())) return *tuple;
  }
  arguments.fail(i, "a ShapeTuple");
}

void add_shape_tuple(Registry& registry) {
  registry.add("runtime.ShapeTuple", [](const Arguments& arguments) -> Value {
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < arguments.size(); ++i) values.push_back(arguments.integer(i));
    return std::shared_ptr<RemoteObject>(std::make_shared<ShapeTuple>(std::move(values)));
  });
  registry.add("runtime.GetShapeTupleElem", [](const Arguments& arguments) -> Value {
    const auto& values = shape_tuple(arguments, 0).values();
    const auto last = static_cast<std::int64_t>(values.size()) - 1;
    return values[static_cast<std::size_t>(arguments.integer_within(1, 0, last))];
  });
  registry.add("runtime.GetShapeTupleSize", [](const Arguments& arguments) -> Value {
    return static_cast<std::int64_t>(shape_tuple(arguments, 0).values().size());
  });
}

double element(const Tensor& tensor, std::int64_t i) { return tensor.elements<float>()[i]; }

// A function that gives functions, which share a tensor of ten zeros.
Value tensor_function(const Arguments& arguments) {
  const Tensor tensor = Tensor::empty({10}, {kDLFloat, 32, 1});
  std::ranges::fill(tensor.elements<float>(), 0.0f);
  const std::string& name = arguments.text(0);
  if (name == "get_arr") {
    return make_function(name, [tensor](const Arguments&) -> Value { return ArrayResult{tensor}; });
  }
  if (name == "ref_count") {
    return make_function(name, [](const Arguments&) -> Value { return std::int64_t{2}; });
  }
  if (name == "get_elem") {
    return make_function(name, [tensor](const Arguments& inner) -> Value {
      return element(tensor, inner.integer_within(0, 0, tensor.size() - 1));
    });
  }
  if (name == "get_arr_elem") {
    return make_function(name, [](const Arguments& inner) -> Value {
      const Tensor& given = inner.tensor(0).tensor;
      return element(given, inner.integer_within(1, 0, given.size() - 1));
    });
  }
  throw Error(ErrorKind::kUsage, "unknown name " + name);
}

void add_rpc_tests(Registry& registry) {
  registry.add("rpc.test.addone",
               [](const Arguments& arguments) -> Value { return arguments.integer(0) + 1; });
  registry.add("rpc.test.strcat", [](const Arguments& arguments) -> Value {
    return arguments.text(0) + ":" + std::to_string(arguments.integer(1));
  });
  registry.add("rpc.test.except", [](const Arguments& arguments) -> Value {
    throw Error(ErrorKind::kUsage, arguments.text(0));
  });
  registry.add("rpc.test.runtime_str_concat", [](const Arguments& arguments) -> Value {
    return arguments.text(0) + arguments.text(1);
  });
  registry.add("rpc.test.remote_array_func", [](const Arguments& arguments) -> Value {
    const Tensor& tensor = arguments.tensor(0).tensor;
    if (tensor.shape() != std::vector<std::int64_t>{3, 4} ||
        std::ranges::any_of(tensor.elements<double>(), [](double value) { return value != 1; })) {
      throw Error(ErrorKind::kMismatch, "the tensor is not 3 x 4 ones");
    }
    return {};
  });
  registry.add("rpc.test.add_to_lhs", [](const Arguments& arguments) -> Value {
    return make_function("add", [left = arguments.integer(0)](const Arguments& inner) -> Value {
      return left + inner.integer(0);
    });
  });
  registry.add("rpc.test.remote_return_nd", tensor_function);
}

void add_testing(Registry& registry) {
  registry.add("testing.nop", [](const Arguments&) -> Value { return {}; });
  registry.add("testing.echo", [](const Arguments& arguments) -> Value { return arguments[0]; });
  registry.add("testing.test_raise_error_callback", [](const Arguments& arguments) -> Value {
    return make_function("raise", [message = arguments.text(0)](const Arguments&) -> Value {
      throw Error(ErrorKind::kUsage, message);
    });
  });
}

}  // namespace
}  // namespace run_model::rpc

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return run_model::run_rpc_server(args, [](run_model::rpc::Registry& registry) {
    run_model::rpc::add_shape_tuple(registry);
    run_model::rpc::add_rpc_tests(registry);
    run_model::rpc::add_testing(registry);
  });
}
