#include <run_model/npy.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/has_elements.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

const std::filesystem::path kData = RUN_MODEL_SOURCE_DIR "/tests/artifacts/data";

template <typename T>
std::vector<T> ramp(int count, T step) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<T>(i * step));
  return values;
}

Tensor parse_array(const std::string& bytes) {
  return parse_npy(std::as_bytes(std::span(bytes)), "'input.npy'");
}

// A version 1 file with that description.
std::string npy_with(const std::string& description, const std::string& data = "") {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(description.size() & 0xFF);
  bytes += static_cast<char>(description.size() >> 8);
  return bytes + description + data;
}

TEST(NpyTest, ReadsFloat32) {
  const Tensor tensor = read_npy(kData / "float32.npy");
  EXPECT_TRUE(has_elements(tensor.shape(), {2, 3, 4}));
  EXPECT_EQ(dtype_name(tensor.dtype()), "float32");
  EXPECT_THAT(tensor.elements<float>(), ElementsAreArray(ramp<float>(24, 0.125F)));
  EXPECT_TRUE(tensor.aligned());
}

TEST(NpyTest, PutsFortranOrderIntoRowMajorOrder) {
  const Tensor tensor = read_npy(kData / "float64_fortran.npy");
  EXPECT_TRUE(has_elements(tensor.shape(), {2, 3, 4}));
  EXPECT_THAT(tensor.elements<double>(), ElementsAreArray(ramp<double>(24, 1.0)));
}

template <typename T>
void expect_small_ramp(const std::string& dtype) {
  const Tensor tensor = read_npy(kData / (dtype + ".npy"));
  EXPECT_EQ(dtype_name(tensor.dtype()), dtype);
  EXPECT_TRUE(has_elements(tensor.elements<T>(), {0, 1, 2, 3, 4}));
}

TEST(NpyTest, ReadsEveryIntegerType) {
  expect_small_ramp<std::int8_t>("int8");
  expect_small_ramp<std::int16_t>("int16");
  expect_small_ramp<std::int32_t>("int32");
  expect_small_ramp<std::int64_t>("int64");
  expect_small_ramp<std::uint8_t>("uint8");
  expect_small_ramp<std::uint16_t>("uint16");
  expect_small_ramp<std::uint32_t>("uint32");
  expect_small_ramp<std::uint64_t>("uint64");
}

TEST(NpyTest, ReadsHalfPrecisionAndBool) {
  const Tensor half = read_npy(kData / "float16.npy");
  EXPECT_EQ(dtype_name(half.dtype()), "float16");
  EXPECT_TRUE(has_elements(half.elements<std::uint16_t>(), {0, 0x3C00, 0x4000, 0x4200, 0x4400}));
  const Tensor boolean = read_npy(kData / "bool.npy");
  EXPECT_EQ(dtype_name(boolean.dtype()), "bool");
  EXPECT_TRUE(has_elements(boolean.elements<std::uint8_t>(), {1, 0, 1}));
}

TEST(NpyTest, ReadsScalarsAndEmptyArrays) {
  const Tensor scalar = read_npy(kData / "scalar.npy");
  EXPECT_THAT(scalar.shape(), IsEmpty());
  EXPECT_TRUE(has_elements(scalar.elements<std::int64_t>(), {7}));
  EXPECT_TRUE(has_elements(read_npy(kData / "empty.npy").shape(), {0, 3}));
}

TEST(NpyTest, ReadsLaterFormatVersions) {
  for (const char* name : {"version2.npy", "version3.npy"}) {
    EXPECT_THAT(read_npy(kData / name).elements<std::int32_t>(), ElementsAreArray(ramp(24, 1)))
        << name;
  }
}

TEST(NpyTest, WritesWhatNumpyWrites) {
  const TemporaryFolder folder;
  for (const std::string name : {"float32", "int8", "int16", "int32", "int64", "uint8", "uint16",
                                 "uint32", "uint64", "float16", "bool", "scalar", "empty"}) {
    const std::filesystem::path original = kData / (name + ".npy");
    write_npy(folder / "copy.npy", read_npy(original));
    EXPECT_EQ(TemporaryFolder::read(folder / "copy.npy"), TemporaryFolder::read(original)) << name;
  }
}

TEST(NpyTest, RefusesElementTypesThatTensorsLack) {
  const auto reading = [](const char* name) { return [name] { read_npy(kData / name); }; };
  EXPECT_TRUE(throws_error(reading("big_endian.npy"), ErrorKind::kFormat, "element type '>f4'"));
  EXPECT_TRUE(throws_error(reading("complex.npy"), ErrorKind::kFormat, "element type '<c8'"));
  EXPECT_TRUE(throws_error(reading("text.npy"), ErrorKind::kFormat, "element type '<U2'"));
  EXPECT_TRUE(throws_error(reading("object.npy"), ErrorKind::kFormat, "element type '|O'"));
  EXPECT_TRUE(throws_error(reading("structured.npy"), ErrorKind::kFormat, "structured"));
}

