#include "rpc/server/exception_frame.h"

#include <string>

#include "rpc/packed_sequence.h"

namespace run_model::rpc {

ByteVector exception_frame(std::string_view text) {
  const Answer answer = exception_answer(std::string(text));
  ByteVector frame;
  append_number<std::uint64_t>(frame, answer.head.size());
  frame.insert(frame.end(), answer.head.begin(), answer.head.end());
  return frame;
}

}  // namespace run_model::rpc
