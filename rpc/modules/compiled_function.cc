#include "rpc/modules/library_module.h"

#include <cstring>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include <run_model/packed_function.h>
#include "base/text.h"
#include "rpc/device_buffer.h"
#include "rpc/encoding.h"
#include "runtime/loading/model_library.h"
#include "runtime/relax/values.h"
#include "runtime/threads/call_context.h"

namespace run_model::rpc {
namespace {

// TVMByteArray of TVM's C ABIs (c_runtime_api.h, c_api.h).
struct ByteArray {
  const char* data;
  std::size_t size;
};

// A function of TVM's C ABI up to 0.20, or of tvm-ffi's since: the one that is not null. Both take
// the same values, under other type codes and packed in another way.
struct Callee {
  PackedFunction packed = nullptr;
  FfiFunction ffi = nullptr;

  Encoding convention() const { return ffi != nullptr ? Encoding::kTvm021 : Encoding::kTvm08; }
};

struct CompiledResult {
  PackedValue value{};
  int code = 0;
  FfiValue object{};  // what the value is by tvm-ffi, with its reference
};

static_assert(sizeof(PackedValue) == sizeof(FfiAny::integer));

// Arguments in the form that compiled code takes them, with what they point to.
class CompiledCall {
 public:
  CompiledCall(Callee callee, const std::string& function, Values values)
      : callee_(callee), values_(values.begin(), values.end()) {
    // Pointers into these stay valid: there is room for all from the start.
    tensors_.reserve(values_.size());
    strides_.reserve(values_.size());
    byte_arrays_.reserve(values_.size());
    // Never empty, so that a function without arguments gets no null pointer.
    arguments_.reserve(values_.size() + 1);
    codes_.reserve(values_.size() + 1);
    ffi_arguments_.reserve(values_.size() + 1);
    for (std::size_t i = 0; i < values_.size(); ++i) add(function, i);
    clear_last_packed_error();
  }
  CompiledCall(CompiledCall&&) = delete;

  CompiledResult run(const std::string& name) {
    const auto count = static_cast<std::int32_t>(values_.size());
    CompiledResult result;
    int status = 0;
    if (callee_.ffi != nullptr) {
      FfiAny any;
      status = callee_.ffi(nullptr, ffi_arguments_.data(), count, &any);
      result.code = any.type;
      std::memcpy(&result.value, &any.integer, sizeof(result.value));
      result.object = FfiValue::adopt(any);
    } else {
      result.code = kTypeNull;
      status = callee_.packed(arguments_.data(), codes_.data(), count, &result.value, &result.code,
                              nullptr);
    }
    if (status != 0) [[unlikely]] {
      throw Error(ErrorKind::kModel,
                  "the function " + in_quotes(name) + " failed: " + last_packed_error());
    }
    return result;
  }

 private:
  void add(const std::string& function, std::size_t i) {
    PackedValue value{};
    auto type = WireType::kNull;
    const Value& given = values_[i];
    if (const auto* number = std::get_if<std::int64_t>(&given)) {
      value.v_int64 = *number;
      type = WireType::kInteger;
    } else if (const auto* flag = std::get_if<Bool>(&given)) {
      value.v_int64 = flag->value ? 1 : 0;
      // Compilers before 0.18 know no other kind of bool.
      type = callee_.ffi != nullptr ? WireType::kBool : WireType::kInteger;
    } else if (const auto* real = std::get_if<double>(&given)) {
      value.v_float64 = *real;
      type = WireType::kReal;
    } else if (const auto* text = std::get_if<std::string>(&given)) {
      value.v_str = text->c_str();
      type = WireType::kText;
    } else if (const auto* bytes = std::get_if<Bytes>(&given)) {
      byte_arrays_.push_back(
          {reinterpret_cast<const char*>(bytes->data.data()), bytes->data.size()});
      value.v_handle = &byte_arrays_.back();
      type = WireType::kBytes;
    } else if (const auto* dtype = std::get_if<DLDataType>(&given)) {
      value.v_type = *dtype;
      type = WireType::kDataType;
    } else if (const auto* device = std::get_if<Device>(&given)) {
      value.v_device = dl_device(*device);
      type = WireType::kDevice;
    } else if (const auto* tensor = std::get_if<TensorArgument>(&given)) {
      value.v_handle = add_tensor(*tensor);
      type = WireType::kTensor;
    } else if (!std::holds_alternative<std::monostate>(given)) {
      Arguments(function, values_)
          .fail(i, "a number, a text, bytes, a device or a tensor, which compiled functions take");
    }
    arguments_.push_back(value);
    codes_.push_back(type_code(callee_.convention(), type));
    if (callee_.ffi == nullptr) return;
    FfiAny& any = ffi_arguments_.emplace_back();
    any.type = codes_.back();
    std::memcpy(&any.integer, &value, sizeof(value));
  }

