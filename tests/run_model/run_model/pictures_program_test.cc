// Tasks, drawings and folders of pictures, with the built program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <run_model/decode.h>
#include <run_model/draw.h>
#include <run_model/npy.h>
#include <run_model/npz.h>
#include "tests/run_model/picture_artifact.h"
#include "tests/run_model/spawn.h"
#include "tests/temporary_folder.h"

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Strings = std::vector<std::string>;

const char* const kRows = R"({"kind": "detection", "form": "box-rows", "output": "output_0",
  "box_format": "xyxy", "units": "pixels", "score_threshold": 0.25, "labels": ["ball", "robot"]})";
const char* const kEmbedding = R"({"kind": "embedding", "output": 0})";

class PicturesProgramTest : public ::testing::Test {
 protected:
  PicturesProgramTest() {
    artifact_.write_metadata(PictureArtifact::metadata());
    artifact_.folder().write("rows.json", kRows);
    artifact_.folder().write("embedding.json", kEmbedding);
    Tensor rows = Tensor::empty({1, 2, 6}, DLDataType{kDLFloat, 32, 1});
    const std::vector<float> values{0, 0, 2, 2, 0.75F, 1, 1, 2, 4, 4, 0.5F, 0};
    std::copy(values.begin(), values.end(), rows.elements<float>().begin());
    const std::vector<NamedTensor> tensors{{"output_0", rows}};
    write_npz(path("given.npz"), tensors);
  }

  ProgramResult run(const std::string& image, const Strings& flags) const {
    Strings args{"net", artifact_.folder().path().string(), image};
    args.insert(args.end(), flags.begin(), flags.end());
    return spawn(RUN_MODEL_PROGRAM, args);
  }

  std::string path(const std::string& name) const { return artifact_.path(name); }

  // Two pictures, one file that is none, and two that nobody takes for one.
  std::string folder_of_pictures() const {
    std::ifstream red(path("red.ppm"), std::ios::binary);
    const std::string picture((std::istreambuf_iterator<char>(red)), {});
    artifact_.folder().write("pictures/b.ppm", picture);
    artifact_.folder().write("pictures/c.PPM", picture);
    artifact_.folder().write("pictures/a.png", "no picture");
    artifact_.folder().write("pictures/labels.txt", "a\n");
    artifact_.folder().write("pictures/._b.ppm", std::string("\0\5\x16\7", 4));
    return path("pictures");
  }

  PictureArtifact artifact_;
};

TEST_F(PicturesProgramTest, GivenOutputsBecomeBoxesInThePicture) {
  const Strings flags{"--task", path("rows.json"), "--given-outputs", path("given.npz")};
  Strings with_json = flags;
  with_json.insert(with_json.end(), {"--json", "--draw", path("drawn.png")});
  const ProgramResult result = run(path("red.ppm"), with_json);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json report = json::parse(result.out);
  const json& found = report.at("results").at(0).at("detections");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].at("label"), "robot");
  EXPECT_EQ(found[0].at("score"), 0.75);
  // 8 x 6 becomes 5 x 4, of which the left 4 x 4 are used.
  EXPECT_EQ(found[0].at("box"), json::parse("[0, 0, 3.2, 3]"));
  EXPECT_EQ(report.at("drawn"), path("drawn.png"));
  EXPECT_FALSE(report.contains("top"));
  EXPECT_TRUE(std::filesystem::is_regular_file(path("drawn.png")));

  Strings stricter = flags;
  stricter.insert(stricter.end(), {"--score-threshold=0.6"});
  EXPECT_THAT(run(path("red.ppm"), stricter).out, HasSubstr("1 detection\n"));
}

