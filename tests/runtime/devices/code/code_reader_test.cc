#include "runtime/devices/code/code_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/devices/code/kernel_text.h"
#include "runtime/loading/device_blob.h"
#include "tests/runtime/devices/test_code.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using namespace testing_code;  // NOLINT(google-build-using-namespace)

std::shared_ptr<const DeviceCode> read(const std::string& key, const std::string& bytes) {
  ByteReader reader(std::as_bytes(std::span(bytes)), "library 'm.so'", {}, 100);
  auto code = read_device_code(reader, key);
  EXPECT_TRUE(reader.at_end());
  return code;
}

void expect_refused(const std::string& key, const std::string& bytes, ErrorKind kind,
                    const std::string& sentence) {
  EXPECT_TRUE(throws_error([&] { read(key, bytes); }, kind, {"library 'm.so'", sentence}));
}

TEST(CodeReaderTest, OpenCl) {
  TestKernel other = add_kernel("mul_kernel");
  other.arguments.clear();
  other.tags = {"threadIdx.z", "tir.use_dyn_shared_memory"};
  other.second_name = "mul_kernel";
  const std::string source = "// pragmas\n" + opencl_source("mul_kernel") +
                             "// Function: is said in a comment too\n" +
                             opencl_source("add_kernel");
  EXPECT_TRUE(throws_error([&] { read("opencl", opencl_module({add_kernel(), other}, source)); },
                           ErrorKind::kFormat, "code for the kernel 'is said in a comment too'"));
  const std::string pieces = opencl_source("mul_kernel") + opencl_source("add_kernel");
  const auto code = read("opencl", opencl_module({add_kernel(), other}, pieces));
  EXPECT_EQ(code->device, kDLOpenCL);
  EXPECT_EQ(code->format, "cl");
  EXPECT_EQ(code->data, pieces);
  EXPECT_TRUE(code->shaders.empty());
  ASSERT_EQ(code->kernels.size(), 2u);
  EXPECT_EQ(code->kernels[0].name, "add_kernel");
  ASSERT_EQ(code->kernels[0].argument_types.size(), 3u);
  EXPECT_EQ(code->kernels[0].argument_types[1].code, kDLOpaqueHandle);
  EXPECT_EQ(code->kernels[0].argument_types[2].bits, 32);
  EXPECT_EQ(code->kernels[0].launch_tags,
            (std::vector<std::string>{"blockIdx.x", "threadIdx.x", "threadIdx.x"}));
  EXPECT_EQ(code->kernels[1].launch_tags,
            (std::vector<std::string>{"threadIdx.z", "tir.use_dyn_shared_memory"}));
}

TEST(CodeReaderTest, OpenClPieces) {
  const std::string source =
      "#pragma x\n" + opencl_source("a") + "x; // Function: b\n" + opencl_source("c");
  const auto pieces = split_opencl(source);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].kernel, "a");
  EXPECT_EQ(pieces[0].text, opencl_source("a") + "x; // Function: b\n");
  EXPECT_EQ(pieces[1].kernel, "c");
  EXPECT_EQ(pieces[1].text, opencl_source("c"));
  EXPECT_TRUE(split_opencl("").empty());
}

TEST(CodeReaderTest, CudaCodeIsWhatItsBytesSay) {
  const std::string ptx = ptx_source("add_kernel");
  EXPECT_EQ(read("cuda", cuda_module({add_kernel()}, ptx, "ptx"))->format, "ptx");
  EXPECT_EQ(read("cuda", cuda_module({add_kernel()}, ptx + '\0', "cubin"))->format, "ptx");
  const std::string cubin = "\x7f"
                            "ELF .text.add_kernel" +
                            std::string(1, '\0');
  EXPECT_EQ(read("cuda", cuda_module({add_kernel()}, cubin, "cubin"))->data, cubin);
  const std::string fatbin = "\x50\xed\x55\xba compressed";
  EXPECT_EQ(read("cuda", cuda_module({add_kernel()}, fatbin, "cubin"))->format, "fatbin");
  EXPECT_EQ(read("cuda", cuda_module({}, ptx, "ptx"))->device, kDLCUDA);

  expect_refused("cuda", cuda_module({add_kernel()}, "__global__ void k();", "cu"),
                 ErrorKind::kIncompatible,
                 "was compiled for an NVIDIA GPU (cuda) in the form 'cu'");
  expect_refused("cuda", cuda_module({add_kernel()}, "no code", "cubin"), ErrorKind::kFormat,
                 "neither PTX nor a cubin");
}

