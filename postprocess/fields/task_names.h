// The words that descriptions of tasks use.
#pragma once

#include <run_model/task.h>
#include "base/enum_names.h"

namespace run_model {

inline constexpr auto kTaskKinds =
    enum_names<TaskKind>({{TaskKind::kClassification, "classification"},
                          {TaskKind::kDetection, "detection"},
                          {TaskKind::kSegmentation, "segmentation"},
                          {TaskKind::kLandmarks, "landmarks"},
                          {TaskKind::kEmbedding, "embedding"},
                          {TaskKind::kMap, "map"},
                          {TaskKind::kImage, "image"}});

inline constexpr auto kActivations = enum_names<Activation>({{Activation::kNone, "none"},
                                                             {Activation::kSigmoid, "sigmoid"},
                                                             {Activation::kSoftmax, "softmax"}});

inline constexpr auto kUnits =
    enum_names<Units>({{Units::kPixels, "pixels"}, {Units::kNormalized, "normalized"}});

inline constexpr auto kBoxFormats = enum_names<BoxFormat>({{BoxFormat::kXyxy, "xyxy"},
                                                           {BoxFormat::kYxyx, "yxyx"},
                                                           {BoxFormat::kXywh, "xywh"},
                                                           {BoxFormat::kCxcywh, "cxcywh"},
                                                           {BoxFormat::kCycxhw, "cycxhw"}});

inline constexpr auto kSuppressionModes =
    enum_names<SuppressionMode>({{SuppressionMode::kHard, "hard"},
                                 {SuppressionMode::kWeighted, "weighted"},
                                 {SuppressionMode::kFast, "fast"}});

inline constexpr auto kBoxOverlaps = enum_names<BoxOverlap>(
    {{BoxOverlap::kArea, "area"}, {BoxOverlap::kProbabilistic, "probabilistic"}});

inline constexpr auto kRegionSources =
    enum_names<RegionRule::From>({{RegionRule::From::kBox, "box"},
                                  {RegionRule::From::kKeypoints, "keypoints"},
                                  {RegionRule::From::kAlignment, "alignment"},
                                  {RegionRule::From::kOriented, "oriented"}});

inline constexpr auto kSquares =
    enum_names<RegionRule::Square>({{RegionRule::Square::kNone, "none"},
                                    {RegionRule::Square::kLong, "long"},
                                    {RegionRule::Square::kShort, "short"}});

inline constexpr auto kMapQuantities =
    enum_names<MapQuantity>({{MapQuantity::kDepth, "depth"},
                             {MapQuantity::kInverseDepth, "inverse-depth"},
                             {MapQuantity::kOther, "other"}});

inline constexpr auto kMapResamplings =
    enum_names<MapResampling>({{MapResampling::kNearest, "nearest"},
                               {MapResampling::kBilinear, "bilinear"},
                               {MapResampling::kBicubic, "bicubic"}});

inline constexpr auto kPointColumns =
    enum_names<PointColumn>({{PointColumn::kX, "x"},
                             {PointColumn::kY, "y"},
                             {PointColumn::kZ, "z"},
                             {PointColumn::kScore, "score"},
                             {PointColumn::kVisibility, "visibility"},
                             {PointColumn::kPresence, "presence"},
                             {PointColumn::kOther, "other"}});

}  // namespace run_model
