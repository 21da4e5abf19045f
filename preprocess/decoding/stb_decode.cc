#include "preprocess/decoding/decoders.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <run_model/error.h>

namespace {

// The most that stb_image may allocate at once on this thread; set from the picture's header.
thread_local std::size_t stb_largest_allocation = 0;

// Zeroed, so that pixels which a damaged file leaves out are the same on every run.
void* stb_allocate(std::size_t bytes) {
  return bytes <= stb_largest_allocation ? std::calloc(1, bytes) : nullptr;
}

void* stb_reallocate(void* memory, std::size_t bytes) {
  return bytes <= stb_largest_allocation ? std::realloc(memory, bytes) : nullptr;
}

// stb_image asserts what its authors believe to hold; a library must not end the program over it.
struct StbAssertion {};

}  // namespace

// JPEG gives the same bytes with and without SIMD (stb_image computes both in the same fixed
// point), so its SSE2 path stays on where the compiler has it.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_NO_BMP
#define STBI_FAILURE_USERMSG
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_NO_PIC
#define STBI_NO_PNM
#define STBI_MAX_DIMENSIONS run_model::kMaxImageSide
#define STBI_MALLOC(bytes) stb_allocate(bytes)
#define STBI_REALLOC(memory, bytes) stb_reallocate(memory, bytes)
#define STBI_FREE(memory) std::free(memory)
#define STBI_ASSERT(condition) \
  do {                         \
    if (!(condition)) {        \
      throw StbAssertion();    \
    }                          \
  } while (false)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wshadow"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace run_model {
namespace {

// Feeds stb_image and notes when it asks for bytes beyond the end of the file: it goes on with
// zeros there, which in most formats makes black or grey pixels instead of an error.
class Source {
 public:
  explicit Source(Bytes file) : file_(file) {}

  bool starved() const { return starved_; }

  static int read(void* user, char* to, int wanted) {
    auto& source = *static_cast<Source*>(user);
    const auto count = std::min(static_cast<std::size_t>(std::max(wanted, 0)), source.left());
    std::memcpy(to, source.file_.data() + source.position_, count);
    source.position_ += count;
    // The first read fills stb_image's buffer. Later ones of the same place refill it, and may be
    // short at the end of the file; any other read wants all of its bytes.
    if (source.buffer_ == nullptr) {
      source.buffer_ = to;
    }
    const bool refill = source.buffer_ == to;
    source.starved_ |= refill ? count == 0 : count < static_cast<std::size_t>(std::max(wanted, 0));
    return static_cast<int>(count);
  }

  static void skip(void* user, int count) {
    auto& source = *static_cast<Source*>(user);
    const std::size_t step = std::min(static_cast<std::size_t>(std::max(count, 0)), source.left());
    source.starved_ |= count < 0 || step < static_cast<std::size_t>(count);
    source.position_ += step;
  }

  static int at_end(void* user) { return static_cast<Source*>(user)->left() == 0 ? 1 : 0; }

 private:
  std::size_t left() const { return file_.size() - position_; }

  Bytes file_;
  std::size_t position_ = 0;
  const char* buffer_ = nullptr;
  bool starved_ = false;
};

constexpr stbi_io_callbacks kCallbacks = {Source::read, Source::skip, Source::at_end};

[[noreturn]] void refuse(const std::string& what, const std::string& found) {
  throw Error(ErrorKind::kImage, what + ": the picture cannot be decoded: " + found,
              "copy or download the file again, or convert it to PNG");
}

std::string reason() {
  const char* text = stbi_failure_reason();
  return text != nullptr && *text != '\0' ? text : "its data are damaged";
}

// The largest block that a sound picture of this size needs: progressive JPEG keeps 16-bit
// coefficients of up to four channels, its sides filled up to blocks of 32 pixels.
std::size_t largest_allocation(int width, int height, std::size_t file_bytes) {
  const auto pixels =
      (static_cast<std::size_t>(width) + 32) * (static_cast<std::size_t>(height) + 32);
  return 16 * pixels + 2 * file_bytes + (std::size_t{1} << 20);
}

}  // namespace

RawPicture decode_with_stb(Bytes file, const std::string& what) {
  int width = 0;
  int height = 0;
  int channels = 0;
  RawPicture picture;
  try {
    stb_largest_allocation = std::size_t{1} << 20;  // the state of a decoder, no pixels
    Source header(file);
    if (stbi_info_from_callbacks(&kCallbacks, &header, &width, &height, &picture.channels) == 0) {
      // The reason that remains is the last format's, which this is not; loading tells the right
      // one.
      Source again(file);
      std::free(stbi_load_from_callbacks(&kCallbacks, &again, &width, &height, &channels, 0));
      refuse(what, again.starved() ? "it is truncated" : reason());
    }
    check_image_size(what, width, height);

    stb_largest_allocation = largest_allocation(width, height, file.size());
    Source source(file);
    std::uint8_t* pixels =
        stbi_load_from_callbacks(&kCallbacks, &source, &width, &height, &channels, kImageChannels);
    if (pixels == nullptr) {
      refuse(what, source.starved() ? "it is truncated" : reason());
    }
    picture.image = Image::adopt(width, height, pixels);
    if (source.starved()) {
      refuse(what, "it is truncated");
    }
  } catch (const StbAssertion&) {
    refuse(what, "its data are damaged");
  }
  check_image_size(what, width, height);
  return picture;
}

bool inflate_with_stb(Bytes stream, std::span<std::uint8_t> to) {
  constexpr std::size_t kLargest = std::numeric_limits<int>::max();
  if (stream.size() > kLargest || to.size() > kLargest) {
    return false;
  }
  try {
    const int size = stbi_zlib_decode_buffer(
        reinterpret_cast<char*>(to.data()), static_cast<int>(to.size()),
        reinterpret_cast<const char*>(stream.data()), static_cast<int>(stream.size()));
    return size == static_cast<int>(to.size());
  } catch (const StbAssertion&) {
    return false;
  }
}

}  // namespace run_model
