#include "rpc/server/exception_frame.h"

#include "rpc/protocol.h"

namespace run_model::rpc {
namespace {

// kTVMStr of TVM's type codes.
constexpr std::int32_t kText = 11;

}  // namespace

ByteVector exception_frame(std::string_view text) {
  ByteVector content;
  append_number<std::int32_t>(content, static_cast<std::int32_t>(RequestCode::kException));
  append_number<std::int32_t>(content, 1);
  append_number<std::int32_t>(content, kText);
  append_number<std::uint64_t>(content, text.size());
  append_text(content, text);
  ByteVector frame;
  append_number<std::uint64_t>(frame, content.size());
  frame.insert(frame.end(), content.begin(), content.end());
  return frame;
}

}  // namespace run_model::rpc