TEST(NpyTest, RefusesToWriteTypesThatNumpyLacks) {
  const TemporaryFolder folder;
  const Tensor tensor = Tensor::empty({2}, parse_dtype("int4"));
  EXPECT_TRUE(
      throws_error([&] { write_npy(folder / "x.npy", tensor); }, ErrorKind::kMismatch, "int4"));
  EXPECT_TRUE(throws_error([&] { write_npy(folder / "x.npy", Tensor()); }, ErrorKind::kMismatch,
                           "an empty tensor"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x.npy"));
}

TEST(NpyTest, HasBfloat16AsMlDtypesWritesIt) {
  const TemporaryFolder folder;
  const Tensor tensor = Tensor::empty({2}, parse_dtype("bfloat16"));
  const std::uint16_t bits[] = {0x3FC0, 0xC000};  // 1.5 and -2
  std::memcpy(tensor.data(), bits, sizeof(bits));
  write_npy(folder / "x.npy", tensor);
  const Tensor read = read_npy(folder / "x.npy");
  EXPECT_EQ(to_doubles(read), (std::vector<double>{1.5, -2}));
  EXPECT_NE(npy_header(tensor).find("'descr': '<V2'"), std::string::npos);
}

TEST(NpyTest, RefusesMalformedDescriptions) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[1, 2, 3]", "where '{' was expected"},
      {"{'descr': '<f4', 'fortran_order': False}", "no 'descr'"},
      {"{'descr': '<f4', 'descr': '<f4'}", "repeated key 'descr'"},
      {"{'other': 1}", "unexpected or repeated key 'other'"},
      {"{'descr: 1}", "unterminated string"},
      {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "neither True nor False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "no whole number"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1}", "where ')' was expected"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "after the closing brace"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "63 bits"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
       "impossible shape"},
  };
  for (const auto& [description, message] : cases) {
    const std::string bytes = npy_with(description);
    EXPECT_TRUE(throws_error([&] { parse_array(bytes); }, ErrorKind::kFormat, message));
  }
  std::string dimensions;
  for (int i = 0; i < 65; ++i) dimensions += "1,";
  EXPECT_TRUE(throws_error(
      [&] {
        parse_array(
            npy_with("{'descr': '<f4', 'fortran_order': False, 'shape': (" + dimensions + ")}"));
      },
      ErrorKind::kFormat, "more than 64 dimensions"));
}

TEST(NpyTest, RefusesDataOfAnotherSize) {
  const std::string description = "{'descr': '<i2', 'fortran_order': False, 'shape': (3L,)}";
  EXPECT_TRUE(has_elements(parse_array(npy_with(description, "abcdef")).shape(), {3}));
  EXPECT_TRUE(throws_error([&] { parse_array(npy_with(description, "abcde")); }, ErrorKind::kFormat,
                           "holds 5 bytes of data, but int16 [3] needs 6"));
  EXPECT_TRUE(throws_error([&] { parse_array(npy_with(description, "abcdefg")); },
                           ErrorKind::kFormat, "holds 7 bytes"));
}

TEST(NpyTest, EveryTruncationIsRefused) {
  const std::string bytes = TemporaryFolder::read(kData / "float32.npy");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_TRUE(throws_error([&] { parse_array(bytes.substr(0, length)); }, ErrorKind::kFormat,
                             "'input.npy'"))
        << length;
  }
}

TEST(NpyTest, UnknownVersionsAreRefused) {
  std::string bytes = TemporaryFolder::read(kData / "float32.npy");
  bytes[6] = 4;
  EXPECT_TRUE(throws_error([&] { parse_array(bytes); }, ErrorKind::kFormat, "format version is 4"));
}

TEST(NpyTest, FilesThatCannotBeReadOrWrittenAreNamed) {
  EXPECT_TRUE(throws_error([] { read_npy("/nonexistent/x.npy"); }, ErrorKind::kFile,
                           "'/nonexistent/x.npy'"));
  EXPECT_TRUE(throws_error([] { read_npy("/"); }, ErrorKind::kFile, "'/'"));
  const Tensor tensor = read_npy(kData / "float32.npy");
  EXPECT_TRUE(throws_error([&] { write_npy("/nonexistent/x.npy", tensor); }, ErrorKind::kFile,
                           "'/nonexistent/x.npy'"));
  EXPECT_TRUE(throws_error([&] { write_npy("/dev/full", tensor); }, ErrorKind::kFile,
                           "No space left on device"));
}

}  // namespace
}  // namespace run_model
