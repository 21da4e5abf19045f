#include "preprocess/jpeg_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include <run_model/error.h>
#include "fixtures.h"

namespace run_model {
namespace {

using testing::HasSubstr;

using File = std::vector<std::uint8_t>;

File picture(const std::string& name) {
  return fixtures::read_file(fixtures::data_path("pictures/" + name));
}

std::string refusal(const File& file) {
  try {
    check_jpeg(file, "picture");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kImage);
    return error.what();
  }
  return "";
}

std::size_t find_marker(const File& file, std::uint8_t marker) {
  const std::array<std::uint8_t, 2> bytes = {0xFF, marker};
  const auto found = std::search(file.begin(), file.end(), bytes.begin(), bytes.end());
  EXPECT_NE(found, file.end());
  return static_cast<std::size_t>(found - file.begin());
}

TEST(JpegCheck, AcceptsWhatIsSound) {
  for (const char* name :
       {"444.jpg", "422.jpg", "420.jpg", "gray.jpg", "cmyk.jpg", "progressive.jpg",
        "progressive_gray.jpg", "restart.jpg", "progressive_restart.jpg"}) {
    EXPECT_EQ(refusal(picture(name)), "") << name;
  }
  EXPECT_EQ(refusal(fixtures::read_file(fixtures::source_path("images/rocket.jpg"))), "");
}

// What a download tool or a camera leaves behind: the end of the data is missing, the end marker is
// there. stb_image alone shows the rest in grey.
TEST(JpegCheck, AnEndMarkerDoesNotHideMissingData) {
  for (const char* name : {"444.jpg", "420.jpg", "gray.jpg", "restart.jpg"}) {
    const File file = picture(name);
    const std::size_t scan = find_marker(file, 0xDA);
    for (std::size_t size = scan + 16; size + 4 < file.size(); ++size) {
      File cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      cut.insert(cut.end(), {0xFF, 0xD9});
      EXPECT_NE(refusal(cut), "") << name << " cut off after " << size << " of " << file.size();
    }
  }
}

TEST(JpegCheck, RestartMarkersAreCounted) {
  const File file = picture("restart.jpg");
  const std::size_t first = find_marker(file, 0xD0);
  File missing = file;
  missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(first),
                missing.begin() + static_cast<std::ptrdiff_t>(first) + 2);
  EXPECT_NE(refusal(missing), "");
  File swapped = file;
  swapped[first + 1] = 0xD3;
  EXPECT_THAT(refusal(swapped), HasSubstr("restart marker is missing or out of order"));
  File surplus = file;
  surplus.insert(surplus.end() - 2, {0xFF, 0xD5});
  EXPECT_THAT(refusal(surplus), HasSubstr("more restart markers"));
}

TEST(JpegCheck, OtherKindsOfJpegAreNamed) {
  File arithmetic = picture("444.jpg");
  arithmetic[find_marker(arithmetic, 0xC0) + 1] = 0xC9;
  EXPECT_THAT(refusal(arithmetic), HasSubstr("SOF9"));
  File deep = picture("444.jpg");
  deep[find_marker(deep, 0xC0) + 4] = 12;
  EXPECT_THAT(refusal(deep), HasSubstr("12 bits a sample"));
}

TEST(JpegCheck, AMissingColorComponentIsNoticed) {
  // The frame of a colour picture before the scan of a grey one.
  File file = picture("gray.jpg");
  const std::size_t frame = find_marker(file, 0xC0);
  file[frame + 3] = 17;
  file[frame + 9] = 3;
  const std::array<std::uint8_t, 6> components = {2, 0x11, 0, 3, 0x11, 0};
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(frame) + 13, components.begin(),
              components.end());
  EXPECT_THAT(refusal(file), HasSubstr("before all its colour components"));
}

TEST(JpegCheck, ManyScansAreRefused) {
  const File file = picture("progressive.jpg");
  const std::size_t scan = find_marker(file, 0xDA);
  // A refining scan of the DC coefficients of component 1: a bit a block, and here no data at all
  // would be needed were the number of scans unlimited.
  const File refine = {0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 0, 0x10};
  File many(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(scan));
  for (int i = 0; i < 600; ++i) {
    many.insert(many.end(), refine.begin(), refine.end());
    many.insert(many.end(), 64, 0x55);
  }
  many.insert(many.end(), {0xFF, 0xD9});
  EXPECT_THAT(refusal(many), HasSubstr("more than 500 scans"));
}

}  // namespace
}  // namespace run_model
