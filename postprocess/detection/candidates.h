// What a detector's outputs hold before suppression, whatever their form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <run_model/postprocess.h>
#include <run_model/task_result.h>
#include "postprocess/output_values.h"

namespace run_model {

struct DecodedBox {
  Box box;  // pixels of the network's input
  std::vector<Keypoint> keypoints;
  std::vector<float> mask_factors;
  double angle = 0.0;  // radians, clockwise, about the middle
};

// Candidates whose scores lie at regular distances in an output.
struct CandidateBlock {
  std::size_t rows = 0;
  std::size_t listed = 0;  // rows that ready boxes have, of which `rows` count
  std::size_t row_step = 0;
  std::size_t classes = 0;
  std::size_t class_step = 1;
  const float* scores = nullptr;      // of the first candidate's first class
  const float* objectness = nullptr;  // of the first candidate; null: none
  std::size_t objectness_step = 0;
  // The score is the root of the class's times the objectness; false: the product.
  bool geometric_mean = false;
  // Where classes are numbers of an output of their own, each row has one score.
  const float* class_numbers = nullptr;
  std::size_t class_number_step = 1;
  // Nothing where the candidate is no box.
  std::function<std::optional<DecodedBox>(std::size_t row)> decode;
};

struct CandidateBlocks {
  std::vector<std::unique_ptr<OutputValues>> outputs;  // what the blocks point into
  std::vector<std::vector<float>> made;                // likewise, made of these
  std::vector<CandidateBlock> blocks;
};

struct InputSides {
  double width = 0.0, height = 0.0;
};

// One of these for each form. `labels` is the number of labels, 0 where there are none. Throw as
// postprocess() does.
CandidateBlocks ssd_blocks(const DetectionTask& task, const SsdForm& form, std::size_t labels,
                           std::span<const NetworkOutput> outputs, const InputSides& input);
CandidateBlocks yolo_row_blocks(const DetectionTask& task, const YoloRowsForm& form,
                                std::size_t labels, std::span<const NetworkOutput> outputs,
                                const InputSides& input);
CandidateBlocks yolo_head_blocks(const YoloHeadsForm& form, std::size_t labels,
                                 std::span<const NetworkOutput> outputs, const InputSides& input);
CandidateBlocks ready_box_blocks(const DetectionTask& task, const BoxesForm& form,
                                 std::size_t labels, std::span<const NetworkOutput> outputs,
                                 const InputSides& input);
CandidateBlocks distance_blocks(const DistancesForm& form, std::size_t labels,
                                std::span<const NetworkOutput> outputs, const InputSides& input);
CandidateBlocks center_blocks(const DetectionTask& task, const CentersForm& form,
                              std::size_t labels, std::span<const NetworkOutput> outputs,
                              const InputSides& input);
CandidateBlocks box_row_blocks(const DetectionTask& task, const BoxRowsForm& form,
                               std::span<const NetworkOutput> outputs, const InputSides& input);

// Four numbers, `step` apart, as a box in pixels of the input.
Box read_box(const float* numbers, std::size_t step, BoxFormat format, Units units,
             const InputSides& input);

// Points, likewise.
std::vector<Keypoint> read_keypoints(const float* numbers, std::size_t step,
                                     const DetectionTask& task, const InputSides& input);

// The numbers of a candidate that its keypoints take.
inline std::size_t keypoint_numbers(const DetectionTask& task) {
  return task.keypoints * task.values_per_keypoint;
}

// The factors of its mask.
inline std::size_t mask_numbers(const DetectionTask& task) {
  return task.masks ? task.masks->count : 0;
}
std::vector<float> read_mask_factors(const float* numbers, std::size_t step,
                                     const DetectionTask& task);

// The number of its angle, and what it says.
inline std::size_t angle_numbers(const DetectionTask& task) { return task.angle ? 1 : 0; }
double read_angle(const float* number, const DetectionTask& task);

struct Candidate {
  double score = 0.0;
  std::size_t order = 0;  // its place among all rows of all blocks
  std::size_t class_index = 0;
  DecodedBox decoded;
};

// Those whose score is enough, the best first, as many of each class as the task says. Throws
// Error(kModel).
std::vector<Candidate> choose_candidates(const DetectionTask& task, const CandidateBlocks& blocks,
                                         std::size_t labels, const InputSides& input);

// What the task's suppression leaves, at most as many as its limit, the best first.
std::vector<Candidate> suppress(const DetectionTask& task, std::vector<Candidate> candidates);

}  // namespace run_model
