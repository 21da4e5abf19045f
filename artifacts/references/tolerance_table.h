// tolerances.json: how far a compiled network's results may be from the reference's, schema
// version 1.
//
// {"schema_version": 1, "entries": [{"kind": "logits", "atol": 1e-4, "rtol": 1e-5,
//   "order": 1e-4, "why": "…"}, {"target": "raspi_armv7", …}, …]}
//
// An entry counts for one kind of scores, or with the kind "results" for what tasks give
// ({"kind": "results", "iou": 0.98, "score": 1e-3, "pixels": 0.5, "agreement": 0.999, "map": 1e-3,
// "levels": 1, "cosine": 0.9999, …}; without one of the last three there may be no difference);
// with "target" or "model" only for these.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/score_comparison.h>

namespace run_model {

inline constexpr int kToleranceSchema = 1;

struct ToleranceEntry {
  std::string model;   // empty: any
  std::string target;  // empty: any
  ScoreKind kind = ScoreKind::kLogits;
  ScoreTolerance tolerance;
  std::string why;  // the reason for these numbers, never empty
};

// How far results may be from the reference's.
struct ResultTolerance {
  double iou = 0.0;        // boxes overlap at least by this
  double score = 0.0;      // difference of scores
  double pixels = 0.0;     // distance of points, in the picture
  double agreement = 0.0;  // at least this share of pixels have the same class, or are seen by both
  double map = 0.0;        // difference of a map's numbers, as a share of their range
  double levels = 0.0;     // difference of an image's bytes
  double cosine = 1.0;     // of the angle between embeddings, at least
};

struct ResultToleranceEntry {
  std::string model;   // empty: any
  std::string target;  // empty: any
  ResultTolerance tolerance;
  std::string why;
};

struct ToleranceTable {
  std::vector<ToleranceEntry> entries;
  std::vector<ResultToleranceEntry> results;

  // Of the entries that fit, the one that names model and target, else the model, else the target,
  // else neither. read_tolerances makes sure that there is one.
  const ToleranceEntry& find(std::string_view model, std::string_view target, ScoreKind kind) const;

  // The same for results. Throws Error(kFormat) where the table has none.
  const ResultToleranceEntry& find_results(std::string_view model, std::string_view target) const;
};

// Throws Error(kFile), Error(kFormat) for malformed content, two entries for the same, or no entry
// for any model and target of a kind of scores; Error(kIncompatible) for another schema version.
ToleranceTable read_tolerances(const std::filesystem::path& path);

// The same from memory; `name` stands for the file in messages.
ToleranceTable parse_tolerances(std::string_view text, const std::string& name);

}  // namespace run_model
