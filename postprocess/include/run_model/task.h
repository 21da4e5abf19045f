// What a network's outputs mean: the description that metadata.json holds in "tasks", or a file of
// its own. postprocess/README.md documents every member, default and formula.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <run_model/preprocessing.h>

namespace run_model {

enum class TaskKind {
  kClassification,
  kDetection,
  kSegmentation,
  kLandmarks,
  kEmbedding,
  kMap,
  kImage,
};

// "classification", "detection", "segmentation", "landmarks", "embedding", "map" or "image".
std::string_view task_kind_name(TaskKind kind);

// An output of the network, by name or by number.
struct OutputChoice {
  std::string name;       // empty: by number
  std::size_t index = 0;  // where there is no name
};

enum class Activation { kNone, kSigmoid, kSoftmax };

// Of coordinates: pixels of the network's input, or shares of its sides.
enum class Units { kPixels, kNormalized };

// How four numbers are a box; kYxyx is top, left, bottom, right, and c is a centre.
enum class BoxFormat { kXyxy, kYxyx, kXywh, kCxcywh, kCycxhw };

// Centre and sides as shares of the input's.
struct Anchor {
  double x = 0.0, y = 0.0, width = 0.0, height = 0.0;
};

// MediaPipe's SsdAnchorsCalculatorOptions. Either strides or feature_maps.
struct MediapipeAnchors {
  int input_width = 0, input_height = 0;
  double min_scale = 0.0, max_scale = 0.0;
  double anchor_offset_x = 0.5, anchor_offset_y = 0.5;
  std::vector<int> strides;
  std::vector<std::array<int, 2>> feature_maps;  // height, width
  std::vector<double> aspect_ratios;
  bool reduce_boxes_in_lowest_layer = false;
  double interpolated_scale_aspect_ratio = 1.0;  // 0: no such anchor
  bool fixed_anchor_size = false;
};

// torchvision's DefaultBoxGenerator.
struct TorchvisionAnchors {
  int input_width = 0, input_height = 0;         // only with steps
  std::vector<std::array<int, 2>> feature_maps;  // height, width
  std::vector<std::vector<double>> aspect_ratios;
  double min_ratio = 0.15, max_ratio = 0.9;
  std::vector<double> scales;  // instead of the two; one more than there are maps
  std::vector<double> steps;   // empty: by the maps' sizes
  bool clip = true;
};

// torchvision's AnchorGenerator, of RetinaNet: sizes in pixels, and ratios of height to width.
struct PyramidAnchors {
  std::vector<std::array<int, 2>> feature_maps;           // height, width
  std::vector<std::vector<double>> sizes, aspect_ratios;  // by map
  double offset = 0.0;                                    // of the centre, in cells
  bool round = true;                                      // half sides, to whole pixels
  bool sizes_first = false;  // all ratios of a size follow each other; false: all sizes of a ratio
};

using AnchorSource =
    std::variant<MediapipeAnchors, TorchvisionAnchors, PyramidAnchors, std::vector<Anchor>>;

// Boxes as differences from anchors.
struct SsdForm {
  OutputChoice boxes, scores;
  AnchorSource anchors;
  double x_scale = 1.0, y_scale = 1.0, w_scale = 1.0, h_scale = 1.0;
  BoxFormat box_format = BoxFormat::kCxcywh;        // or kCycxhw; keypoints have the same order
  bool exponential = false;                         // sides are exponents
  double size_limit = 0.0;                          // of the exponents; 0: none
  std::size_t box_offset = 0, keypoint_offset = 4;  // within an anchor's numbers
};

// A row for each candidate: four numbers of the box, an objectness if there is one, classes.
struct YoloRowsForm {
  OutputChoice output;
  bool objectness = true;
  bool candidates_last = false;  // 1 x (4 + C) x N, as YOLOv8 has it
  // Of rows that are not decoded, as YOLOX exports them: the sides of the cells of each map, in
  // pixels. Empty: decoded.
  std::vector<int> strides;
};

enum class YoloCoding { kV3, kV5 };

// Maps of a row for each cell and anchor, not decoded.
struct YoloHeadsForm {
  std::vector<OutputChoice> outputs;
  std::vector<std::vector<std::array<double, 2>>> anchors;  // by output; pixels of the input
  YoloCoding coding = YoloCoding::kV3;
  double scale_xy = 1.0;  // of kV3: how far centres reach beyond their cell, YOLOv4's scale_x_y
  bool channels_last = false;
};

// A row for each cell of maps, of the distances from a point in it to the four sides of a box:
// FCOS, GFL, NanoDet.
struct DistancesForm {
  OutputChoice boxes, scores;  // may be the same
  std::optional<OutputChoice> centerness;
  std::vector<int> strides;   // the sides of the cells of each map, in pixels
  double point_offset = 0.0;  // in cells
  bool in_cells = false;      // the distances; false: in pixels
  std::size_t bins = 0;       // of the distribution of each distance; 0: it is a number
  std::size_t box_offset = 0, score_offset = 0;  // within a row
  std::size_t classes = 0;                       // 0: all numbers of a row from score_offset on
};

// Maps of which each peak is the centre of a box, and what the box is at that place: CenterNet.
struct CentersForm {
  OutputChoice heatmap, sizes;
  std::optional<OutputChoice> offsets;  // none: centres are the middles of cells
  bool channels_last = false;
  bool y_first = false;   // of sizes and offsets
  bool in_cells = false;  // the sizes; false: in pixels
};

// Boxes that are decoded, and maybe suppressed.
struct BoxesForm {
  OutputChoice boxes, scores;
  std::optional<OutputChoice> classes, count;
  std::optional<OutputChoice> keypoints, keypoint_scores;  // of each box, its keypoints
};

// The same in one output, a row for each: box, score, class.
struct BoxRowsForm {
  OutputChoice output;
};

enum class SuppressionMode { kHard, kWeighted, kFast };

// How much two boxes overlap: by the areas of intersection and union, or of boxes with an angle by
// the Hellinger distance of the normal distributions that they stand for, Ultralytics' probiou.
enum class BoxOverlap { kArea, kProbabilistic };

struct Suppression {
  double iou = 0.45;
  SuppressionMode mode = SuppressionMode::kHard;
  BoxOverlap overlap = BoxOverlap::kArea;
  bool per_class = true;
};

// Masks of single things: the sum of prototypes, each times a factor that stands behind all other
// numbers of the thing's row; YOLACT's, and of YOLO's segmentation networks. Of boxes that are
// ready a map for each, which covers the input; Mask R-CNN's.
struct InstanceMasks {
  OutputChoice output;    // the prototypes, [1, count, H, W] or [1, H, W, count]; or [N, H, W]
  std::size_t count = 0;  // of prototypes; 0: the output has a map for each box
  bool channels_last = false;
  bool drop_empty = false;  // a thing is left out whose mask has no pixel
  double threshold = 0.5;   // of a box's own map: above it a pixel belongs to the thing
};

enum class BoxClip { kNone, kInput, kPicture };

// Boxes that are turned about their middles, and how a network gives the angle.
struct BoxAngle {
  bool degrees = false;            // false: radians
  bool counter_clockwise = false;  // as a viewer shows the picture
};

struct DetectionTask {
  std::variant<SsdForm, YoloRowsForm, YoloHeadsForm, BoxesForm, BoxRowsForm, DistancesForm,
               CentersForm>
      form;
  BoxFormat box_format = BoxFormat::kCxcywh;  // of rows and ready boxes
  Units units = Units::kPixels;
  Activation activation = Activation::kNone;
  double score_clip = 0.0;  // of scores before the sigmoid; 0: none
  std::optional<std::size_t> background;
  bool every_class = false;  // a candidate counts for each class above the threshold
  double score_threshold = 0.0;
  std::size_t candidates = 0;  // of each class, before suppression; 0: all
  std::optional<Suppression> suppression;
  std::size_t limit = 100;
  BoxClip clip = BoxClip::kNone;
  std::size_t keypoints = 0;
  std::size_t values_per_keypoint = 2;  // with 3, the last is the point's score
  std::optional<InstanceMasks> masks;
  std::optional<BoxAngle> angle;
};

enum class SegmentationForm { kScores, kIndices, kMask };

struct SegmentationTask {
  OutputChoice output;
  SegmentationForm form = SegmentationForm::kScores;
  bool channels_last = false;  // of kScores
  Activation activation = Activation::kNone;
  double threshold = 0.5;  // of kMask
  bool bilinear = true;    // false: each pixel takes the nearest class
};

enum class PointColumn { kX, kY, kZ, kScore, kVisibility, kPresence, kOther };

// Points as maps, of each of which the highest pixel is the point: HRNet, SimpleBaseline.
struct Heatmaps {
  bool channels_last = false;
  bool quarter = false;  // a quarter of a pixel towards the higher neighbour
};

struct LandmarksTask {
  OutputChoice output;
  std::optional<Heatmaps> heatmaps;  // with them, columns, points and units have no meaning
  std::vector<PointColumn> columns;
  std::size_t points = 0;  // of the output's that count; 0: all
  Units units = Units::kPixels;
  Activation point_activation = Activation::kNone;  // of score, visibility and presence
  std::optional<OutputChoice> confidence;
  Activation confidence_activation = Activation::kNone;
  double threshold = 0.5;
  std::vector<std::array<std::size_t, 2>> connections;  // for drawing
};

struct ClassificationTask {
  OutputChoice output;
  // Nothing: a softmax unless the scores are a distribution already.
  std::optional<Activation> activation;
  bool binary = false;  // one score, that of the second of two classes
};

struct EmbeddingTask {
  OutputChoice output;
};

// What a map's numbers say: how far away each pixel is, something that grows as it comes nearer (up
// to an unknown scale and shift, as MiDaS has it), or anything else.
enum class MapQuantity { kDepth, kInverseDepth, kOther };

// kBicubic is torch's interpolate(): cubic convolution with a = -0.75.
enum class MapResampling { kNearest, kBilinear, kBicubic };

// "depth", "inverse-depth" or "other".
std::string_view map_quantity_name(MapQuantity quantity);

// One number for each pixel.
struct MapTask {
  OutputChoice output;
  MapQuantity quantity = MapQuantity::kOther;
  std::string unit;    // "m"; empty: none
  double scale = 1.0;  // of the network's numbers, to that unit
  MapResampling resampling = MapResampling::kBilinear;
};

// A picture: super-resolution, styles, less noise.
struct ImageTask {
  OutputChoice output;
  bool channels_last = false;
  ColorOrder color_order = ColorOrder::kRgb;
  // By channel, in the network's order: what is black, and what is white. Of kGray the first
  // counts.
  std::array<std::array<double, 2>, 3> range{{{0.0, 1.0}, {0.0, 1.0}, {0.0, 1.0}}};
  bool of_picture = false;  // resampled to the picture's pixels; false: the network's own
};

// From what a detector has found to the region of the picture that another network is to see:
// MediaPipe's DetectionsToRectsCalculator and RectTransformationCalculator.
struct RegionRule {
  // The box; the box around all keypoints; a square about the keypoint `start` that reaches to
  // the keypoint `end` (AlignmentPointsRectsCalculator); or the box as it is turned.
  enum class From { kBox, kKeypoints, kAlignment, kOriented };
  enum class Square { kNone, kLong, kShort };