TEST(CodeReaderTest, Vulkan) {
  const auto words = spirv("add_kernel");
  const auto code = read("vulkan", vulkan_module({add_kernel()}, {shader("add_kernel", 1, words)}));
  EXPECT_EQ(code->device, kDLVulkan);
  EXPECT_EQ(code->format, "vulkan");
  ASSERT_EQ(code->shaders.size(), 1u);
  EXPECT_EQ(code->shaders[0].kernel, "add_kernel");
  EXPECT_EQ(code->shaders[0].flags, 1u);
  EXPECT_EQ(code->shaders[0].words, words);
}

TEST(CodeReaderTest, KernelsWithoutCodeAreRefused) {
  const std::string sentence = "there is no code for the kernel 'add_kernel'";
  const std::string longer = "add_kernel_1";
  expect_refused("opencl", opencl_module({add_kernel()}, "__kernel void add_kernel() {}"),
                 ErrorKind::kFormat, sentence);
  expect_refused("cuda", cuda_module({add_kernel()}, ptx_source(longer), "ptx"), ErrorKind::kFormat,
                 sentence);
  expect_refused("cuda",
                 cuda_module({add_kernel()},
                             "\x7f"
                             "ELF.text." +
                                 longer + '\0',
                             "cubin"),
                 ErrorKind::kFormat, sentence);
  expect_refused("vulkan", vulkan_module({add_kernel()}, {}), ErrorKind::kFormat, sentence);
}

TEST(CodeReaderTest, CodeBeyondTheTableIsRefused) {
  expect_refused("opencl", opencl_module({}, opencl_source("b")), ErrorKind::kFormat,
                 "code for the kernel 'b', which is not in the table");
  expect_refused("opencl",
                 opencl_module({add_kernel("b")}, opencl_source("b") + opencl_source("b")),
                 ErrorKind::kFormat, "code for the kernel 'b' twice");
  const std::string one = shader("add_kernel", 0, spirv("add_kernel"));
  expect_refused("vulkan", vulkan_module({add_kernel()}, {one, one}), ErrorKind::kFormat,
                 "'add_kernel', which has one already");
}

TEST(CodeReaderTest, OtherFormsAreRefused) {
  for (const char* form : {"xclbin", "aocx", "spirv"}) {
    expect_refused("opencl", opencl_module({}, "", form), ErrorKind::kIncompatible,
                   "was compiled for a GPU through OpenCL in the form '" + std::string(form) + "'");
  }
  expect_refused("opencl", opencl_module({}, std::string("a\0b", 3)), ErrorKind::kFormat,
                 "a zero byte");
}

TEST(CodeReaderTest, TablesThatNoLaunchCanBeMadeForAreRefused) {
  const auto refused = [](const TestKernel& kernel, ErrorKind kind, const std::string& sentence) {
    expect_refused("opencl", opencl_module({kernel}, opencl_source(kernel.name)), kind, sentence);
  };
  TestKernel kernel = add_kernel("");
  refused(kernel, ErrorKind::kFormat, "'' is no name of a kernel");
  kernel.name = "a-b";
  refused(kernel, ErrorKind::kFormat, "'a-b' is no name of a kernel");
  kernel.name = "1a";
  refused(kernel, ErrorKind::kFormat, "'1a' is no name of a kernel");

  kernel = add_kernel();
  kernel.second_name = "mul";
  refused(kernel, ErrorKind::kFormat, "the kernel 'add_kernel' is called 'mul' as well");

  kernel = add_kernel();
  for (const char* tag : {"blockIdx.w", "vthread", "threadIdx.", "blockIdx.xy", ""}) {
    kernel.tags = {"blockIdx.x", tag};
    refused(kernel, ErrorKind::kFormat,
            "is launched by '" + std::string(tag) + "', expected blockIdx, threadIdx or");
  }
  kernel.tags = {"tir.use_dyn_shared_memory", "blockIdx.x"};
  refused(kernel, ErrorKind::kFormat, "has launch tags after tir.use_dyn_shared_memory");

  kernel = add_kernel();
  kernel.arguments[2] = {77, 8, 1};
  refused(kernel, ErrorKind::kFormat,
          "argument 2 of the kernel 'add_kernel' is of a type that there is not: code 77");
  for (const DLDataType type : {DLDataType{kDLFloat, 16, 1}, DLDataType{kDLInt, 32, 4},
                                DLDataType{kDLUInt, 1, 1}, DLDataType{kDLOpaqueHandle, 32, 1}}) {
    kernel.arguments[2] = type;
    refused(kernel, ErrorKind::kIncompatible, "argument 2 of the kernel 'add_kernel' is ");
  }
  const TestKernel twice = add_kernel();
  expect_refused("opencl", opencl_module({twice, twice}, opencl_source(twice.name)),
                 ErrorKind::kFormat, "the kernel 'add_kernel' is there twice");
}

