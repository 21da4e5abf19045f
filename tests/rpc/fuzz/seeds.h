// What clients send in a whole session, as a start for the fuzzer.
#pragma once

#include <string>
#include <vector>

#include "tests/rpc/frame_client.h"

namespace run_model::rpc {
namespace session_seed {

inline constexpr DLDataType kSeedFloats{kDLFloat, 32, 1};

inline std::string start() {
  return FrameBuilder(RequestCode::kInitServer).text(kProtocolVersion).codes({}).frame();
}

inline std::string find(const char* name) {
  return FrameBuilder(RequestCode::kGetGlobalFunc).codes({kTypeString}).text(name).frame();
}

inline std::string allocate(std::int64_t bytes) {
  return FrameBuilder(RequestCode::kDevAllocData)
      .codes({kTypeDevice, kTypeInt, kTypeInt, kTypeDataType})
      .device()
      .number(bytes)
      .number(std::int64_t{64})
      .number(std::uint64_t{0x12002})
      .frame();
}

// Handles are given out from 1 on.
inline FrameBuilder call(std::uint64_t function) {
  return FrameBuilder(RequestCode::kCallFunc).number(function);
}

}  // namespace session_seed

// Each is the bytes of one client, from its first request on.
inline std::vector<std::string> session_seeds() {
  using namespace session_seed;
  const std::string end = FrameBuilder(RequestCode::kShutdown).frame();
  return {
      start() + end,
      start() + find("echo") +
          call(1).codes({kTypeInt, kTypeFloat}).number(std::int64_t{1}).number(2.0).frame() +
          call(1).codes({kTypeString}).text("text").frame() +
          call(1).codes({kTypeBytes}).text("bytes").frame() +
          call(1).codes({kTypePackedFunctionHandle}).number(std::uint64_t{1}).frame() + end,
      start() + allocate(64) +
          FrameBuilder(RequestCode::kCopyToRemote)
              .tensor(1, {4}, kSeedFloats)
              .number(std::uint64_t{16})
              .raw("0123456789abcdef")
              .frame() +
          FrameBuilder(RequestCode::kCopyFromRemote)
              .tensor(1, {4}, kSeedFloats, 16)
              .number(std::uint64_t{16})
              .frame() +
          find("array") +
          call(2).codes({kTypeTensorHandle}).tensor(1, {2, 2}, kSeedFloats).frame() +
          FrameBuilder(RequestCode::kCopyAmongRemote)
              .codes({kTypeTensorHandle, kTypeTensorHandle, kTypeNull})
              .tensor(1, {4}, kSeedFloats)
              .tensor(3, {4}, kSeedFloats)
              .frame() +
          FrameBuilder(RequestCode::kFreeHandle)
              .codes({kTypeOpaqueHandle, kTypeInt})
              .number(std::uint64_t{3})
              .number(std::int64_t{kTypeNDArrayHandle})
              .frame() +
          FrameBuilder(RequestCode::kDevFreeData)
              .codes({kTypeDevice, kTypeOpaqueHandle})
              .device()
              .number(std::uint64_t{1})
              .frame() +
          end,
      start() + find("tvm.rpc.server.upload") + find("tvm.rpc.server.download") +
          call(1).codes({kTypeString, kTypeBytes}).text("a").text("content").frame() +
          call(2).codes({kTypeString}).text("a").frame() + end,
      start() + find("function") + call(1).codes({kTypeNull}).frame() + call(2).codes({}).frame() +
          FrameBuilder(RequestCode::kDevAllocDataWithScope)
              .codes({kTypeTensorHandle, kTypeString})
              .tensor(0, {4, 4}, kSeedFloats)
              .text("global")
              .frame() +
          FrameBuilder(RequestCode::kDevGetAttr)
              .codes({kTypeDevice, kTypeInt})
              .device()
              .number(std::int64_t{7})
              .frame() +
          FrameBuilder(RequestCode::kDevStreamSync)
              .codes({kTypeDevice, kTypeNull})
              .device()
              .frame() +
          FrameBuilder(RequestCode::kDevCreateStream).codes({kTypeDevice}).device().frame() + end,
  };
}

}  // namespace run_model::rpc
