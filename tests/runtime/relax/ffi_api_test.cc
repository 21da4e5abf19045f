// What C++ functions call that were compiled with tvm-ffi's headers.
#include "runtime/relax/ffi_api.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/threads/call_context.h"

namespace run_model {
namespace {

TEST(FfiApiTest, TakesErrorsOfFunctionsThatWereLinked) {
  const std::string kind = "ValueError", message = "three dimensions are expected";
  FfiErrorObject error;
  error.kind = {kind.data(), kind.size()};
  error.message = {message.data(), message.size()};
  clear_last_packed_error();
  TVMFFIErrorSetRaised(static_cast<FfiObject*>(&error));
  EXPECT_EQ(last_packed_error(), "ValueError: three dimensions are expected");
  EXPECT_EQ(error.references.load() & 0xFFFFFFFF, 1u);
  ASSERT_NE(TVMFFIBacktrace("file.cc", 1, "function", 0), nullptr);
  EXPECT_EQ(TVMFFIBacktrace("file.cc", 1, "function", 0)->size, 0u);
}

// As TVM 0.27's checks of arguments put it.
TEST(FfiApiTest, MakesOneLineOfAFailureThatHasSeveral) {
  const char* parts[] = {"Mismatched B.ndim on argument #1 when calling:\n  `matmul(x, B)`,\n",
                         "  expected 2\n"};
  TVMFFIErrorSetRaisedFromCStrParts("ValueError", parts, 2);
  EXPECT_EQ(
      last_packed_error(),
      "ValueError: Mismatched B.ndim on argument #1 when calling: `matmul(x, B)`, expected 2");
  clear_last_packed_error();
}

// Names as tvm-ffi 0.1.14 has them.
TEST(FfiApiTest, KnowsTheTypesOfItsValues) {
  const auto name = [](std::int32_t type) {
    const FfiBytes& bytes = TVMFFIGetTypeInfo(type)->name;
    return std::string(bytes.data, bytes.size);
  };
  EXPECT_EQ(name(kFfiInt), "int");
  EXPECT_EQ(name(kFfiTensorPointer), "DLTensor*");
  EXPECT_EQ(name(kFfiTensor), "ffi.Tensor");
  EXPECT_EQ(name(kFfiStorage), "ffi.Object");
  const FfiTypeInfo& tensor = *TVMFFIGetTypeInfo(kFfiTensor);
  EXPECT_EQ(tensor.type, kFfiTensor);
  ASSERT_EQ(tensor.depth, 1);
  EXPECT_EQ(tensor.ancestors[0]->type, kFfiObjects);
  EXPECT_NE(TVMFFIGetTypeInfo(-1), nullptr);
}

}  // namespace
}  // namespace run_model