TEST_F(PicturesProgramTest, BoxesWithAnAngleHaveCorners) {
  artifact_.folder().write("turned.json", R"({"kind": "detection", "form": "box-rows", "output": 0,
    "box_format": "cxcywh", "units": "pixels", "score_threshold": 0.25,
    "angle": {"unit": "degrees", "direction": "clockwise"}})");
  Tensor row = Tensor::empty({1, 1, 7}, DLDataType{kDLFloat, 32, 1});
  const std::vector<float> values{2, 2, 2, 1, 0.75F, 1, 90};
  std::copy(values.begin(), values.end(), row.elements<float>().begin());
  write_npz(path("turned.npz"), std::vector<NamedTensor>{{"output_0", row}});
  const Strings flags{"--task", path("turned.json"), "--given-outputs", path("turned.npz")};
  Strings with_json = flags;
  with_json.insert(with_json.end(), {"--json", "--coco", path("coco.json")});
  const ProgramResult result = run(path("red.ppm"), with_json);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json found = json::parse(result.out).at("results").at(0).at("detections").at(0);
  // 8 x 6 becomes 5 x 4: across by 1.6, down by 1.5.
  const auto corners = found.at("corners").get<std::vector<std::vector<double>>>();
  const std::vector<std::vector<double>> expected{{4, 1.5}, {4, 4.5}, {2.4, 4.5}, {2.4, 1.5}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(corners[i][0], expected[i][0], 1e-6) << i;
    EXPECT_NEAR(corners[i][1], expected[i][1], 1e-6) << i;
  }
  EXPECT_NEAR(found.at("angle").get<double>(), 90, 1e-4);
  EXPECT_NEAR(found.at("box").at(2).get<double>(), 4, 1e-6);
  const json coco = json::parse(std::ifstream(path("coco.json"))).at("annotations").at(0);
  EXPECT_EQ(coco.at("segmentation").at(0).size(), 8U);
  EXPECT_NEAR(coco.at("area").get<double>(), 4.8, 1e-5);
  EXPECT_THAT(run(path("red.ppm"), flags).out, HasSubstr("angle 90.0 degrees"));
}

// What reports say of a map and an image, and the files that they become.
TEST_F(PicturesProgramTest, MapsAndImagesBecomeFiles) {
  artifact_.folder().write("maps.json", R"([
    {"kind": "map", "output": 0, "quantity": "depth", "unit": "m", "resample": "nearest"},
    {"kind": "image", "output": 0, "layout": "NCHW", "color_order": "GRAY", "range": [0, 4],
     "size": "picture"}])");
  artifact_.folder().write("image.json", R"({"kind": "image", "output": 0, "layout": "NCHW",
    "color_order": "GRAY", "range": [0, 4]})");
  Tensor map = Tensor::empty({1, 1, 2, 2}, DLDataType{kDLFloat, 32, 1});
  const std::vector<float> values{1, 2, 3, 6};
  std::copy(values.begin(), values.end(), map.elements<float>().begin());
  write_npz(path("map.npz"), std::vector<NamedTensor>{{"output_0", map}});
  const auto of = [&](const Strings& flags) {
    Strings all{"--given-outputs", path("map.npz"), "--json"};
    all.insert(all.end(), flags.begin(), flags.end());
    return run(path("red.ppm"), all);
  };
  const ProgramResult both = of({"--task", path("maps.json"), "--save-map", path("map.npy"),
                                 "--draw", path("map_drawn.png")});
  ASSERT_EQ(both.exit_code, 0) << both.err;
  const json report = json::parse(both.out);
  const json &depth = report.at("results").at(0), &image = report.at("results").at(1);
  EXPECT_EQ(depth.at("quantity"), "depth");
  EXPECT_EQ(depth.at("unit"), "m");
  EXPECT_EQ(depth.at("max"), 6.0);
  EXPECT_EQ(depth.at("quantiles").at(2).at(0), 0.5);
  EXPECT_EQ(report.at("map"),
            json::parse(R"({"path": ")" + path("map.npy") + R"(", "format": "npy"})"));
  const Tensor saved = read_npy(path("map.npy"));
  // 8 x 6 becomes 5 x 4, of which the left 4 x 4 are used.
  EXPECT_EQ(saved.shape(), (std::vector<std::int64_t>{6, 8}));
  EXPECT_EQ(saved.elements<float>()[0], 1.0F);
  EXPECT_TRUE(std::isnan(saved.elements<float>()[7]));
  EXPECT_EQ(depth.at("unseen"), 6 * 2);
  EXPECT_EQ(image.at("width"), 8);
  EXPECT_EQ(image.at("cut_off"), 0.25);
  const json png =
      json::parse(of({"--task", path("maps.json"), "--save-map", path("map.png")}).out);
  EXPECT_EQ(png.at("map").at("step"), 0.001);

  ASSERT_EQ(of({"--task", path("image.json"), "--draw", path("made.png")}).exit_code, 0);
  EXPECT_EQ(load_picture(path("made.png")).image.width(), 2);
  EXPECT_EQ(of({"--task", path("maps.json"), "--save-map", path("map.tiff")}).exit_code, 2);
  EXPECT_THAT(of({"--task", path("image.json"), "--save-map", path("map.png")}).err,
              HasSubstr("for models with a map"));
  artifact_.folder().write("two.json",
                           R"([{"kind": "image", "output": 0, "layout": "NCHW",
    "color_order": "GRAY", "range": [0, 4]}, {"kind": "map", "output": 0, "quantity": "other"}])");
  EXPECT_THAT(of({"--task", path("two.json"), "--draw", path("x.png")}).err,
              HasSubstr("\"size\": \"picture\""));
}

