#include "runtime/elf/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/mapped_file.h"
#include "runtime/elf/target.h"
#include "runtime/loading/library_check.h"
#include "tests/damage_stride.h"
#include "tests/has_elements.h"
#include "tests/runtime/elf/elf_builder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing_elf::ElfBuilder;

ElfFile parse(std::span<const std::byte> bytes) { return ElfFile::parse(bytes, "library 'm.so'"); }

std::vector<std::byte> library_bytes(const std::string& name) {
  const auto file = MappedFile::open(std::filesystem::path(LIBRARY_DIR) / name);
  return {file->bytes().begin(), file->bytes().end()};
}

struct Form {
  int bits;
  bool little_endian;
};

class ElfFormTest : public testing::TestWithParam<Form> {};

TEST_P(ElfFormTest, ReadsEveryPart) {
  ElfBuilder builder;
  builder.bits = GetParam().bits;
  builder.little_endian = GetParam().little_endian;
  builder.machine = EM_MIPS;
  builder.flags = 0x12345678;
  builder.needed = {"libm.so.6", "libc.so.6"};
  builder.symbols = {{"fused_add", STT_FUNC, true, false},
                     {"__TVMFuncCall", STT_OBJECT, true, true},
                     {"memset", STT_NOTYPE, false, false},
                     {"__gmon_start__", STT_NOTYPE, false, true}};
  builder.version_needs = {{"libc.so.6", "GLIBC_2.17"}, {"libm.so.6", "GLIBC_2.29"}};
  const auto bytes = builder.build();
  const ElfFile elf = parse(bytes);

  EXPECT_EQ(elf.target().bits, GetParam().bits);
  EXPECT_EQ(elf.target().little_endian, GetParam().little_endian);
  EXPECT_EQ(elf.target().machine, EM_MIPS);
  EXPECT_EQ(elf.flags(), 0x12345678u);
  EXPECT_TRUE(has_elements(elf.needed(), {"libm.so.6", "libc.so.6"}));
  ASSERT_EQ(elf.symbols().size(), 4u);
  EXPECT_EQ(elf.symbols()[0].name, "fused_add");
  EXPECT_TRUE(elf.symbols()[1].weak);
  EXPECT_TRUE(elf.symbols()[1].defined);
  EXPECT_FALSE(elf.symbols()[2].defined);
  EXPECT_FALSE(elf.symbols()[2].weak);
  EXPECT_TRUE(elf.symbols()[3].weak);
  EXPECT_EQ(elf.find("fused_add"), &elf.symbols()[0]);
  EXPECT_EQ(elf.find("memset"), nullptr);
  ASSERT_EQ(elf.version_needs().size(), 2u);
  EXPECT_EQ(elf.version_needs()[1].library, "libm.so.6");
  EXPECT_EQ(elf.version_needs()[1].version, "GLIBC_2.29");
}

TEST_P(ElfFormTest, EveryTruncationIsNoticed) {
  ElfBuilder builder;
  builder.bits = GetParam().bits;
  builder.little_endian = GetParam().little_endian;
  builder.symbols = {{"fused_add"}};
  const auto bytes = builder.build();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_TRUE(
        throws_error([&] { parse(std::span(bytes).first(length)); }, ErrorKind::kFormat, "'m.so'"));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, ElfFormTest,
                         testing::Values(Form{64, true}, Form{64, false}, Form{32, true},
                                         Form{32, false}),
                         [](const auto& instance) {
                           return std::to_string(instance.param.bits) +
                                  (instance.param.little_endian ? "LittleEndian" : "BigEndian");
                         });

TEST(ElfFileTest, ReadsWhatTheLinkerMade) {
  const auto bytes = library_bytes("slots.so");
  const ElfFile elf = parse(bytes);
  const ElfSymbol* function = elf.find("fused_add_one");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function->type, STT_FUNC);
  EXPECT_GT(function->bytes, 0u);
  const ElfSymbol* slot = elf.find("__TVMBackendParallelLaunch");
  ASSERT_NE(slot, nullptr);
  EXPECT_TRUE(slot->weak);
  EXPECT_EQ(slot->bytes, sizeof(void*));
}

TEST(ElfFileTest, GivesTheBytesOfAVariable) {
  const auto bytes = library_bytes("slots.so");
  const ElfFile elf = parse(bytes);
  const ElfSymbol* main = elf.find("__tvm_main__");
  ASSERT_NE(main, nullptr);
  const auto content = elf.bytes_of(*main);
  ASSERT_EQ(content.size(), sizeof("fused_add_one"));
  EXPECT_EQ(std::memcmp(content.data(), "fused_add_one", content.size()), 0);
  // Memory that begins as zeroes is not in the file.
  EXPECT_TRUE(elf.bytes_of(*elf.find("__tvm_module_ctx")).empty());
}

