#include "tests/run_model/check_zoo/fixture.h"

#include <gtest/gtest.h>

#include <array>

#include <run_model/npy.h>
#include "base/sha256.h"
#include "tests/run_model/picture_artifact.h"

namespace run_model {
namespace {

using nlohmann::json;

constexpr int kPictureSide = 4;

std::string red_picture() {
  std::string picture = "P6 4 4 255\n";
  for (int i = 0; i < kPictureSide * kPictureSide; ++i) picture += {'\xC8', '\x0A', '\x14'};
  return picture;
}

std::string picture_hash() {
  const std::string picture = red_picture();
  return sha256_hex(std::as_bytes(std::span(picture)));
}

// What the network must see: every pixel divided by 1600, channel after channel.
std::string input_hash() {
  std::vector<float> values;
  for (const float pixel : {200.0F, 10.0F, 20.0F}) {
    values.insert(values.end(), kPictureSide * kPictureSide, pixel / 1600.0F);
  }
  return sha256_hex(std::as_bytes(std::span(values)));
}

}  // namespace

SmallZoo::SmallZoo() {
  folder_.write("zoo/net/native/model.so", TemporaryFolder::read(PICTURE_MODEL));
  folder_.write("zoo/net/native/model.params", bias_params("bias", 3));
  call("fused_channel_sums");
  folder_.write("images/red.ppm", red_picture());
  write_golden("red", golden());
  json entries = json::array();
  for (const char* kind : {"logits", "probabilities"}) {
    entries.push_back(
        {{"kind", kind}, {"atol", 1e-4}, {"rtol", 0}, {"order", 0.01}, {"why", "a test"}});
  }
  folder_.write("zoo/tolerances.json", json{{"schema_version", 1}, {"entries", entries}}.dump());
}

void SmallZoo::call(const std::string& function) const {
  folder_.write("zoo/net/native/model.json", picture_graph(function).dump());
}

json SmallZoo::golden() {
  return {{"schema_version", 1},
          {"model", "net"},
          {"onnx_sha256", std::string(64, 'a')},
          {"picture", {{"file", "red.ppm"}, {"sha256", picture_hash()}}},
          {"preprocessing",
           {{"resizer", "pil-bilinear"},
            {"fit", "squash"},
            {"color_order", "RGB"},
            {"divide_by", 1},
            {"mean", {0, 0, 0}},
            {"std", {1600, 1600, 1600}}}},
          {"input",
           {{"name", "data"},
            {"shape", {1, 3, 4, 4}},
            {"dtype", "float32"},
            {"layout", "NCHW"},
            {"sha256", input_hash()}}},
          {"output", {{"name", "scores"}, {"shape", {1, 3}}, {"kind", "logits"}}},
          {"top",
           {{{"index", 0}, {"label", "red things"}, {"probability", 0.76}},
            {{"index", 2}, {"label", "blue things"}, {"probability", 0.13}},
            {{"index", 1}, {"label", "green things"}, {"probability", 0.11}}}}};
}

void SmallZoo::write_golden(const std::string& picture, const json& golden,
                            const std::vector<float>& scores) const {
  folder_.write("golden/net/" + picture + ".json", golden.dump());
  const Tensor tensor = Tensor::empty({1, 3}, {kDLFloat, 32, 1});
  std::copy(scores.begin(), scores.end(), tensor.elements<float>().begin());
  write_npy(folder_ / ("golden/net/" + picture + ".npy"), tensor);
}

void SmallZoo::write_metadata(const json& metadata) const {
  folder_.write("zoo/net/native/metadata.json", metadata.dump());
}

ProgramResult SmallZoo::check(const std::vector<std::string>& flags) const {
  std::vector<std::string> args{"--artifacts=" + path("zoo"), "--golden=" + path("golden"),
                                "--images=" + path("images"), "--jobs=2"};
  args.insert(args.end(), flags.begin(), flags.end());
  return spawn(CHECK_ZOO_PROGRAM, args);
}

json SmallZoo::check_one(const std::vector<std::string>& flags, int exit_code) const {
  std::vector<std::string> args{"--json"};
  args.insert(args.end(), flags.begin(), flags.end());
  const ProgramResult result = check(args);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  const json report = json::parse(result.out);
  return report["artifacts"].at(0)["cases"].at(0);
}

}  // namespace run_model
