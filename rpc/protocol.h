// TVM's RPC protocol, whose requests are the same from 0.8 on.
//
// Read from TVM's rpc_reference.h, rpc_endpoint.cc and python/tvm/rpc/base.py (v0.18.0, v0.27.0)
// and compared with those of 0.8 to 0.26. All numbers are little-endian. After the handshake
// (server/handshake.h) either side sends frames:
//   u64 bytes that follow, i32 code, content by code
// The client asks and waits for one answer, kReturn, kException or (to kCopyFromRemote) kCopyAck:
//   kInitServer         u64 length, version text, sequence: session constructor and its arguments
//   kCallFunc           u64 function handle, sequence
//                       -> sequence of the result's type code and the result
//   kCopyFromRemote     tensor, u64 bytes -> kCopyAck: the bytes
//   kCopyToRemote       tensor, u64 bytes, the bytes -> null
//   the other requests  sequence -> sequence of one result
// sequence: i32 n, and n values, each with an i32 type code (packed_sequence.h): all codes before
//           all values up to 0.20, each before its own since 0.21 (encoding.h)
// tensor:   u64 memory handle, i32 device type, i32 device number, i32 n,
//           u8 type, u8 bits, u16 lanes, n x i64 dimension, u64 byte offset
#pragma once

#include <cstdint>

namespace run_model::rpc {

inline constexpr char kProtocolVersion[] = "0.8.0";

enum class RequestCode : std::int32_t {
  kShutdown = 1,
  kInitServer = 2,
  kCallFunc = 3,
  kReturn = 4,
  kException = 5,
  kCopyFromRemote = 6,
  kCopyToRemote = 7,
  kCopyAck = 8,
  kGetGlobalFunc = 9,
  kFreeHandle = 10,
  kDevSetDevice = 11,
  kDevGetAttr = 12,
  kDevAllocData = 13,
  kDevFreeData = 14,
  kDevStreamSync = 15,
  kCopyAmongRemote = 16,
  kDevAllocDataWithScope = 17,
  kDevCreateStream = 18,
  kDevFreeStream = 19,
  kDevSetStream = 20,
  kDevGetCurrentStream = 21,
};

// Type codes beyond those of <run_model/packed_function.h>.
inline constexpr std::int32_t kTypeObjectRValueReference = 14;

// TVM's type index of objects that live on the other side (RPCObjectRef), up to 0.20.
inline constexpr std::uint32_t kRemoteObjectIndex = 9;

// Far more than any function or tensor has; what a sequence may make the server allocate before its
// content has arrived.
inline constexpr std::int32_t kMostArguments = 4096;
inline constexpr std::int32_t kMostDimensions = 64;

}  // namespace run_model::rpc
