#include "rpc/library_module.h"

#include <utility>
#include <vector>

#include <run_model/error.h>
#include <run_model/packed_function.h>
#include "base/text.h"
#include "rpc/debug_executor_module.h"
#include "rpc/graph_executor_module.h"
#include "rpc/protocol.h"
#include "runtime/call_context.h"
#include "runtime/model_library.h"

namespace run_model::rpc {
namespace {

// TVMByteArray of TVM's C ABI (c_runtime_api.h).
struct ByteArray {
  const char* data;
  std::size_t size;
};

// Arguments in the form that compiled code takes them, with what they point to.
class CompiledCall {
 public:
  CompiledCall(const std::string& function, Values values) : values_(values.begin(), values.end()) {
    // Pointers into these stay valid: there is room for all from the start.
    tensors_.reserve(values_.size());
    byte_arrays_.reserve(values_.size());
    // Never empty, so that a function without arguments gets no null pointer.
    arguments_.reserve(values_.size() + 1);
    codes_.reserve(values_.size() + 1);
    for (std::size_t i = 0; i < values_.size(); ++i) add(function, i);
    clear_last_packed_error();
  }
  CompiledCall(CompiledCall&&) = delete;

  void run(PackedFunction function, const std::string& name, PackedValue& result,
           int& result_code) {
    const int status = function(arguments_.data(), codes_.data(), static_cast<int>(values_.size()),
                                &result, &result_code, nullptr);
    if (status != 0) [[unlikely]] {
      throw Error(ErrorKind::kModel,
                  "the function " + in_quotes(name) + " failed: " + last_packed_error());
    }
  }

 private:
  void add(const std::string& function, std::size_t i) {
    PackedValue value{};
    int code = kTypeNull;
    const Value& given = values_[i];
    if (const auto* number = std::get_if<std::int64_t>(&given)) {
      value.v_int64 = *number;
      code = kTypeInt;
    } else if (const auto* flag = std::get_if<Bool>(&given)) {
      // Compilers before 0.18 know no other kind of bool.
      value.v_int64 = flag->value ? 1 : 0;
      code = kTypeInt;
    } else if (const auto* real = std::get_if<double>(&given)) {
      value.v_float64 = *real;
      code = kTypeFloat;
    } else if (const auto* text = std::get_if<std::string>(&given)) {
      value.v_str = text->c_str();
      code = kTypeString;
    } else if (const auto* bytes = std::get_if<Bytes>(&given)) {
      byte_arrays_.push_back(
          {reinterpret_cast<const char*>(bytes->data.data()), bytes->data.size()});
      value.v_handle = &byte_arrays_.back();
      code = kTypeBytes;
    } else if (const auto* dtype = std::get_if<DLDataType>(&given)) {
      value.v_type = *dtype;
      code = kTypeDataType;
    } else if (std::holds_alternative<Device>(given)) {
      value.v_device = {kDLCPU, Arguments(function, values_).cpu(i).number};
      code = kTypeDevice;
    } else if (const auto* tensor = std::get_if<TensorArgument>(&given)) {
      tensors_.push_back(tensor->tensor.dl_tensor());
      DLTensor& described = tensors_.back();
      described.data = static_cast<std::byte*>(described.data) - tensor->byte_offset;
      described.byte_offset = tensor->byte_offset;
      value.v_handle = &described;
      code = kTypeTensorHandle;
    } else if (!std::holds_alternative<std::monostate>(given)) {
      Arguments(function, values_)
          .fail(i, "a number, a text, bytes, a device or a tensor, which compiled functions take");
    }
    arguments_.push_back(value);
    codes_.push_back(code);
  }

  std::vector<Value> values_;
  std::vector<DLTensor> tensors_;
  std::vector<ByteArray> byte_arrays_;
  std::vector<PackedValue> arguments_;
  std::vector<int> codes_;
};

class CompiledFunction final : public Function {
 public:
  CompiledFunction(std::shared_ptr<Module> library, std::string name, PackedFunction function)
      : Function(std::move(name)), library_(std::move(library)), function_(function) {}

  Value call(Values values) const override {
    CompiledCall call(name(), values);
    PackedValue result{};
    int code = kTypeNull;
    call.run(function_, name(), result, code);
    switch (code) {
      case kTypeNull:
        return {};
      case kTypeInt:
      case kTypeUInt:
        return result.v_int64;
      case kTypeBool:
        return Bool{result.v_int64 != 0};
      case kTypeFloat:
        return result.v_float64;
      case kTypeString:
        return std::string(result.v_str);
      default:
        throw Error(ErrorKind::kModel,
                    "the function " + in_quotes(name()) + " returned a value of type code " +
                        std::to_string(code) + ", expected a number, a text or nothing");
    }
  }

  std::function<void()> prepare(Values values) const override {
    auto call = std::make_shared<CompiledCall>(name(), values);
    return [this, call = std::move(call)] {
      PackedValue result{};
      int code = kTypeNull;
      call->run(function_, name(), result, code);
    };
  }

 private:
  std::shared_ptr<Module> library_;
  PackedFunction function_;
};

// A function of the factory that makes executors: its arguments are devices.
FunctionPointer factory_function(std::string name, std::size_t first_device,
                                 std::function<Value(const Arguments&)> make) {
  return make_function(std::move(name),
                       [first_device, make = std::move(make)](const Arguments& arguments) {
                         for (std::size_t i = first_device; i < arguments.size(); ++i)
                           arguments.cpu(i);
                         return make(arguments);
                       });
}

}  // namespace

FunctionPointer compiled_function(const std::shared_ptr<Module>& library, const std::string& name) {
  const PackedFunction function = library->find(name);
  if (function == nullptr) return nullptr;
  return std::make_shared<CompiledFunction>(library, name, function);
}

FunctionPointer LibraryModule::find(const std::string& name) {
  if (const EmbeddedGraph* embedded = embedded_graph(*library_)) {
    const std::shared_ptr<Module>& library = library_;
    if (name == embedded->module_name) {
      return factory_function(name, 0,
                              [library](const Arguments&) { return make_graph_executor(library); });
    }
    if (name == "debug_create") {
      return factory_function(name, 1, [library](const Arguments& arguments) {
        if (arguments.text(0) != embedded_graph(*library)->module_name) {
          throw Error(ErrorKind::kMismatch, "the library holds the model " +
                                                in_quotes(embedded_graph(*library)->module_name) +
                                                ", not " + in_quotes(arguments.text(0)));
        }
        return make_debug_executor(library);
      });
    }
    if (name == "get_graph_json") {
      return make_function(name, [library](const Arguments&) -> Value {
        return embedded_graph(*library)->graph_json;
      });
    }
    if (name == "get_graph_params") {
      return make_function(name, [](const Arguments&) -> Value {
        throw Error(ErrorKind::kMismatch, "a map of tensors cannot be sent over RPC",
                    "load the library on the host to get at its parameters");
      });
    }
  }
  return compiled_function(library_, name);
}

}  // namespace run_model::rpc