TEST(ElfFileTest, NeedsNoSectionHeaders) {
  auto bytes = library_bytes("slots.so");
  const std::size_t with_sections = parse(bytes).symbols().size();
  const bool wide = parse(bytes).target().bits == 64;
  std::memset(bytes.data() + (wide ? offsetof(Elf64_Ehdr, e_shoff) : offsetof(Elf32_Ehdr, e_shoff)),
              0, wide ? 8 : 4);
  const ElfFile elf = parse(bytes);
  EXPECT_EQ(elf.symbols().size(), with_sections);
  EXPECT_NE(elf.find("fused_add_one"), nullptr);
}

// Each section and symbol is looked for in all segments: their number is bounded.
TEST(ElfFileTest, RefusesMoreSegmentsThanAnyLinkerMakes) {
  ElfBuilder builder;
  auto bytes = builder.build();
  bytes[offsetof(Elf64_Ehdr, e_phnum)] = std::byte{0x01};
  bytes[offsetof(Elf64_Ehdr, e_phnum) + 1] = std::byte{0x01};
  EXPECT_TRUE(throws_error([&] { parse(bytes); }, ErrorKind::kFormat,
                           "it has 257 program headers, expected at most 256"));
}

TEST(ElfFileTest, RefusesASegmentThatEndsOneByteBeyondTheFile) {
  ElfBuilder builder;
  builder.symbols = {{"fused_add"}};
  auto bytes = builder.build();
  Elf64_Ehdr file;
  std::memcpy(&file, bytes.data(), sizeof file);
  for (std::size_t i = 0; i < file.e_phnum; ++i) {
    std::byte* at = bytes.data() + file.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    std::memcpy(&segment, at, sizeof segment);
    if (segment.p_type != PT_LOAD) continue;
    segment.p_filesz = segment.p_memsz = bytes.size() - segment.p_offset;
    std::memcpy(at, &segment, sizeof segment);
    EXPECT_NO_THROW(parse(bytes));
    ++segment.p_filesz;
    std::memcpy(at, &segment, sizeof segment);
    EXPECT_TRUE(throws_error([&] { parse(bytes); }, ErrorKind::kFormat,
                             "part of its code or data lies beyond them"));
    return;
  }
  FAIL() << "the library has no segment that is loaded";
}

TEST(ElfFileTest, SaysWhatAnotherFileIs) {
  const std::string json = "{\"nodes\": []}";
  EXPECT_TRUE(throws_error([&] { parse(std::as_bytes(std::span(json))); }, ErrorKind::kFormat,
                           "library 'm.so' is JSON text, expected a compiled library (ELF)"));
  ElfBuilder builder;
  builder.type = ET_REL;
  EXPECT_TRUE(throws_error([&] { parse(builder.build()); }, ErrorKind::kFormat,
                           {"is an object file (.o)", "cc -shared"}));
  builder.type = ET_EXEC;
  EXPECT_TRUE(throws_error([&] { parse(builder.build()); }, ErrorKind::kFormat, "is a program"));
  builder.type = ET_CORE;
  EXPECT_TRUE(
      throws_error([&] { parse(builder.build()); }, ErrorKind::kFormat, "ELF file of type 4"));
  builder.type = ET_DYN;
  builder.more_dynamic = {{DT_FLAGS_1, DF_1_PIE}};
  EXPECT_TRUE(throws_error([&] { parse(builder.build()); }, ErrorKind::kFormat, "is a program"));
}

TEST(ElfFileTest, FloatAbiOfArmByFlags) {
  ElfBuilder builder;
  builder.bits = 32;
  builder.machine = EM_ARM;
  builder.flags = EF_ARM_EABI_VER5 | EF_ARM_ABI_FLOAT_HARD;
  EXPECT_EQ(parse(builder.build()).target().float_abi, FloatAbi::kHard);
  builder.flags = EF_ARM_EABI_VER5 | EF_ARM_ABI_FLOAT_SOFT;
  EXPECT_EQ(parse(builder.build()).target().float_abi, FloatAbi::kSoft);
  builder.flags = EF_ARM_EABI_VER5;
  EXPECT_EQ(parse(builder.build()).target().float_abi, FloatAbi::kUnspecified);
}

