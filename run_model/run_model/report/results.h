// What was found in a picture, as JSON, as text, and in COCO's format.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "run_model/run_model/report/report.h"
#include "run_model/shared/json.h"
#include "run_model/shared/task_json.h"

namespace run_model {

// A list with an object for each task, of each region, documented in run_model/README.md.
Json results_json(const PictureReport& report);

// A list of the classes of a classifier without tasks, the best first.
Json top_json(const std::vector<RankedClass>& top);

// A table for each task.
std::string results_text(const PictureReport& report);

// A line that says what the file of a map holds.
std::string map_file_text(const SavedMap& map);

// On one line: "2 detections: face 0.97, face 0.81".
std::string results_summary(const PictureReport& report);

// The members "drawn" and "map", of the files that were written.
void put_files(const PictureReport& report, Json& json);

// Pictures and what was found in them, as COCO's annotation files have it.
class CocoFile {
 public:
  // Throws Error(kUsage) where no task gives what the format has a place for.
  void add(const PictureReport& report);
  std::string text() const;

 private:
  struct Annotation {
    std::size_t task = 0, class_index = 0;
    Json json;  // without the numbers that depend on all pictures
  };
  struct Picture {
    std::string file_name;
    int width = 0, height = 0;
    std::vector<Annotation> annotations;
  };

  void add_category(std::size_t task, std::size_t index, const Json& category);
  void add_result(std::size_t number, const PictureReport& report, std::size_t index,
                  Picture& picture);

  std::vector<Picture> pictures_;
  // Categories but their ids, of each task by its classes: class 1 of one task is not class 1 of
  // another.
  std::vector<std::map<std::size_t, Json>> categories_;
};

}  // namespace run_model
