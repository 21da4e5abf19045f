#include "run_model/shared/formatted.h"

#include <cstdarg>
#include <cstdio>

namespace run_model {

std::string formatted(const char* format, ...) {
  std::va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  const int length = std::vsnprintf(nullptr, 0, format, values);
  std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  // Its zero byte is written over the string's own.
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  va_end(values);
  return text;
}

}  // namespace run_model
