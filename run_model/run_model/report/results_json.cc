#include <utility>

#include "run_model/run_model/report/results.h"

namespace run_model {

void put_files(const PictureReport& report, Json& json) {
  if (!report.drawn.empty()) json.put("drawn", report.drawn.string());
  if (!report.map) return;
  const SavedMap& map = *report.map;
  Json saved = Json::object({{"path", map.path.string()}, {"format", map.coding ? "png" : "npy"}});
  if (map.coding) {
    saved.put("step", map.coding->step);
    saved.put("offset", map.coding->offset);
  }
  json.put("map", std::move(saved));
}

Json results_json(const PictureReport& report) {
  Json list = Json::array();
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    Json item = Json::object();
    put_result(report.tasks[i], report.results[i], report.sides, item);
    if (!report.regions.empty()) {
      item.put("region", i / (report.results.size() / report.regions.size()));
    }
    const bool is_embedding = std::holds_alternative<EmbeddingResult>(report.results[i]);
    if (is_embedding && report.cosine) item.put("cosine", *report.cosine);
    list.add(std::move(item));
  }
  return list;
}

Json top_json(const std::vector<RankedClass>& top) {
  Json list = Json::array();
  for (const RankedClass& ranked : top) {
    list.add(Json::object(
        {{"index", ranked.index}, {"label", ranked.label}, {"probability", ranked.probability}}));
  }
  return list;
}

}  // namespace run_model
