#include "runtime/loading/library_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/mapped_file.h"
#include "tests/runtime/elf/elf_builder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing_elf::ElfBuilder;

// A machine of that kind with glibc 2.31, whose programs provide `provided`.
Host host_of(std::uint16_t machine, int bits, FloatAbi float_abi = FloatAbi::kUnspecified,
             std::vector<std::string> provided = {}) {
  Host host;
  host.target = {machine, bits, true, float_abi};
  host.glibc = GlibcVersion{2, 31};
  host.find_symbol = [provided](const std::string& symbol, std::span<const std::string_view>) {
    return std::find(provided.begin(), provided.end(), symbol) != provided.end()
               ? SymbolSearch::kFound
               : SymbolSearch::kMissing;
  };
  return host;
}

Host aarch64() { return host_of(EM_AARCH64, 64); }

ElfBuilder model(std::uint16_t machine = EM_AARCH64, int bits = 64) {
  ElfBuilder builder;
  builder.machine = machine;
  builder.bits = bits;
  builder.symbols = {{"fused_add"}, {"__TVMAPISetLastError", STT_OBJECT, true, true}};
  return builder;
}

void check(ElfBuilder builder, const Host& host) {
  const auto bytes = builder.build();
  check_library(ElfFile::parse(bytes, "library 'm.so'"), host);
}

void expect_refused(const ElfBuilder& builder, const Host& host, ErrorKind code,
                    std::initializer_list<std::string_view> parts) {
  EXPECT_TRUE(throws_error([&] { check(builder, host); }, code, parts));
}

LibraryKind kind_of_library(const std::string& name) {
  const auto file = MappedFile::open(std::filesystem::path(LIBRARY_DIR) / name);
  return library_kind(ElfFile::parse(file->bytes(), name));
}

TEST(ElfCheckTest, AcceptsAModelForTheHost) {
  EXPECT_NO_THROW(check(model(), aarch64()));
  EXPECT_NO_THROW(check(model(EM_ARM, 32), host_of(EM_ARM, 32, FloatAbi::kHard)))
      << "a file that does not tell its float ABI";
}

TEST(ElfCheckTest, OtherMachines) {
  expect_refused(model(EM_X86_64), aarch64(), ErrorKind::kIncompatible,
                 {"library 'm.so' is compiled for x86_64, but this machine is aarch64",
                  "\"llvm -mtriple=aarch64-linux-gnu\""});
  expect_refused(model(EM_AARCH64), host_of(EM_X86_64, 64), ErrorKind::kIncompatible,
                 {"is compiled for aarch64, but this machine is x86_64", "x86_64-linux-gnu"});
  expect_refused(model(EM_386, 32), host_of(EM_X86_64, 64), ErrorKind::kIncompatible,
                 {"is compiled for i386"});
  expect_refused(model(EM_RISCV, 32), host_of(EM_RISCV, 64), ErrorKind::kIncompatible,
                 {"is compiled for riscv32", "but this machine is riscv64"});
  expect_refused(model(4242), aarch64(), ErrorKind::kIncompatible,
                 {"is compiled for machine 4242"});
  ElfBuilder big = model();
  big.little_endian = false;
  expect_refused(big, aarch64(), ErrorKind::kIncompatible,
                 {"is compiled for aarch64 big-endian, but this machine is aarch64;"});
}

TEST(ElfCheckTest, OtherFloatAbi) {
  ElfBuilder soft = model(EM_ARM, 32);
  soft.flags = EF_ARM_EABI_VER5 | EF_ARM_ABI_FLOAT_SOFT;
  expect_refused(soft, host_of(EM_ARM, 32, FloatAbi::kHard), ErrorKind::kIncompatible,
                 {"is compiled for armv7l soft-float, but this machine is armv7l hard-float",
                  "armv7a-linux-gnueabihf"});
  ElfBuilder hard = model(EM_ARM, 32);
  hard.flags = EF_ARM_EABI_VER5 | EF_ARM_ABI_FLOAT_HARD;
  expect_refused(
      hard, host_of(EM_ARM, 32, FloatAbi::kSoft), ErrorKind::kIncompatible,
      {"armv7l hard-float, but this machine is armv7l soft-float", "arm-linux-gnueabi\""});
  ElfBuilder riscv = model(EM_RISCV);
  expect_refused(riscv, host_of(EM_RISCV, 64, FloatAbi::kHard), ErrorKind::kIncompatible,
                 {"riscv64 soft-float, but this machine is riscv64 double-float"});
}

TEST(ElfCheckTest, NewerCLibrary) {
  ElfBuilder builder = model();
  builder.version_needs = {{"libm.so.6", "GLIBC_2.29"}, {"libc.so.6", "GLIBC_2.31"}};
  EXPECT_NO_THROW(check(builder, aarch64()));
  builder.version_needs.emplace_back("libc.so.6", "GLIBC_2.34");
  expect_refused(builder, aarch64(), ErrorKind::kIncompatible,
                 {"needs the GNU C library 2.34 or later, but this machine has 2.31"});
  builder.version_needs.back().second = "GLIBC_ABI_DT_RELR";
  expect_refused(builder, aarch64(), ErrorKind::kIncompatible, {"2.36 or later"});
  // 2.4 is older than 2.31, whatever the order of the texts.
  builder.version_needs.back().second = "GLIBC_2.4";
  EXPECT_NO_THROW(check(builder, aarch64()));
  Host musl = aarch64();
  musl.glibc.reset();
  expect_refused(builder, musl, ErrorKind::kIncompatible, {"this machine has another C library"});
}