TEST_F(PicturesProgramTest, SeesARegionOfThePicture) {
  const auto of = [&](const Strings& flags) {
    Strings all{"--task", path("rows.json"), "--given-outputs", path("given.npz")};
    all.insert(all.end(), flags.begin(), flags.end());
    return run(path("red.ppm"), all);
  };
  const ProgramResult result = of({"--region", "2,1,4,4", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json report = json::parse(result.out);
  EXPECT_EQ(report.at("regions").at(0).at("width"), 4);
  const json& first = report.at("results").at(0);
  EXPECT_EQ(first.at("region"), 0);
  EXPECT_EQ(first.at("detections").at(0).at("box"), json::parse("[2, 1, 4, 3]"));
  EXPECT_THAT(of({"--region=2,1,4,4"}).out, HasSubstr("Region at 2.0,1.0 of 4.0x4.0"));
  for (const char* region : {"1,2,3", "1,2,3,x", "a", "1,2,3,4,5,6", "nan,0,4,4", "8,0,4,4"}) {
    EXPECT_EQ(of({"--region", region}).exit_code, 2) << region;
  }
  EXPECT_EQ(of({"--detector", "net"}).exit_code, 2);
}

TEST_F(PicturesProgramTest, ADetectorNeedsTasks) {
  const ProgramResult none =
      run(path("red.ppm"), {"--task", path("embedding.json"), "--detector", "net", "--json"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("nothing says what this model's outputs mean"));
}

TEST_F(PicturesProgramTest, ComparesEmbeddings) {
  const ProgramResult result = run(path("red.ppm"), {"--task", path("embedding.json"),
                                                     "--compare-with", path("red.ppm"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json embedding = json::parse(result.out).at("results").at(0);
  EXPECT_EQ(embedding.at("values").size(), 3U);
  EXPECT_NEAR(embedding.at("cosine").get<double>(), 1.0, 1e-12);
}

TEST_F(PicturesProgramTest, AFolderIsDoneButForWhatIsNoPicture) {
  artifact_.folder().write("tasks.json", std::string("[") + kEmbedding + R"(, {"kind": "landmarks",
    "output": 0, "columns": ["x", "y", "other"], "units": "normalized", "labels": ["tip"]}])");
  const ProgramResult result =
      run(folder_of_pictures(), {"--task", path("tasks.json"), "--json", "--coco",
                                 path("coco.json"), "--draw", path("drawn"), "--fit", "squash"});
  EXPECT_EQ(result.exit_code, 10);
  EXPECT_THAT(result.err, HasSubstr("1 of 3 pictures could not be looked at"));
  std::vector<json> lines;
  std::istringstream text(result.out);
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].at("image"), path("pictures/a.png"));
  EXPECT_EQ(lines[0].at("error").at("code"), 7);
  EXPECT_EQ(lines[1].at("image"), path("pictures/b.ppm"));
  EXPECT_EQ(lines[2].at("results").at(0).at("values").size(), 3U);
  EXPECT_EQ(lines[2].at("drawn"), path("drawn/c.png"));
  const json coco = json::parse(std::ifstream(path("coco.json")));
  EXPECT_EQ(coco.at("images").size(), 2U);
  EXPECT_EQ(coco.at("categories"), json::parse(R"([{"id": 0, "name": "landmarks",
    "keypoints": ["tip"], "skeleton": []}])"));
  ASSERT_EQ(coco.at("annotations").size(), 2U);
  const json &landmarks = coco.at("annotations").at(1),
             &point = lines[2].at("results").at(1).at("points").at(0);
  EXPECT_EQ(landmarks.at("keypoints"), json({point.at(0), point.at(1), 2}));
  EXPECT_EQ(landmarks.at("bbox"), json({point.at(0), point.at(1), 0, 0}));
  EXPECT_EQ(landmarks.at("num_keypoints"), 1);
}

// Paths come through a pipe that stays open, so that only the signal ends the program.
TEST_F(PicturesProgramTest, AStoppedRunKeepsWhatItHasFound) {
  artifact_.folder().write("landmarks.json", R"({"kind": "landmarks",
    "output": 0, "columns": ["x", "y", "other"], "units": "normalized"})");
  artifact_.folder().write("out", "");
  ASSERT_EQ(::mkfifo(path("paths").c_str(), 0600), 0);
  std::ofstream paths;
  const ProgramResult result =
      spawn(RUN_MODEL_PROGRAM,
            {"net", artifact_.folder().path().string(), "-", "--task", path("landmarks.json"),
             "--coco", path("coco.json")},
            path("out"), path("paths"), [&](pid_t program) {
              paths.open(path("paths"));
              paths << path("red.ppm") << std::endl;
              while (TemporaryFolder::read(path("out")).find('\n') == std::string::npos)
                ::usleep(1000);
              ::kill(program, SIGTERM);
            });
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(result.err, HasSubstr("stopped by a signal; '" + path("coco.json") + "' holds"));
  const json coco = json::parse(std::ifstream(path("coco.json")));
  EXPECT_EQ(coco.at("images").size(), 1U);
  EXPECT_EQ(coco.at("annotations").size(), 1U);
}

