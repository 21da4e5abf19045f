#include "runtime/elf/loadable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/runtime/elf/elf_builder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing_elf::BuiltRelocation;
using testing_elf::ElfBuilder;

// R_RISCV_… of the RISC-V psABI.
constexpr std::uint32_t kRelative = 3;
constexpr std::uint32_t kCopy = 4;
constexpr std::uint32_t kJumpSlot = 5;
constexpr std::uint32_t kThreadModule = 7;

ElfBuilder riscv(std::vector<BuiltRelocation> relocations = {}) {
  ElfBuilder builder;
  builder.machine = EM_RISCV;
  builder.symbols = {{"fused_add"}, {"memset", STT_NOTYPE, false, false}};
  builder.relocations = std::move(relocations);
  return builder;
}

void check_loadable_file(ElfBuilder builder) {
  const auto bytes = builder.build();
  check_loadable(ElfFile::parse(bytes, "library 'm.so'"));
}

void expect_damaged(const ElfBuilder& builder, const std::string& problem) {
  EXPECT_TRUE(throws_error([&] { check_loadable_file(builder); }, ErrorKind::kFormat,
                           {"'m.so' is a damaged ELF file", problem}));
}

TEST(ElfLoadableTest, AcceptsWhatLinkersMake) {
  const std::uint64_t code = riscv().code_address();
  EXPECT_NO_THROW(check_loadable_file(riscv()));
  EXPECT_NO_THROW(
      check_loadable_file(riscv({{0, kRelative, 0, code}, {8, 2, 2, 0}, {16, kJumpSlot, 2, 0}})));
}

// RISC-V's linker counts the function references among the other relocations too.
TEST(ElfLoadableTest, AcceptsOneTableInsideTheOther) {
  ElfBuilder builder = riscv({{0, 2, 1, 0}, {8, kJumpSlot, 2, 0}});
  builder.plt_relocations = 1;
  EXPECT_NO_THROW(check_loadable_file(builder));
}

// RISC-V's loader writes there without a look.
TEST(ElfLoadableTest, FunctionAddressesAreInWritableMemory) {
  ElfBuilder builder = riscv({{0, 2, 1, 0}, {8, kJumpSlot, 2, 0}});
  builder.plt_relocations = 1;
  for (const std::optional<std::size_t> place :
       {std::optional<std::size_t>(), std::optional<std::size_t>(1 << 20),
        std::optional<std::size_t>(4)}) {
    builder.function_addresses = place;
    expect_damaged(builder, "its table of function addresses");
  }
}

TEST(ElfLoadableTest, RelocationsStayWithinTheLibrary) {
  expect_damaged(riscv({{0, kRelative, 0, 1 << 20}}), "points outside of the library");
  expect_damaged(riscv({{1 << 20, kRelative, 0, 0}}), "not within a writable segment");
  expect_damaged(riscv({{0, kJumpSlot, 3, 0}}), "names a symbol that does not exist");
  expect_damaged(riscv({{0, kJumpSlot, 0, 0}}), "has no symbol");
  expect_damaged(riscv({{0, 2, 1, 0}, {0, 2, 2, 0}}), "two relocations are for the same place");
}

TEST(ElfLoadableTest, RelocationsAreOfKindsThatLibrariesHave) {
  expect_damaged(riscv({{0, kCopy, 2, 0}}), "is of the kind 4");
  expect_damaged(riscv({{0, 199, 2, 0}}), "is of the kind 199");
  expect_damaged(riscv({{0, kThreadModule, 0, 0}}), "there are no");
}

TEST(ElfLoadableTest, DynamicSectionIsComplete) {
  for (const std::uint64_t tag :
       {DT_RELA, DT_JMPREL, DT_PLTREL, DT_INIT_ARRAY, DT_VERNEED, DT_VERDEF}) {
    ElfBuilder builder = riscv();
    builder.more_dynamic = {{tag, builder.code_address()}};
    expect_damaged(builder, "its dynamic section lacks an entry");
  }
}

// Some CPUs do not read a table's entries across a word's boundary.
TEST(ElfLoadableTest, TablesBeginAtWholeWords) {
  ElfBuilder builder = riscv();
  builder.more_dynamic = {{DT_INIT_ARRAY, builder.code_address() + 4}, {DT_INIT_ARRAYSZ, 0}};
  expect_damaged(builder, "does not begin at a whole word");
  builder.more_dynamic = {{DT_INIT_ARRAY, builder.code_address() + 8}, {DT_INIT_ARRAYSZ, 0}};
  EXPECT_NO_THROW(check_loadable_file(builder));
}

TEST(ElfLoadableTest, InitialisersAreCode) {
  ElfBuilder builder = riscv();
  builder.more_dynamic = {{DT_INIT, builder.code_address()}};
  EXPECT_NO_THROW(check_loadable_file(builder));
  builder.more_dynamic = {{DT_INIT, 1 << 20}};
  expect_damaged(builder, "its initialisation function");
  builder.more_dynamic = {{DT_INIT_ARRAY, builder.code_address()}, {DT_INIT_ARRAYSZ, 1 << 20}};
  expect_damaged(builder, "its list of initialisation functions");
  builder.more_dynamic = {{DT_INIT_ARRAY, builder.code_address()}, {DT_INIT_ARRAYSZ, 8}};
  expect_damaged(builder, "an initialisation function has no address");
}

}  // namespace
}  // namespace run_model
