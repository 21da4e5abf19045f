// What a client gets instead of an answer when its session's process can give none any more.
#pragma once

#include <string_view>

#include "rpc/server/wire.h"

namespace run_model::rpc {

// A whole frame (rpc/protocol.h): code kException and a sequence of one text. TVM's client raises
// it as RPCError, or as RPCSessionTimeoutError where the text begins with that name, a colon and a
// space.
ByteVector exception_frame(std::string_view text);

}  // namespace run_model::rpc
