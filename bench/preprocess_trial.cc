// preprocess_trial PICTURE RUNS: reads, decodes and preprocesses a picture for an ImageNet network
// RUNS times and prints the milliseconds of each stage as one JSON object, with the FNV-1a hash of
// the tensor's bytes. Run by preprocess_vs_pillow.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include <run_model/decode.h>
#include <run_model/preprocessing.h>

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::uint64_t fingerprint(const run_model::Tensor& tensor) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto* bytes = static_cast<const std::uint8_t*>(tensor.data());
  for (std::size_t i = 0; i < tensor.nbytes(); ++i) {
    hash = (hash ^ bytes[i]) * 0x100000001b3U;
  }
  return hash;
}

int run(const char* picture_path, int runs) {
  run_model::Preprocessing imagenet;
  imagenet.divide_by = 255.0F;
  imagenet.mean = run_model::imagenet_mean(imagenet.color_order);
  imagenet.std = run_model::imagenet_std(imagenet.color_order);
  const std::vector<std::int64_t> shape = {1, 3, 224, 224};

  nlohmann::json result = {{"decode_ms", nlohmann::json::array()},
                           {"prepare_ms", nlohmann::json::array()}};
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    const run_model::Picture picture = run_model::load_picture(picture_path);
    const auto decoded = Clock::now();
    const run_model::Tensor input = run_model::preprocess(
        picture.image, imagenet, shape, DLDataType{kDLFloat, 32, 1}, run_model::Layout::kNchw);
    const auto end = Clock::now();
    result["decode_ms"].push_back(milliseconds(decoded - start));
    result["prepare_ms"].push_back(milliseconds(end - decoded));
    result["fingerprint"] = fingerprint(input);
  }
  std::cout << result.dump() << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::atoi(argv[2]) < 1) {
    std::cerr << "usage: preprocess_trial PICTURE RUNS\n";
    return 2;
  }
  try {
    return run(argv[1], std::atoi(argv[2]));
  } catch (const std::exception& error) {
    std::cerr << "preprocess_trial: " << error.what() << "\n";
    return 1;
  }
}
