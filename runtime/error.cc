#include "runtime/error.h"

namespace run_model {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInternal:
      return "internal error";
    case ErrorCode::kUsage:
      return "wrong usage";
    case ErrorCode::kFile:
      return "file missing, unreadable or unwritable";
    case ErrorCode::kFormat:
      return "file malformed";
    case ErrorCode::kIncompatible:
      return "artifact for another machine or compiler generation";
    case ErrorCode::kMismatch:
      return "pieces do not fit together";
    case ErrorCode::kImage:
      return "picture unusable";
    case ErrorCode::kModel:
      return "model failed while running, or gave NaN or infinity";
  }
  return "unknown error";
}

}  // namespace run_model
