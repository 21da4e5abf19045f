// JPEG as stb_image decodes it, to compare with.
#define STBI_ONLY_JPEG
#include <string>

#include "preprocess/stb_checked.h"

namespace run_model {

RawPicture decode_jpeg_with_stb(Bytes file, const std::string& what) {
  return decode_checked(file, what);
}

}  // namespace run_model
