#include <run_model/module.h>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/mapped_file.h"
#include "runtime/loading/model_library.h"
#include "tests/damage_stride.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

std::filesystem::path library(const std::string& name) {
  return std::filesystem::path(LIBRARY_DIR) / name;
}

void expect_not_loaded(const std::string& name, ErrorKind code,
                       std::initializer_list<std::string_view> parts) {
  EXPECT_TRUE(throws_error([&] { Module::open(library(name)); }, code, parts));
}

std::int64_t call(PackedFunction function, std::int64_t argument) {
  PackedValue value{.v_int64 = argument};
  PackedValue result{};
  int code = kTypeInt;
  int result_code = kTypeNull;
  EXPECT_EQ(function(&value, &code, 1, &result, &result_code, nullptr), 0);
  return result.v_int64;
}

TEST(ModuleTest, FindsAndCallsFunctions) {
  const auto module = Module::open(library("slots.so"));
  EXPECT_EQ(module->path(), library("slots.so"));
  const PackedFunction function = module->find("fused_add_one");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(call(function, 41), 42);
  EXPECT_EQ(embedded_graph(*module), nullptr);
}

TEST(ModuleTest, FindsOnlyTheLibrarysOwnCompiledFunctions) {
  const auto module = Module::open(library("slots.so"));
  EXPECT_EQ(module->find("fused_missing"), nullptr);
  EXPECT_EQ(module->find("system"), nullptr) << "a function of a library that it needs";
  EXPECT_EQ(module->find("__hidden_helper"), nullptr);
  EXPECT_EQ(module->find("_init"), nullptr);
  EXPECT_EQ(module->find("__tvm_module_ctx"), nullptr) << "a variable";
  EXPECT_EQ(module->find(""), nullptr);
}

TEST(ModuleTest, EntryFunctionIsTheOneThatTheLibraryNames) {
  const auto module = Module::open(library("slots.so"));
  EXPECT_EQ(module->find("__tvm_main__"), module->find("fused_add_one"));
  EXPECT_EQ(Module::open(library("direct.so"))->find("__tvm_main__"), nullptr);
}

TEST(ModuleTest, RelativePathIsNotLookedForElsewhere) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(LIBRARY_DIR);
  std::shared_ptr<Module> module;
  EXPECT_NO_THROW(module = Module::open("slots.so"));
  std::filesystem::current_path(before);
  ASSERT_NE(module, nullptr);
  EXPECT_TRUE(throws_error([] { Module::open("libm.so.6"); }, ErrorKind::kFile,
                           "'libm.so.6' does not exist"));
}

TEST(ModuleTest, SameFileGivesTheSameModule) {
  const auto first = Module::open(library("slots.so"));
  const auto second = Module::open(library("./slots.so"));
  EXPECT_EQ(first, second);
}

TEST(ModuleTest, ReopensAfterClosing) {
  std::weak_ptr<Module> closed = Module::open(library("slots.so"));
  EXPECT_TRUE(closed.expired());
  const auto module = Module::open(library("slots.so"));
  EXPECT_EQ(call(module->find("fused_add_one"), 1), 2);
}

// The dynamic loader alone would give the old library again, as its name is known already.
TEST(ModuleTest, ReplacedFileIsLoadedAnew) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.so";
  std::filesystem::copy_file(library("version_1.so"), path);
  const auto first = Module::open(path);
  std::filesystem::copy_file(library("version_2.so"), folder.path() / "new.so");
  std::filesystem::rename(folder.path() / "new.so", path);
  const auto second = Module::open(path);
  EXPECT_EQ(call(first->find("fused_version"), 0), 1);
  EXPECT_EQ(call(second->find("fused_version"), 0), 2);
  std::filesystem::copy_file(library("version_1.so"), folder.path() / "third.so");
  std::filesystem::rename(folder.path() / "third.so", path);
  EXPECT_EQ(call(Module::open(path)->find("fused_version"), 0), 1);
}

// The application itself, or a library that cannot be unloaded, may keep the old file mapped.
TEST(ModuleTest, ReplacedFileIsLoadedAnewWhileTheOldOneStaysMapped) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.so";
  std::filesystem::copy_file(library("version_1.so"), path);
  void* const kept = ::dlopen(path.c_str(), RTLD_NOW);
  ASSERT_NE(kept, nullptr);
  std::filesystem::copy_file(library("version_2.so"), folder.path() / "new.so");
  std::filesystem::rename(folder.path() / "new.so", path);
  EXPECT_EQ(call(Module::open(path)->find("fused_version"), 0), 2);
  ::dlclose(kept);
}