  DLTensor* add_tensor(const TensorArgument& tensor) {
    DLTensor& described = tensors_.emplace_back(tensor.tensor.dl_tensor());
    if (tensor.device_memory != nullptr) {
      described.data = tensor.device_memory->handle();
      described.device = tensor.device_memory->device();
    } else {
      described.data = static_cast<std::byte*>(described.data) - tensor.byte_offset;
    }
    described.byte_offset = tensor.byte_offset;
    if (callee_.ffi != nullptr) {  // which wants to be told that the elements lie densely
      std::vector<std::int64_t>& strides = strides_.emplace_back(tensor.tensor.shape());
      std::int64_t stride = 1;
      for (std::size_t i = strides.size(); i-- > 0;) {
        stride *= std::exchange(strides[i], stride);
      }
      described.strides = strides.data();
    }
    return &described;
  }

  Callee callee_;
  std::vector<Value> values_;
  std::vector<DLTensor> tensors_;
  std::vector<std::vector<std::int64_t>> strides_;
  std::vector<ByteArray> byte_arrays_;
  std::vector<PackedValue> arguments_;
  std::vector<int> codes_;
  std::vector<FfiAny> ffi_arguments_;
};

class CompiledFunction final : public Function {
 public:
  CompiledFunction(std::shared_ptr<Module> library, std::string name, Callee callee)
      : Function(std::move(name)), library_(std::move(library)), callee_(callee) {}

  Value call(Values values) const override {
    const CompiledResult result = CompiledCall(callee_, name(), values).run(name());
    switch (wire_type(callee_.convention(), result.code).value_or(WireType::kArray)) {
      case WireType::kNull:
        return {};
      case WireType::kInteger:
        return result.value.v_int64;
      case WireType::kBool:
        return Bool{result.value.v_int64 != 0};
      case WireType::kReal:
        return result.value.v_float64;
      case WireType::kText:
        return std::string(result.value.v_str);
      default:
        if (result.object.type == kFfiText || result.object.type == kFfiSmallText) {
          return text_of(result.object);
        }
        throw Error(ErrorKind::kModel,
                    "the function " + in_quotes(name()) + " returned a value of type code " +
                        std::to_string(result.code) + ", expected a number, a text or nothing");
    }
  }

  std::function<void()> prepare(Values values) const override {
    auto call = std::make_shared<CompiledCall>(callee_, name(), values);
    return [this, call = std::move(call)] { call->run(name()); };
  }

 private:
  std::shared_ptr<Module> library_;
  Callee callee_;
};

}  // namespace

FunctionPointer compiled_function(const std::shared_ptr<Module>& library, const std::string& name) {
  Callee callee{library->find(name)};
  const ModelLibrary* model = as_model_library(*library);
  if (callee.packed == nullptr && model != nullptr) callee.ffi = model->find_ffi(name);
  if (callee.packed == nullptr && callee.ffi == nullptr) return nullptr;
  return std::make_shared<CompiledFunction>(library, name, callee);
}

}  // namespace run_model::rpc
