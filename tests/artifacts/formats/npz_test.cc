#include <run_model/npz.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <run_model/npy.h>
#include "artifacts/formats/zip.h"
#include "tests/has_elements.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

const std::filesystem::path kNpzFiles = RUN_MODEL_SOURCE_DIR "/tests/artifacts/data";

TEST(NpzTest, ReadsStoredArrays) {
  const std::vector<NamedTensor> tensors = read_npz(kNpzFiles / "stored.npz");
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "data");
  EXPECT_TRUE(has_elements(tensors[0].tensor.shape(), {2, 3, 4}));
  EXPECT_EQ(tensors[0].tensor.elements<float>()[23], 23.0F);
  EXPECT_EQ(tensors[1].name, "mask");
  EXPECT_TRUE(has_elements(tensors[1].tensor.elements<std::uint8_t>(), {1, 0}));
}

TEST(NpzTest, ReadsDeflatedArrays) {
  const std::vector<NamedTensor> tensors = read_npz(kNpzFiles / "deflated.npz");
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_TRUE(has_elements(tensors[0].tensor.shape(), {64, 64}));
  EXPECT_THAT(tensors[0].tensor.elements<float>(), Each(0.0F));
  EXPECT_EQ(tensors[1].tensor.elements<float>()[7], 7.0F);
}

TEST(NpzTest, WrittenArchivesReadBack) {
  const TemporaryFolder folder;
  write_npz(folder / "out.npz", read_npz(kNpzFiles / "stored.npz"));
  const std::vector<NamedTensor> tensors = read_npz(folder / "out.npz");
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "data");
  EXPECT_EQ(tensors[0].tensor.elements<float>()[23], 23.0F);
  EXPECT_EQ(tensors[1].name, "mask");
}

TEST(NpzTest, EqualTensorsGiveEqualFiles) {
  const TemporaryFolder folder;
  const std::vector<NamedTensor> tensors = read_npz(kNpzFiles / "stored.npz");
  write_npz(folder / "a.npz", tensors);
  write_npz(folder / "b.npz", tensors);
  EXPECT_EQ(TemporaryFolder::read(folder / "a.npz"), TemporaryFolder::read(folder / "b.npz"));
}

TEST(NpzTest, EmptyArchivesAndEmptyTensorsWork) {
  const TemporaryFolder folder;
  write_npz(folder / "none.npz", {});
  EXPECT_THAT(read_npz(folder / "none.npz"), IsEmpty());
  const std::vector<NamedTensor> empty{{"e", read_npy(kNpzFiles / "empty.npy")}};
  write_npz(folder / "empty.npz", empty);
  EXPECT_TRUE(has_elements(read_npz(folder / "empty.npz").at(0).tensor.shape(), {0, 3}));
}

TEST(NpzTest, RefusesMembersThatAreNoArrays) {
  const TemporaryFolder folder;
  const std::string text = "hello";
  ZipWriter with_text;
  with_text.add("readme.txt", {std::as_bytes(std::span(text))});
  with_text.write(folder / "text.npz");
  EXPECT_TRUE(throws_error([&] { read_npz(folder / "text.npz"); }, ErrorKind::kFormat,
                           "member 'readme.txt' is not an array"));
  ZipWriter with_fake;
  with_fake.add("a.npy", {std::as_bytes(std::span(text))});
  with_fake.write(folder / "fake.npz");
  EXPECT_TRUE(throws_error([&] { read_npz(folder / "fake.npz"); }, ErrorKind::kFormat,
                           "member 'a.npy' is not a usable NumPy file"));
}

TEST(NpzTest, RefusesRepeatedMembers) {
  const TemporaryFolder folder;
  ZipWriter archive;
  archive.add("a.npy", {});
  archive.add("a.npy", {});
  archive.write(folder / "twice.npz");
  EXPECT_TRUE(throws_error([&] { read_npz(folder / "twice.npz"); }, ErrorKind::kFormat,
                           "holds the member 'a.npy' twice"));

  const Tensor number = Tensor::empty({}, parse_dtype("float32"));
  const std::vector<NamedTensor> two{{"a", number}, {"a", number}};
  EXPECT_TRUE(throws_error([&] { write_npz(folder / "two.npz", two); }, ErrorKind::kMismatch,
                           "would be called 'a'"));
  EXPECT_FALSE(std::filesystem::exists(folder / "two.npz"));
}

TEST(NpzTest, ALoneArrayIsNoArchive) {
  EXPECT_TRUE(throws_error([] { read_npz(kNpzFiles / "float32.npy"); }, ErrorKind::kFormat,
                           "does not begin with a zip signature"));
}

TEST(NpzTest, EveryTruncationIsRefused) {
  const TemporaryFolder folder;
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string bytes = TemporaryFolder::read(kNpzFiles / name);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      folder.write("cut.npz", bytes.substr(0, length));
      EXPECT_TRUE(
          throws_error([&] { read_npz(folder / "cut.npz"); }, ErrorKind::kFormat, "cut.npz'"))
          << name << " cut to " << length;
    }
  }
}

// A changed byte either is one of those that nothing depends on (time stamps, versions,
// attributes), or is refused; what is accepted holds the same arrays.
TEST(NpzTest, EveryChangedByteIsHarmlessOrRefused) {
  const TemporaryFolder folder;
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string bytes = TemporaryFolder::read(kNpzFiles / name);
    const std::vector<NamedTensor> original = read_npz(kNpzFiles / name);
    int refused = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ 0xFF);
      folder.write("changed.npz", changed);
      try {
        const std::vector<NamedTensor> tensors = read_npz(folder / "changed.npz");
        ASSERT_EQ(tensors.size(), original.size()) << name << " byte " << i;
        for (std::size_t t = 0; t < tensors.size(); ++t) {
          const Tensor& tensor = tensors[t].tensor;
          ASSERT_EQ(tensor.shape(), original[t].tensor.shape()) << name << " byte " << i;
          const auto* data = static_cast<const char*>(tensor.data());
          ASSERT_TRUE(std::equal(data, data + tensor.nbytes(),
                                 static_cast<const char*>(original[t].tensor.data())))
              << name << " byte " << i;
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kFormat) << name << " byte " << i << error.what();
        ++refused;
      }
    }
    EXPECT_GT(refused, static_cast<int>(bytes.size() / 2)) << name;
  }
}

TEST(NpzTest, RefusesSizesThatDeflateCannotReach) {
  const TemporaryFolder folder;
  std::string bytes = TemporaryFolder::read(kNpzFiles / "deflated.npz");
  const std::size_t directory = bytes.find("PK\x01\x02");
  ASSERT_NE(directory, std::string::npos);
  bytes.replace(directory + 24, 4, "\xF0\xFF\xFF\xFF", 4);
  folder.write("bomb.npz", bytes);
  EXPECT_TRUE(throws_error([&] { read_npz(folder / "bomb.npz"); }, ErrorKind::kFormat,
                           "which is impossible"));
}

}  // namespace
}  // namespace run_model
