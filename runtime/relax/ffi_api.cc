#include "runtime/relax/ffi_api.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/loading/model_library.h"
#include "runtime/relax/values.h"
#include "runtime/threads/call_context.h"

namespace run_model {
namespace {

std::string kind_of_error(const char* kind) {
  return std::string(kind != nullptr ? kind : "Error");
}

// Names as tvm-ffi's.
constexpr FfiBytes type_name_bytes(std::string_view text) { return {text.begin(), text.size()}; }

constexpr FfiTypeInfo plain_type(FfiType type, std::string_view name) {
  return {type, 0, type_name_bytes(name)};
}

constexpr FfiTypeInfo kObjectType = plain_type(kFfiObjects, "ffi.Object");
constexpr FfiTypeInfo kOtherType = plain_type(kFfiUntraced, "nothing known");
constexpr const FfiTypeInfo* kObjectAncestors[] = {&kObjectType};

constexpr FfiTypeInfo object_type(FfiType type, std::string_view name) {
  return {type, 1, type_name_bytes(name), kObjectAncestors};
}

constexpr FfiTypeInfo kTypes[] = {
    plain_type(kFfiNone, "None"),           plain_type(kFfiInt, "int"),
    plain_type(kFfiBool, "bool"),           plain_type(kFfiFloat, "float"),
    plain_type(kFfiPointer, "void*"),       plain_type(kFfiDataType, "DataType"),
    plain_type(kFfiDevice, "Device"),       plain_type(kFfiTensorPointer, "DLTensor*"),
    plain_type(kFfiRawText, "const char*"), plain_type(kFfiSmallText, "ffi.SmallStr"),
    object_type(kFfiText, "ffi.String"),    object_type(kFfiFunction, "ffi.Function"),
    object_type(kFfiShape, "ffi.Shape"),    object_type(kFfiTensor, "ffi.Tensor"),
    object_type(kFfiArray, "ffi.Array"),
};

}  // namespace
}  // namespace run_model

extern "C" {

void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) {
  using namespace run_model;
  try {
    set_last_packed_error(kind_of_error(kind) + ": " + (message != nullptr ? message : ""));
  } catch (...) {
    clear_last_packed_error();
  }
}

void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts,
                                       std::int32_t num_parts) {
  using namespace run_model;
  try {
    std::string text = kind_of_error(kind) + ": ";
    for (std::int32_t i = 0; i < num_parts; ++i) {
      if (parts[i] != nullptr) text += parts[i];
    }
    set_last_packed_error(std::move(text));
  } catch (...) {
    clear_last_packed_error();
  }
}

void TVMFFIErrorSetRaised(void* error) {
  using namespace run_model;
  try {
    const auto& object = *static_cast<const FfiErrorObject*>(static_cast<FfiObject*>(error));
    set_last_packed_error(kind_of_error(object.kind.data) + ": " +
                          std::string(object.message.data, object.message.size));
  } catch (...) {
    clear_last_packed_error();
  }
}

const run_model::FfiBytes* TVMFFIBacktrace(const char* /*file*/, int /*line*/,
                                           const char* /*function*/, int /*across*/) {
  static constexpr run_model::FfiBytes kNothing{"", 0};
  return &kNothing;
}

const run_model::FfiTypeInfo* TVMFFIGetTypeInfo(std::int32_t type) {
  using namespace run_model;
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const FfiTypeInfo& info) { return info.type == type; });
  return found != std::end(kTypes) ? &*found : type < kFfiObjects ? &kOtherType : &kObjectType;
}

int TVMFFIEnvModRegisterSystemLibSymbol(const char* /*name*/, void* /*symbol*/) { return 0; }

int TVMFFIFunctionCall(void* function, run_model::FfiAny* args, std::int32_t num_args,
                       run_model::FfiAny* result) {
  using namespace run_model;
  auto* object = static_cast<FfiFunctionObject*>(static_cast<FfiObject*>(function));
  return object->safe_call(object, args, num_args, result);
}

int TVMFFIEnvModLookupFromImports(void* module, const char* name, void** function) {
  using namespace run_model;
  try {
    const ModelLibrary* library =
        module != nullptr ? as_model_library(*static_cast<const Module*>(module)) : nullptr;
    if (library == nullptr) {
      set_last_packed_error(
          "a function is asked for before its library was connected to run_model");
      return -1;
    }
    *function = library->function_object(name);
    return 0;
  } catch (...) {
    set_last_packed_exception();
    return -1;
  }
}

int TVMFFIHandleInitOnce(void** handle, int (*init)(void** result)) {
  static std::recursive_mutex mutex;
  const std::atomic_ref<void*> shared(*handle);
  if (shared.load(std::memory_order_acquire) != nullptr) return 0;
  const std::lock_guard lock(mutex);
  if (shared.load(std::memory_order_relaxed) != nullptr) return 0;
  void* result = nullptr;
  if (const int status = init(&result); status != 0) return status;
  shared.store(result, std::memory_order_release);
  return 0;
}

int TVMBackendAnyListSetPackedArg(void* list, int index, run_model::FfiAny* args, int arg_index) {
  using namespace run_model;
  args[arg_index] = static_cast<const FfiValue*>(list)[index];
  return 0;
}

int TVMBackendAnyListResetItem(void* list, int index) {
  using namespace run_model;
  static_cast<FfiValue*>(list)[index] = FfiValue();
  return 0;
}

int TVMBackendAnyListMoveFromPackedReturn(void* list, int index, run_model::FfiAny* args,
                                          int ret_index) {
  using namespace run_model;
  static_cast<FfiValue*>(list)[index] = FfiValue::adopt(std::exchange(args[ret_index], FfiAny()));
  return 0;
}

}  // extern "C"
