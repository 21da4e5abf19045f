#include "run_model/shared/json_put.h"

#include <utility>

namespace run_model {

void put_json(Json& object, const char* key, Json&& value) { object[key] = std::move(value); }

void put_null(Json& object, const char* key) { put_json(object, key, Json()); }

void put_number(Json& object, const char* key, double value) { put_json(object, key, value); }

void put_integer(Json& object, const char* key, std::int64_t value) {
  put_json(object, key, value);
}

void put_flag(Json& object, const char* key, bool value) { put_json(object, key, value); }

void put(Json& object, const char* key, std::string_view text) { put_json(object, key, text); }

void put(Json& object, const char* key, const std::vector<std::string>& texts) {
  put_json(object, key, texts);
}

void put(Json& object, const char* key, const std::vector<int>& values) {
  put_json(object, key, values);
}

void put_text_or_null(Json& object, const char* key, const std::string& text) {
  put_json(object, key, text_or_null(text));
}

}  // namespace run_model