TEST_F(PicturesProgramTest, PathsMayEndInZeroBytes) {
  artifact_.folder().write("paths", path("red.ppm") + '\0' + path("no.ppm") + '\0');
  const ProgramResult result =
      spawn(RUN_MODEL_PROGRAM,
            {"net", artifact_.folder().path().string(), "-", "--task", path("embedding.json")},
            path("out"), path("paths"), [](pid_t) {});
  EXPECT_EQ(result.exit_code, 10);
  EXPECT_THAT(result.err, HasSubstr("1 of 2 pictures could not be looked at"));
  EXPECT_THAT(TemporaryFolder::read(path("out")), StartsWith(path("red.ppm") + ": "));
}

TEST_F(PicturesProgramTest, LinesThatNoPathHasAreRefused) {
  artifact_.folder().write("paths", std::string(100'000, 'a'));
  const ProgramResult result =
      spawn(RUN_MODEL_PROGRAM,
            {"net", artifact_.folder().path().string(), "-", "--task", path("embedding.json")},
            path("out"), path("paths"), [](pid_t) {});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("a line of standard input has more than 65536 bytes"));
}

// By the name it is a picture, so leaving it out without a word would be wrong.
TEST_F(PicturesProgramTest, PicturesOfKindsThatCannotBeReadAreNamed) {
  folder_of_pictures();
  artifact_.folder().write("pictures/d.tiff", std::string("II*\0\x08\0\0\0", 8));
  const ProgramResult result = run(path("pictures"), {"--task", path("embedding.json")});
  EXPECT_EQ(result.exit_code, 10);
  EXPECT_THAT(result.err, HasSubstr("d.tiff': this is a TIFF picture"));
  EXPECT_THAT(result.err, HasSubstr("2 of 4 pictures could not be looked at"));
}

// What the first task calls class 1 is not what the second one does, and boxes lie over areas.
TEST_F(PicturesProgramTest, TwoTasksKeepTheirClassesApart) {
  artifact_.folder().write("both.json", std::string("[") + kRows + R"(, {"kind": "segmentation",
    "form": "scores", "layout": "NCHW", "resample": "nearest", "output": 0,
    "labels": ["line", "field"]}])");
  // As scores, class 1 is larger in columns 0, 1 and 3 of six: the nearest of 0, 1, 2 and 4 of
  // eight.
  Tensor rows = Tensor::empty({1, 2, 1, 6}, DLDataType{kDLFloat, 32, 1});
  const std::vector<float> values{0, 0, 2, 2, 0.75F, 1, 1, 1, 2, 4, 0.5F, 0};
  std::copy(values.begin(), values.end(), rows.elements<float>().begin());
  write_npz(path("both.npz"), std::vector<NamedTensor>{{"output_0", rows}});
  const Strings flags{"--given-outputs", path("both.npz"),  "--task", path("both.json"),
                      "--coco",          path("coco.json"), "--draw", path("both.png"),
                      "--fit",           "squash"};
  const ProgramResult result = run(path("red.ppm"), flags);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json coco = json::parse(std::ifstream(path("coco.json")));
  EXPECT_EQ(coco.at("categories"), json::parse(R"([{"id": 0, "name": "ball"},
    {"id": 1, "name": "robot"}, {"id": 2, "name": "line"}, {"id": 3, "name": "field"}])"));
  std::vector<int> categories;
  for (const json& annotation : coco.at("annotations")) {
    categories.push_back(annotation.at("category_id"));
    EXPECT_EQ(annotation.at("bbox").size(), 4U);
  }
  EXPECT_THAT(categories, ElementsAre(1, 0, 2, 3));
  const json& field = coco.at("annotations").at(3);
  EXPECT_EQ(field.at("bbox"), json::parse("[0, 0, 5, 6]"));
  EXPECT_EQ(field.at("area"), 4 * 6);
  // The corner of the robot's box has its colour and not a mixture of it.
  const Image drawn = load_picture(path("both.png")).image;
  const Color color = class_color(1);
  EXPECT_THAT(std::vector<int>(drawn.data(), drawn.data() + 3),
              ElementsAre(color.red, color.green, color.blue));
}

