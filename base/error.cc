#include <run_model/error.h>

namespace run_model {

std::string_view error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInternal:
      return "internal error";
    case ErrorKind::kUsage:
      return "wrong usage";
    case ErrorKind::kFile:
      return "file missing, unreadable or unwritable";
    case ErrorKind::kFormat:
      return "file malformed";
    case ErrorKind::kIncompatible:
      return "artifact for another machine or compiler generation";
    case ErrorKind::kMismatch:
      return "pieces do not fit together";
    case ErrorKind::kImage:
      return "picture unusable";
    case ErrorKind::kModel:
      return "model failed while running, or gave NaN or infinity";
  }
  return "unknown error";
}

}  // namespace run_model