TEST(ModuleTest, OpensFromManyThreads) {
  std::vector<std::thread> threads;
  std::vector<std::int64_t> results(4);
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&results, i] {
      for (int round = 0; round < 50; ++round) {
        const auto module = Module::open(library("slots.so"));
        results[i] += call(module->find("fused_add_one"), 0);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(results, std::vector<std::int64_t>(4, 50));
}

TEST(ModuleTest, SingleFileExport) {
  for (const char* name :
       {"single_file_GraphExecutorFactory.so", "single_file_GraphRuntimeFactory.so"}) {
    const auto module = Module::open(library(name));
    const EmbeddedGraph* graph = embedded_graph(*module);
    ASSERT_NE(graph, nullptr) << name;
    EXPECT_EQ(graph->graph_json, "{\"nodes\": []}");
    ASSERT_EQ(graph->params.size(), 1u);
    EXPECT_EQ(graph->params[0].name, "p0");
    ASSERT_NE(graph->file, nullptr);
    const std::span<const std::byte> file = graph->file->bytes();
    EXPECT_GE(graph->params[0].data.data(), file.data());
    EXPECT_LE(graph->params[0].data.data() + graph->params[0].data.size(),
              file.data() + file.size());
    EXPECT_NE(module->find("tvmgen_default_fused_add"), nullptr);
  }
}

TEST(ModuleTest, RefusesOtherGenerations) {
  expect_not_loaded("new_slot.so", ErrorKind::kIncompatible, {"calls 'TVMBackendTeleport'"});
  expect_not_loaded("cuda.so", ErrorKind::kIncompatible, {"was compiled for an NVIDIA GPU (cuda)"});
}

TEST(ModuleTest, RefusesLibrariesThatAreNoModels) {
  expect_not_loaded("tvm_itself.so", ErrorKind::kFormat, {"is TVM's own library"});
  expect_not_loaded("other.so", ErrorKind::kFormat, {"has no function that TVM compiled"});
  EXPECT_EQ(Module::open(library("empty.so"))->find("anything"), nullptr);
}

TEST(ModuleTest, RefusesWhatItCannotBeLinkedWith) {
  expect_not_loaded("missing_function.so", ErrorKind::kIncompatible,
                    {"nowhere to be found: ", "'cblas_sgemm'", "'cblas_sgemv'"});
  expect_not_loaded("needs_future_libc.so", ErrorKind::kIncompatible,
                    {"needs the GNU C library 9.99 or later, but this machine has 2."});
  expect_not_loaded("needs_not_installed.so", ErrorKind::kIncompatible,
                    {"needs the library 'libnot_installed.so.3', which is not installed"});
  expect_not_loaded("needs_tvm_runtime.so", ErrorKind::kIncompatible,
                    {"is linked with TVM's own runtime"});
}

TEST(ModuleTest, RefusesASlotThatCannotBeWritten) {
  expect_not_loaded("constant_slot.so", ErrorKind::kFormat,
                    {"'__TVMFuncCall' is not a pointer that can be written to"});
}

// Opens copies of a library, each with one damaged byte, in a child process. Gives the offset at
// which the child died, or -1.
long first_fatal_damage(const std::vector<char>& original, unsigned char mask,
                        const std::filesystem::path& folder) {
  int channel[2];
  if (::pipe(channel) != 0) {
    return -2;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    for (std::size_t at = 0; at < original.size(); at += damage_stride()) {
      const auto offset = static_cast<long>(at);
      if (::write(channel[1], &offset, sizeof(offset)) != sizeof(offset)) {
        ::_exit(2);
      }
      auto bytes = original;
      bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ mask);
      const auto path = folder / ("damaged_" + std::to_string(at) + ".so");
      std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
      try {
        Module::open(path);
      } catch (const Error&) {
      }
      std::filesystem::remove(path);
    }
    ::_exit(0);
  }
  ::close(channel[1]);
  long offset = -2;
  for (long next = 0; ::read(channel[0], &next, sizeof(next)) == sizeof(next);) {
    offset = next;
  }
  ::close(channel[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? -1 : offset;
}

TEST(ModuleTest, NoDamagedByteBringsTheLoaderDown) {
  std::ifstream file(library("bare.so"), std::ios::binary);
  const std::vector<char> original{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(original.empty());
  const TemporaryFolder folder;
  for (const unsigned char mask : {0x01, 0x08, 0x80, 0xff}) {
    EXPECT_EQ(first_fatal_damage(original, mask, folder.path()), -1)
        << "mask " << static_cast<int>(mask);
  }
}

}  // namespace
}  // namespace run_model