TEST_F(PicturesProgramTest, WhereAMaskIsNotThereIsNothing) {
  Tensor shares = Tensor::empty({1, 1, 2, 2}, DLDataType{kDLFloat, 32, 1});
  const std::vector<float> values{0.9F, 0.1F, 0.1F, 0.1F};
  std::copy(values.begin(), values.end(), shares.elements<float>().begin());
  write_npz(path("mask.npz"), std::vector<NamedTensor>{{"output_0", shares}});
  std::string said;
  const auto of = [&](const std::string& labels) {
    artifact_.folder().write("mask.json", R"({"kind": "segmentation", "form": "mask", "output": 0,
      "activation": "none", "resample": "nearest", "labels": )" +
                                              labels + "}");
    const ProgramResult result =
        run(path("red.ppm"), {"--given-outputs", path("mask.npz"), "--task", path("mask.json"),
                              "--coco", path("coco.json"), "--fit", "squash"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    said = result.out;
    return json::parse(std::ifstream(path("coco.json")));
  };
  const json one = of(R"(["hand"])");
  EXPECT_THAT(said, HasSubstr("75.00 %  (nothing)\n   25.00 %  hand"));
  const json two = of(R"(["rest", "hand"])");
  EXPECT_THAT(said, HasSubstr("75.00 %  rest"));
  EXPECT_EQ(one.at("categories"), json::parse(R"([{"id": 1, "name": "hand"}])"));
  ASSERT_EQ(one.at("annotations").size(), 1U);
  EXPECT_EQ(one.at("annotations").at(0).at("bbox"), json::parse("[0, 0, 4, 3]"));
  EXPECT_EQ(two.at("categories").at(0).at("name"), "rest");
  EXPECT_EQ(two.at("annotations").size(), 2U);
}

TEST_F(PicturesProgramTest, NothingThatIsReadIsWrittenOver) {
  folder_of_pictures();
  const auto refused = [&](const std::string& image, const Strings& flags, int code,
                           const std::string& text) {
    Strings all{"--task", path("embedding.json")};
    all.insert(all.end(), flags.begin(), flags.end());
    const ProgramResult result = run(image, all);
    EXPECT_EQ(result.exit_code, code) << text;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(text));
  };
  const std::string picture = path("red.ppm"), before = TemporaryFolder::read(picture);
  refused(picture, {"--coco", picture}, 2, "is read, and would be written in its own place");
  refused(picture, {"--coco", path("embedding.json")}, 2, "embedding.json' is read");
  refused(picture, {"--draw", path("x.jpg")}, 2, "expected a name that ends in .png");
  refused(picture, {"--draw", path("./x.png"), "--save-mask", path("x.png")}, 2,
          "which --draw writes too");
  refused(picture, {"--profile-csv", path("p"), "--profile-json", path("p")}, 2,
          "which --profile-csv writes too");
  refused(path("pictures"), {"--draw", path("pictures")}, 2, "pictures' is read");
  refused(path("pictures"), {"--draw", path("d"), "--save-mask", path("d")}, 2,
          "which --draw writes too");
  // Before the first of many is looked at.
  refused(path("pictures"), {"--coco", path("no/coco.json")}, 3, "make its folder first");
  std::filesystem::create_directory(path("linked"));
  artifact_.folder().write("only/x.png", before);
  std::filesystem::create_hard_link(path("only/x.png"), path("linked/x.png"));
  refused(path("only"), {"--draw", path("linked")}, 2, "linked/x.png' is read");
  EXPECT_EQ(TemporaryFolder::read(picture), before);
  EXPECT_EQ(TemporaryFolder::read(path("only/x.png")), before);
  // The model itself, whose files are known once it is found.
  for (const std::string file :
       {"net_tvm.so", "net_tvm.json", "net_tvm.params", "net_tvm.metadata.json"}) {
    const std::string model = TemporaryFolder::read(path(file));
    refused(picture, {"--coco", path(file)}, 2, file + "' is read");
    refused(path("pictures"), {"--coco", path(file)}, 2, file + "' is read");
    EXPECT_EQ(TemporaryFolder::read(path(file)), model);
  }
}

