#include "rpc/server/client_key.h"

#include <charconv>
#include <cmath>

namespace run_model::rpc {
namespace {

constexpr std::string_view kPrefix = "client:";
constexpr std::string_view kTimeout = "-timeout=";
// As Python's str.split() takes it, of ASCII.
constexpr std::string_view kSpace = " \t\n\r\v\f";

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kSpace));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace

std::optional<ClientKey> parse_client_key(std::string_view text) {
  const std::string_view name = next_word(text);
  if (!name.starts_with(kPrefix)) return std::nullopt;
  ClientKey result{std::string(name.substr(kPrefix.size())), 0};
  while (true) {
    const std::string_view option = next_word(text);
    if (option.empty()) return result;
    if (!option.starts_with(kTimeout)) continue;
    const std::string_view digits = option.substr(kTimeout.size());
    double seconds = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    if (whole && std::isfinite(seconds) && seconds > 0) result.timeout_seconds = seconds;
  }
}

}  // namespace run_model::rpc
