#include <string_view>

#include "profile/profile_page.h"
#include "run_model/run_model/profile/profile_formats.h"

namespace run_model {
namespace {

// JSON that may stand inside of a script element: names come from the artifact, and one with
// "</script>" or "<!--" in it would end the element. Other characters than ASCII are escaped by
// dump().
std::string script_json(const Json& json) {
  const std::string plain = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(plain.size());
  for (const char c : plain) {
    switch (c) {
      case '<':
        safe += "\\u003c";
        break;
      case '>':
        safe += "\\u003e";
        break;
      case '&':
        safe += "\\u0026";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string profile_html(const Profile& profile) {
  constexpr std::string_view kPage = kProfilePage;
  constexpr std::string_view kPlace = "{{profile}}";
  // Not computed by the compiler: GCC 12's UndefinedBehaviorSanitizer rejects find() in constants.
  const std::size_t at = kPage.find(kPlace);
  return std::string(kPage.substr(0, at)) + script_json(profile_json(profile)) +
         std::string(kPage.substr(at + kPlace.size()));
}

}  // namespace run_model