  From from = From::kBox;
  // The region is turned so that the way from keypoint `start` to `end` has the angle of `target`
  // degrees in it, counter-clockwise from the x axis.
  struct Turn {
    std::size_t start = 0, end = 0;
    double target = 0.0;
  };
  std::optional<Turn> turn;
  double shift_x = 0.0, shift_y = 0.0;  // shares of its sides, in its own directions
  Square square = Square::kNone;        // both sides become the longer or the shorter one
  double scale_x = 1.0, scale_y = 1.0;  // at the end, about its centre
};

struct Task {
  std::variant<ClassificationTask, DetectionTask, SegmentationTask, LandmarksTask, EmbeddingTask,
               MapTask, ImageTask>
      what;
  std::vector<std::string> labels;   // of classes or points; empty: none
  std::optional<RegionRule> region;  // where another network finds what this one looks at

  TaskKind kind() const { return static_cast<TaskKind>(what.index()); }
};

// A task, a list of tasks, or an object that has one of these in "tasks", as metadata.json does.
// Nothing may be unknown, and nothing be missing that has no documented default. Throws
// Error(kFile), Error(kFormat).
std::vector<Task> read_tasks(const std::filesystem::path& path);

// The same from memory; `name` stands for the file in messages.
std::vector<Task> parse_tasks(std::string_view text, const std::string& name);

// Replaces the score threshold of detections and the thresholds of masks and landmarks' confidence.
void set_score_threshold(Task& task, double threshold);

// Whether it finds classes and has no names of its own for them.
bool lacks_labels(const Task& task);

}  // namespace run_model
