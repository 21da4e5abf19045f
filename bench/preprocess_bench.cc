// The stages of preprocessing alone: decoding by format, checking, resizing, normalising.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include <run_model/decode.h>
#include <run_model/preprocessing.h>
#include "base/file.h"

namespace run_model {
namespace {

void report_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void decode(benchmark::State& state, const char* name) {
  const std::string path = std::string(PHOTOS "/") + name;
  const std::vector<std::byte> bytes = read_file(path, kMaxImageFileBytes, "a picture");
  const std::span file(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  for (auto _ : state) {
    benchmark::DoNotOptimize(decode_picture(file, path));
  }
  report_bytes(state, file.size());
}
BENCHMARK_CAPTURE(decode, png_photo, "coffee.png")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, jpeg_photo, "rocket.jpg")->Unit(benchmark::kMillisecond);

// 1200 x 1200 to the 224 x 224 in the middle of 256 x 256.
void resize_to_crop(benchmark::State& state, Resizer resizer) {
  const Image photo = load_picture(PHOTOS "/coffee.png").image;
  const Image image = resize(photo, 1200, 1200, Resizer::kPilBicubic);
  for (auto _ : state) {
    benchmark::DoNotOptimize(resize(image, 256, 256, resizer, {16, 16, 224, 224}));
  }
  report_bytes(state, image.byte_count());
}
BENCHMARK_CAPTURE(resize_to_crop, nearest, Resizer::kNearest)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(resize_to_crop, pil_bilinear, Resizer::kPilBilinear)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(resize_to_crop, pil_bicubic, Resizer::kPilBicubic)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(resize_to_crop, cv2_linear, Resizer::kCv2Linear)->Unit(benchmark::kMillisecond);

void normalise(benchmark::State& state, DLDataType dtype, Layout layout) {
  Image image(224, 224);
  std::fill_n(image.data(), image.byte_count(), std::uint8_t{100});
  Preprocessing same_size;
  same_size.fit = Fit::kSquash;
  const bool planes = layout == Layout::kNchw;
  const Tensor input = Tensor::empty(planes ? std::vector<std::int64_t>{1, 3, 224, 224}
                                            : std::vector<std::int64_t>{1, 224, 224, 3},
                                     dtype);
  for (auto _ : state) {
    preprocess_into(image, same_size, layout, input);
    benchmark::ClobberMemory();
  }
  report_bytes(state, image.byte_count());
}
BENCHMARK_CAPTURE(normalise, float32_nchw, DLDataType{kDLFloat, 32, 1}, Layout::kNchw)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(normalise, uint8_nhwc, DLDataType{kDLUInt, 8, 1}, Layout::kNhwc)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace run_model

BENCHMARK_MAIN();
