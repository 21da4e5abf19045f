// The two ways in which TVM's RPC protocol writes values, and which of them a client speaks.
//
// Read from TVM's c_runtime_api.h and rpc_reference.h (v0.8.0 to v0.20.0), and from tvm-ffi's
// c_api.h and TVM's rpc_reference.h, rpc_endpoint.cc and rpc_module.cc (v0.21.0 to v0.27.0). The
// codes of types are those of the compiled functions of the same releases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <run_model/rpc/session.h>
#include "rpc/protocol.h"

namespace run_model::rpc {

// What a value in a sequence is.
enum class WireType {
  kNull,
  kInteger,
  kBool,
  kReal,
  kText,
  kBytes,
  kDataType,
  kDevice,
  kOpaque,  // a handle of whatever
  kTensor,  // described; its memory lies on the server
  kModule,
  kFunction,
  kObject,
  kArray,  // never in a sequence: what a call's result is said to be where it is a tensor
};

std::int32_t type_code(Encoding encoding, WireType type);

// What a call's result is said to be before it is sent. Texts and bytes, in kTvm021, are then sent
// as something else than they are said to be.
std::int32_t result_code(Encoding encoding, WireType type);

// Nothing for a code that the encoding does not have. kObject of kTvm021 may still be a text or
// bytes: what follows tells.
std::optional<WireType> wire_type(Encoding encoding, std::int32_t code);

// What an object of kTvm021 is by the index that follows its code.
WireType object_type(std::uint32_t index);

// The encoding of a request by the first words of its sequence, of which kTellingWords are enough;
// nothing for a request that is the same in both.
inline constexpr std::size_t kTellingWords = 3;
std::optional<Encoding> encoding_of(RequestCode request, std::span<const std::int32_t> words);

}  // namespace run_model::rpc
