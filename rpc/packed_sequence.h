// Sequences of arguments and results, and tensors, as frames hold them (protocol.h).
//
// Values by type: int, unsigned, bool and float 8 bytes; data type u8 code, u8 bits, u16 lanes and
// 4 bytes of padding; device two i32; function, module and opaque handles u64; text and bytes u64
// length and content; tensor as in protocol.h; object u32 index and u64 handle, or, from TVM 0.21
// on, the content of a text or bytes; null nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <run_model/rpc/value.h>
#include "rpc/connection.h"
#include "rpc/encoding.h"
#include "rpc/handle_table.h"

namespace run_model::rpc {

// A tensor as a client describes it; what its memory handle refers to has not been looked at.
struct TensorHeader {
  Handle memory = 0;
  Device device;
  DLDataType dtype{};
  std::vector<std::int64_t> shape;
  std::uint64_t byte_offset = 0;
};

// Refuses devices other than the CPU and GPUs, and shapes and element types that make no sense. All
// of these throw Error(kFormat | kMismatch).
TensorHeader read_tensor_header(FrameReader& frame);

// The tensor's memory, checked to be there and large enough.
TensorArgument find_tensor(const TensorHeader& header, const HandleTable& handles);

// Reads a sequence value by value.
class SequenceReader {
 public:
  SequenceReader(FrameReader& frame, const HandleTable& handles, Encoding encoding);

  std::size_t size() const { return size_; }

  Value next();
  std::vector<Value> rest();

  // Instead of next(): what the next value is, which the caller then reads from the frame.
  WireType take();

 private:
  FrameReader& frame_;
  const HandleTable& handles_;
  Encoding encoding_;
  std::size_t size_;
  std::vector<std::int32_t> codes_;  // where they come before the values
  std::size_t position_ = 0;
};

// The answer to a request, without the length that precedes it. Long bytes are referred to, not
// copied.
struct Answer {
  std::vector<std::byte> head;
  Bytes tail;
};

// kReturn of nothing at all, the same in both encodings: for the session's start.
Answer empty_answer();
// kReturn of a null.
Answer null_answer(Encoding encoding);
// kException.
Answer exception_answer(const std::string& message, Encoding encoding);
// kReturn of what a system request gives: one value, which is null, an integer, a text or a handle.
Answer system_answer(const Value& value, Encoding encoding);
// kReturn of a call's result: its type code and the result. What it refers to gets handles.
Answer call_answer(const Value& value, HandleTable& handles, Encoding encoding);

}  // namespace run_model::rpc