// A classifier without tasks says what it says of one picture.
TEST_F(PicturesProgramTest, ClassifiersTakeFoldersToo) {
  const ProgramResult result = run(folder_of_pictures(), {path("labels.txt"), "--json"});
  EXPECT_EQ(result.exit_code, 10);
  EXPECT_THAT(result.out, HasSubstr("\"label\":\"red things\""));
}

TEST_F(PicturesProgramTest, RefusesWithOneSentence) {
  const auto refused = [&](const Strings& flags, int code, const std::string& text) {
    const ProgramResult result = run(path("red.ppm"), flags);
    EXPECT_EQ(result.exit_code, code) << text;
    EXPECT_THAT(result.err, HasSubstr(text));
  };
  const std::string rows = path("rows.json");
  refused({}, 2, "LABELS is missing");
  refused({path("labels.txt"), "--draw", path("x.png")}, 2, "nothing says what this model's");
  refused({"--task", rows}, 6, "expected rows of 6 numbers");
  refused({"--task", path("red.ppm")}, 4, "is no JSON");
  refused({"--task", path("embedding.json"), "--save-mask", path("x.png")}, 2,
          "with a segmentation");
  refused({"--task", path("embedding.json"), "--coco", path("x.json")}, 2,
          "--coco is for models with boxes, masks or landmarks");
  refused({"--task", rows, "--compare-with", path("red.ppm"), "--given-outputs", path("given.npz")},
          2, "give an embedding");
  refused({"--task", rows, "--given-outputs", path("given.npz"), "--draw", "/dev/full"}, 3,
          "free some space");
  artifact_.folder().write("wrong.json", R"({"kind": "embedding", "output": "prob"})");
  refused({"--task", path("wrong.json")}, 6, "asks for the output 'prob'");
}

}  // namespace
}  // namespace run_model
