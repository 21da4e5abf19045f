#include "run_model/run_model/runs.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <run_model/draw.h>
#include <run_model/error.h>
#include <run_model/npy.h>
#include <run_model/png_file.h>
#include "base/file.h"
#include "base/text.h"
#include "base/write_file.h"
#include "run_model/run_model/flags.h"
#include "run_model/run_model/measure/timing.h"
#include "run_model/run_model/picture_list.h"
#include "run_model/run_model/picture_runner.h"
#include "run_model/run_model/report/results.h"
#include "run_model/run_model/written_files.h"
#include "run_model/shared/manual.h"
#include "run_model/shared/program.h"
#include "run_model/shared/stop_signals.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

void draw(const PictureReport& report, Image& image, const fs::path& path) {
  // What a network makes in its own size has no place on the picture.
  const bool other_size =
      std::any_of(report.results.begin(), report.results.end(), [](const TaskResult& result) {
        const auto* made = std::get_if<ImageResult>(&result);
        return made != nullptr && made->seen.empty();
      });
  if (other_size && report.results.size() > 1) {
    throw Error(
        ErrorKind::kUsage,
        "--draw cannot put an image of the network's own size on a picture with other results",
        "give the image's task \"size\": \"picture\"");
  }
  draw_results(image, report.tasks, report.results);
  write_png(path, image);
}

// The first segmentation.
void save_mask(const PictureReport& report, const fs::path& path) {
  if (report.in_regions && report.results.empty()) return;
  for (const TaskResult& result : report.results) {
    if (const auto* segmentation = std::get_if<SegmentationResult>(&result)) {
      write_mask_png(path, *segmentation);
      return;
    }
  }
  throw Error(ErrorKind::kUsage, "--save-mask is for models with a segmentation",
              "the tasks of this one have none");
}

// The first map.
std::optional<SavedMap> save_map(const PictureReport& report, const fs::path& path, bool png) {
  if (report.in_regions && report.results.empty()) return std::nullopt;
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    const auto* map = std::get_if<MapResult>(&report.results[i]);
    if (map == nullptr) continue;
    if (png) {
      const auto& task = std::get<MapTask>(report.tasks[i].what);
      return SavedMap{path, write_map_png(path, task, *map)};
    }
    const Tensor numbers = Tensor::empty({map->height, map->width}, DLDataType{kDLFloat, 32, 1});
    std::copy(map->values.begin(), map->values.end(), numbers.elements<float>().begin());
    write_npy(path, numbers);
    return SavedMap{path, std::nullopt};
  }
  throw Error(ErrorKind::kUsage, "--save-map is for models with a map of numbers",
              "the tasks of this one have none");
}

// Files in the folder of --draw, --save-mask or --save-map, by the pictures' names.
class OutputFolder {
 public:
  explicit OutputFolder(fs::path folder, std::string ending = ".png")
      : folder_(std::move(folder)), ending_(std::move(ending)) {
    if (folder_.empty()) return;
    std::error_code error;
    fs::create_directories(folder_, error);
    if (!is_folder(folder_)) {
      throw Error(ErrorKind::kFile, path_in_quotes(folder_) + " is no folder and cannot become one",
                  "what is drawn of many pictures goes to a folder");
    }
  }

  bool wanted() const { return !folder_.empty(); }

  // a.png for a.jpg, and a-2.png for the second of that name.
  fs::path file_for(const fs::path& picture) {
    const std::string stem = picture.stem().string();
    std::string name = stem + ending_;
    for (int i = 2; !taken_.insert(name).second; ++i)
      name = stem + "-" + std::to_string(i) + ending_;
    refuse_to_replace(picture, folder_ / name);
    return folder_ / name;
  }

 private:
  fs::path folder_;
  std::string ending_;
  std::set<std::string> taken_;
};

Json line_json(const PictureReport& report) {
  Json json = Json::object({{"schema_version", kReportSchema}, {"image", report.image.string()}});
  json.put("width", report.sides.original_width);
  json.put("height", report.sides.original_height);
  if (!report.described) {
    json.put("top", top_json(report.top));
  } else {
    if (report.in_regions) json.put("regions", regions_json(report.regions));
    json.put("results", results_json(report));
  }
  put_files(report, json);
  const Timing& timing = report.run.timing;
  json.put("timing", Json::object({{"decode", timing.decode},
                                   {"preprocess", timing.preprocess},
                                   {"run", timing.run},
                                   {"postprocess", timing.postprocess}}));
  return json;
}

Json failure_json(const fs::path& path, const Error& error) {
  return Json::object(
      {{"schema_version", kReportSchema}, {"image", path.string()}, {"error", error_json(error)}});
}

}  // namespace

PictureReport run_picture(const Settings& settings) {
  PictureRunner runner(settings);
  Picture picture;
  PictureReport report = runner.run(settings.image, true, &picture);
  if (!settings.save_mask.empty()) save_mask(report, settings.save_mask);
  if (!settings.save_map.empty()) {
    report.map = save_map(report, settings.save_map, settings.map_png);
  }
  if (!settings.draw.empty()) {
    draw(report, picture.image, settings.draw);
    report.drawn = settings.draw;
  }
  if (!settings.coco.empty()) {
    CocoFile coco;
    coco.add(report);
    write_text_file(settings.coco, coco.text());
  }
  return report;
}

int run_pictures(const Settings& settings) {
  PictureRunner runner(settings);
  // The one file that is written at the end, which an early end of the work does not take along.
  PictureList pictures(settings.image, settings.coco.empty()
                                           ? -1
                                           : note_stop_signals(SecondSignal::kEndsTheProgram));
  OutputFolder drawn(settings.draw), masks(settings.save_mask);
  OutputFolder maps(settings.save_map, settings.map_png ? ".png" : ".npy");
  PlannedStarts starts(settings.measure.fps);
  CocoFile coco;
  std::size_t done = 0, failed = 0;
  for (fs::path path; noted_stop_signal() == 0 && pictures.next(path);) {
    if (settings.measure.fps > 0) starts.wait(PlannedStarts::Clock::now());
    ++done;
    Picture picture;
    PictureReport report;
    try {
      report = runner.run(path, false, &picture);
    } catch (const Error& error) {
      ++failed;
      if (settings.json) write_standard_output(failure_json(path, error).compact() + "\n");
      const std::string what = error.what(), quoted = path_in_quotes(path);
      const std::string named = what.find(quoted) == what.npos ? quoted + ": " + what : what;
      std::fprintf(stderr, "run_model: %s\n", named.c_str());
      continue;
    }
    if (masks.wanted()) save_mask(report, masks.file_for(path));
    if (maps.wanted()) report.map = save_map(report, maps.file_for(path), settings.map_png);
    if (drawn.wanted()) {
      report.drawn = drawn.file_for(path);
      draw(report, picture.image, report.drawn);
    }
    if (!settings.coco.empty()) coco.add(report);
    write_standard_output(settings.json ? line_json(report).compact() + "\n"
                                        : path.string() + ": " + results_summary(report) + "\n");
  }
  if (!settings.coco.empty()) write_text_file(settings.coco, coco.text());
  if (failed > 0) {
    std::fprintf(stderr, "run_model: %zu of %zu pictures could not be looked at\n", failed, done);
  }
  if (const int signal = noted_stop_signal()) {
    std::fprintf(stderr, "run_model: stopped by a signal; %s holds the pictures before it\n",
                 path_in_quotes(settings.coco).c_str());
    ::raise(signal);
  }
  return failed > 0 ? kExitSomeFailed : 0;
}

}  // namespace run_model
