// What clients send in a whole session, as a start for the fuzzer.
#pragma once

#include <string>
#include <utility>
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

// The same as TVM 0.21 and later write it.
inline std::string find_now(const char* name) {
  return FrameBuilder(RequestCode::kGetGlobalFunc)
      .count(1)
      .type(WireType::kText)
      .text(name)
      .frame();
}

inline std::string free_now(std::uint64_t handle) {
  return FrameBuilder(RequestCode::kFreeHandle)
      .count(1)
      .type(WireType::kOpaque)
      .number(handle)
      .frame();
}

// A text or bytes as an object, by its index.
inline FrameBuilder& object(FrameBuilder& frame, std::int32_t index, const char* content) {
  return frame.number(index).number(index).text(content);
}

inline std::vector<std::string> seeds_of_tvm021() {
  const std::string end = FrameBuilder(RequestCode::kShutdown).frame();
  FrameBuilder upload = call(1);
  object(upload.count(2).type(WireType::kText).text("a"), 66, "content");
  FrameBuilder texts = call(1);
  object(object(texts.count(2), 65, "text"), 66, "bytes");
  return {
      start() + find_now("echo") +
          call(1)
              .count(3)
              .type(WireType::kInteger)
              .number(std::int64_t{1})
              .type(WireType::kReal)
              .number(2.0)
              .type(WireType::kNull)
              .frame() +
          texts.frame() +
          call(1).count(1).type(WireType::kFunction).number(std::uint64_t{1}).frame() +
          free_now(1) + end,
      start() +
          FrameBuilder(RequestCode::kDevAllocDataWithScope)
              .count(2)
              .type(WireType::kTensor)
              .tensor(0, {4, 4}, kSeedFloats)
              .type(WireType::kNull)
              .frame() +
          FrameBuilder(RequestCode::kCopyToRemote)
              .tensor(1, {4}, kSeedFloats)
              .number(std::uint64_t{16})
              .raw("0123456789abcdef")
              .frame() +
          find_now("array") +
          call(2).count(1).type(WireType::kTensor).tensor(1, {2, 2}, kSeedFloats).frame() +
          FrameBuilder(RequestCode::kCopyFromRemote)
              .tensor(3, {2, 2}, kSeedFloats)
              .number(std::uint64_t{16})
              .frame() +
          free_now(3) +
          FrameBuilder(RequestCode::kDevFreeData)
              .count(2)
              .type(WireType::kDevice)
              .device()
              .type(WireType::kOpaque)
              .number(std::uint64_t{1})
              .frame() +
          end,
      start() +
          FrameBuilder(RequestCode::kDevGetAttr)
              .count(2)
              .type(WireType::kDevice)
              .device()
              .type(WireType::kInteger)
              .number(std::int64_t{5})
              .frame() +
          find_now("tvm.rpc.server.upload") + upload.frame() + find_now("tvm.rpc.server.download") +
          call(2).count(1).type(WireType::kText).text("a").frame() + end,
  };
}

}  // namespace session_seed

// Each is the bytes of one client, from its first request on.
inline std::vector<std::string> session_seeds() {
  using namespace session_seed;
  const std::string end = FrameBuilder(RequestCode::kShutdown).frame();
  std::vector<std::string> seeds{
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
  for (std::string& seed : seeds_of_tvm021()) seeds.push_back(std::move(seed));
  return seeds;
}

}  // namespace run_model::rpc
