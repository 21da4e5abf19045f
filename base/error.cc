#include <run_model/error.h>

#include "base/enum_names.h"
#include "base/text.h"

namespace run_model {

namespace {

constexpr auto kKinds = enum_names<ErrorKind>({
    {ErrorKind::kInternal, "internal error"},
    {ErrorKind::kUsage, "wrong usage"},
    {ErrorKind::kFile, "file missing, unreadable or unwritable"},
    {ErrorKind::kFormat, "file malformed"},
    {ErrorKind::kIncompatible, "artifact for another machine or compiler generation"},
    {ErrorKind::kMismatch, "pieces do not fit together"},
    {ErrorKind::kImage, "picture unusable"},
    {ErrorKind::kModel, "model failed while running, or gave NaN or infinity"},
});

std::string sentence(std::string_view message, std::string_view hint) {
  std::string text(message);
  if (!hint.empty()) text.append("; ").append(hint);
  return text;
}

}  // namespace

Error::Error(ErrorKind kind, std::string_view message, std::string_view hint)
    : std::runtime_error(sentence(message, hint)), kind_(kind) {}

std::string_view error_kind_name(ErrorKind kind) { return kKinds.name(kind); }

void fail_unknown_name(std::string_view what, std::string_view name, const std::string& list) {
  throw Error(ErrorKind::kUsage, "unknown " + std::string(what) + " " + in_quotes(name),
              "it is one of " + list);
}

}  // namespace run_model