// A build attributes section: version 'A', then length, vendor, file scope, length, attributes.
std::string arm_attributes(const std::string& attributes, bool little_endian = true) {
  const auto length = [&](std::size_t value) {
    std::string out(4, '\0');
    out[little_endian ? 0 : 3] = static_cast<char>(value);
    return out;
  };
  const std::string scope = '\1' + length(5 + attributes.size()) + attributes;
  const std::string vendor = std::string("aeabi") + '\0' + scope;
  return 'A' + length(4 + vendor.size()) + vendor;
}

TEST(ElfFileTest, FloatAbiOfArmByAttributes) {
  using namespace std::string_literals;
  ElfBuilder builder;
  builder.bits = 32;
  builder.machine = EM_ARM;
  builder.flags = EF_ARM_EABI_VER5;
  const auto float_abi = [&](const std::string& attributes) {
    builder.arm_attributes = attributes;
    return parse(builder.build()).target().float_abi;
  };
  // CPU name "7-A" (a string), FP architecture (10), VFP arguments (28).
  EXPECT_EQ(float_abi(arm_attributes("\5"
                                     "7-A\0\x0a\3\x1c\1"s)),
            FloatAbi::kHard);
  EXPECT_EQ(float_abi(arm_attributes("\5"
                                     "7-A\0\x0a\3\x1c\0"s)),
            FloatAbi::kSoft);
  EXPECT_EQ(float_abi(arm_attributes("\5"
                                     "7-A\0\x0a\3"s)),
            FloatAbi::kSoft)
      << "0 is the default";
  EXPECT_EQ(float_abi(arm_attributes("\x1c\3"s)), FloatAbi::kUnspecified) << "fits both";
  EXPECT_EQ(float_abi("B" + arm_attributes("\x1c\1").substr(1)), FloatAbi::kUnspecified);
  builder.little_endian = false;
  EXPECT_EQ(float_abi(arm_attributes("\x1c\1", false)), FloatAbi::kHard);
}

TEST(ElfFileTest, DamagedArmAttributesSayNothing) {
  const std::string section = arm_attributes(std::string("\5"
                                                         "7-A\0\x0a\3\x1c\1",
                                                         9));
  for (std::size_t length = 0; length < section.size(); ++length) {
    const FloatAbi abi = arm_attributes_float_abi(
        ByteReader(std::as_bytes(std::span(section)).first(length), "library"));
    EXPECT_EQ(abi, FloatAbi::kUnspecified) << length;
  }
}

TEST(ElfFileTest, FloatAbiOfRiscv) {
  ElfBuilder builder;
  builder.machine = EM_RISCV;
  const std::pair<std::uint32_t, FloatAbi> cases[] = {{0x1, FloatAbi::kSoft},
                                                      {0x3, FloatAbi::kSingle},
                                                      {0x5, FloatAbi::kHard},
                                                      {0x7, FloatAbi::kQuad}};
  for (const auto& [flags, expected] : cases) {
    builder.flags = flags;
    EXPECT_EQ(parse(builder.build()).target().float_abi, expected) << flags;
  }
}

TEST(ElfFileTest, TruncatedLibraryIsNoticedAtEveryLength) {
  const auto bytes = library_bytes("bare.so");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_TRUE(
        throws_error([&] { parse(std::span(bytes).first(length)); }, ErrorKind::kFormat, "'m.so'"));
  }
}

// Whatever byte is changed: parsing and checking end, in an Error or with views inside the file.
// Run under AddressSanitizer and UBSan this also shows that nothing is read outside of it.
TEST(ElfFileTest, NoChangedByteLeadsOutside) {
  Host host = Host::current();
  host.find_symbol = [](const std::string&, std::span<const std::string_view>) {
    return SymbolSearch::kFound;
  };
  for (const char* name : {"bare.so", "direct.so"}) {
    const auto original = library_bytes(name);
    std::size_t refused = 0;
    for (std::size_t at = 0; at < original.size(); at += damage_stride()) {
      for (const unsigned char mask : {0x01, 0x40, 0xff}) {
        auto bytes = original;
        bytes[at] ^= std::byte{mask};
        try {
          const ElfFile elf = parse(bytes);
          for (const ElfSymbol& symbol : elf.symbols()) {
            const auto content = elf.bytes_of(symbol);
            if (!content.empty()) {
              ASSERT_GE(content.data(), bytes.data());
              ASSERT_LE(content.data() + content.size(), bytes.data() + bytes.size());
            }
          }
          check_library(elf, host);
        } catch (const Error& error) {
          EXPECT_TRUE(error.kind() == ErrorKind::kFormat ||
                      error.kind() == ErrorKind::kIncompatible)
              << error.what();
          ++refused;
        }
      }
    }
    EXPECT_GT(refused, 500u / damage_stride()) << name;
  }
}

}  // namespace
}  // namespace run_model