TEST(ElfCheckTest, VersionTexts) {
  EXPECT_EQ(parse_glibc_version("2.36"), (GlibcVersion{2, 36}));
  EXPECT_EQ(parse_glibc_version("2.3.4"), (GlibcVersion{2, 3}));
  for (const char* text : {"", "2", "2.", ".36", "2.x", "PRIVATE", "-2.1", "2.36x"}) {
    EXPECT_EQ(parse_glibc_version(text), std::nullopt) << text;
  }
}

TEST(ElfCheckTest, Generations) {
  EXPECT_EQ(kind_of_library("slots.so"), LibraryKind::kTvm);
  EXPECT_EQ(kind_of_library("direct.so"), LibraryKind::kTvm);
  EXPECT_EQ(kind_of_library("tvm021.so"), LibraryKind::kTvm021);
  EXPECT_EQ(kind_of_library("tvm022.so"), LibraryKind::kTvm022);
  EXPECT_EQ(kind_of_library("tvm_itself.so"), LibraryKind::kTvmItself);
  EXPECT_EQ(kind_of_library("other.so"), LibraryKind::kOther);
  EXPECT_EQ(kind_of_library("empty.so"), LibraryKind::kEmpty);
}

TEST(ElfCheckTest, MissingFunctionsAreListed) {
  ElfBuilder builder = model();
  builder.symbols.push_back({"expf", STT_NOTYPE, false, false});
  builder.symbols.push_back({"__gmon_start__", STT_NOTYPE, false, true});
  for (const char* name : {"cblas_sgemm", "f2", "f3", "f4", "f5", "f6", "f7"}) {
    builder.symbols.push_back({name, STT_NOTYPE, false, false});
  }
  expect_refused(
      builder, host_of(EM_AARCH64, 64, {}, {"expf"}), ErrorKind::kIncompatible,
      {"needs functions that are nowhere to be found: 'cblas_sgemm', 'f2', 'f3', 'f4', 'f5' and "
       "2 more",
       "-libs="});
  Host undecided = aarch64();
  undecided.find_symbol = [](const std::string&, std::span<const std::string_view>) {
    return SymbolSearch::kUnknown;
  };
  EXPECT_NO_THROW(check(builder, undecided)) << "left to the loader";
}

TEST(ElfCheckTest, SystemLibrariesAreNotLoaded) {
  ElfBuilder builder = model();
  builder.symbols.push_back({"TVMFFIEnvModRegisterSystemLibSymbol", STT_NOTYPE, false, false});
  expect_refused(builder, aarch64(), ErrorKind::kIncompatible,
                 {"is a system library of TVM's", "system_lib_prefix"});
  // Code that was not optimized names the function too.
  builder.symbols.push_back({"__tvm_ffi__library_bin", STT_OBJECT});
  Host host = aarch64();
  host.find_symbol = [](const std::string&, std::span<const std::string_view>) {
    return SymbolSearch::kFound;
  };
  EXPECT_NO_THROW(check(builder, host));
}

TEST(ElfCheckTest, ProgramWithoutTheExportsIsToldHowToLink) {
  ElfBuilder builder = model();
  builder.symbols.push_back({"TVMBackendParallelLaunch", STT_NOTYPE, false, false});
  expect_refused(builder, aarch64(), ErrorKind::kIncompatible,
                 {"'TVMBackendParallelLaunch'", "run_model::runtime"});
}

TEST(ElfCheckTest, LinkedWithTvmsOwnRuntime) {
  ElfBuilder builder = model();
  builder.needed = {"libc.so.6", "libtvm_runtime.so"};
  expect_refused(builder, aarch64(), ErrorKind::kIncompatible,
                 {"is linked with TVM's own runtime ('libtvm_runtime.so')"});
}

TEST(ElfCheckTest, CompiledFunctionsLeaveOutHelpers) {
  ElfBuilder builder = model();
  builder.symbols.push_back({"_init"});
  builder.symbols.push_back({"__extendhfsf2"});
  builder.symbols.push_back({"_lookup_linked_param"});
  builder.symbols.push_back({"memset", STT_FUNC, false, false});
  const auto bytes = builder.build();
  EXPECT_THAT(compiled_functions(ElfFile::parse(bytes, "m.so")),
              testing::UnorderedElementsAre("fused_add", "_lookup_linked_param"));
}

TEST(ElfCheckTest, FindsWhatTheProcessHas) {
  const Host host = Host::current();
  EXPECT_EQ(host.find_symbol("malloc", {}), SymbolSearch::kFound);
  EXPECT_EQ(host.find_symbol("TVMBackendParallelLaunch", {}), SymbolSearch::kFound);
  EXPECT_EQ(host.find_symbol("no_such_function", {}), SymbolSearch::kMissing);
  const std::string_view libraries[] = {"libno_such_library.so.1"};
  EXPECT_EQ(host.find_symbol("no_such_function", libraries), SymbolSearch::kUnknown);
}

}  // namespace
}  // namespace run_model
