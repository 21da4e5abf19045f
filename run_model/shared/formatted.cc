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

std::string bytes_text(std::size_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  const double kilobytes = static_cast<double>(bytes) / 1024;
  return kilobytes < 1024 ? formatted("%.1f KiB", kilobytes)
                          : formatted("%.1f MiB", kilobytes / 1024);
}

}  // namespace run_model