TEST(CodeReaderTest, CountsAreNotBelieved) {
  std::string kernels = text("cl");
  put<std::uint64_t>(kernels, 60000);
  expect_refused("opencl", kernels + std::string(100, '\0'), ErrorKind::kFormat,
                 "the number of kernels");
  std::string words = text("vulkan") + table({add_kernel()});
  put<std::uint64_t>(words, 1);
  words += text("add_kernel");
  put<std::uint32_t>(words, 0);
  put<std::uint64_t>(words, std::uint64_t{1} << 62);
  expect_refused("vulkan", words, ErrorKind::kFormat, "a shader's words");
}

TEST(CodeReaderTest, ShadersAreLookedThrough) {
  const auto refused = [](const std::vector<std::uint32_t>& words, const std::string& sentence) {
    expect_refused("vulkan", vulkan_module({add_kernel()}, {shader("add_kernel", 0, words)}),
                   ErrorKind::kFormat, "the shader of the kernel 'add_kernel' " + sentence);
  };
  refused({}, "does not begin like SPIR-V");
  refused({0x03022307, 0x00010000, 0, 8, 0}, "does not begin like SPIR-V");
  refused({0x07230203, 0x00020000, 0, 8, 0}, "is SPIR-V of a version that is not known");
  refused(spirv("add_kernel_1"), "has no compute shader of that name");
  auto words = spirv("add_kernel");
  words[6] = 0;  // not of a compute shader
  refused(words, "has no compute shader of that name");
  words = spirv("add_kernel");
  words.back() = 7 << 16 | 253;
  refused(words, "has an instruction of 7 words where 1 are left");
  words.back() = 253;
  refused(words, "has an instruction of 0 words where 1 are left");
  expect_refused("vulkan",
                 vulkan_module({add_kernel()}, {shader("add_kernel", 2, spirv("add_kernel"))}),
                 ErrorKind::kFormat, "has flags 2");
}

std::string opencl(const std::string& kernel) {
  return text("opencl") + opencl_module({add_kernel(kernel)}, opencl_source(kernel));
}

DeviceBlob read_blob(const std::vector<std::string>& modules) {
  const std::string bytes = blob_of(modules);
  return read_device_blob(std::as_bytes(std::span(bytes)), "library 'm.so'");
}

TEST(DeviceBlobCodesTest, AreInTheOrderOfTheModules) {
  const DeviceBlob blob = read_blob({text("_lib"), opencl("a"), opencl("b")});
  EXPECT_FALSE(blob.graph.has_value());
  ASSERT_EQ(blob.codes.size(), 2u);
  EXPECT_EQ(blob.codes[0]->kernels.at(0).name, "a");
  EXPECT_EQ(blob.codes[1]->kernels.at(0).name, "b");
  EXPECT_TRUE(throws_error(
      [&] { refuse_device_codes(blob.codes, "library 'm.so'"); }, ErrorKind::kIncompatible,
      {"library 'm.so' was compiled for a GPU through OpenCL", "compile for the CPU"}));
  refuse_device_codes({}, "library 'm.so'");
}

TEST(DeviceBlobCodesTest, KernelsOfTwoModulesHaveDifferentNames) {
  EXPECT_TRUE(throws_error([] { read_blob({text("_lib"), opencl("a"), opencl("a")}); },
                           ErrorKind::kFormat, "the kernel 'a' is in two modules"));
}

TEST(DeviceBlobCodesTest, OtherGpusStayForeign) {
  EXPECT_TRUE(throws_error([] { read_blob({text("metal") + "binary"}); }, ErrorKind::kIncompatible,
                           "was compiled for an Apple GPU (metal)"));
  EXPECT_TRUE(throws_error([] { read_blob({text("hip") + "binary"}); }, ErrorKind::kIncompatible,
                           "was compiled for an AMD GPU (rocm)"));
}

}  // namespace
}  // namespace run_model
