// Sequences of arguments and results, and tensors, as frames hold them (protocol.h).
//
// Values by type code: int, unsigned and float 8 bytes; data type u8 code, u8 bits, u16 lanes and 4
// bytes of padding; device two i32; function, module and opaque handles u64; text and bytes u64
// length and content; tensor as in protocol.h; object u32 index and u64 handle; null nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <run_model/packed_function.h>
#include <run_model/rpc/value.h>
#include "rpc/connection.h"
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

// Refuses devices other than the CPU and shapes and element types that make no sense. All of these
// throw Error(kFormat | kMismatch).
TensorHeader read_tensor_header(FrameReader& frame);

// The tensor's memory, checked to be there and large enough.
TensorArgument find_tensor(const TensorHeader& header, const HandleTable& handles);

// Reads a sequence value by value.
class SequenceReader {
 public:
  // Reads the type codes.
  SequenceReader(FrameReader& frame, const HandleTable& handles);

  std::size_t size() const { return codes_.size(); }
  const std::vector<std::int32_t>& codes() const { return codes_; }

  Value next();
  std::vector<Value> rest();

  // Instead of next(), for a text or bytes: the length; the content is left to the caller to read.
  std::uint64_t next_length();

 private:
  FrameReader& frame_;
  const HandleTable& handles_;
  std::vector<std::int32_t> codes_;
  std::size_t position_ = 0;
};

// The answer to a request, without the length that precedes it. Long bytes are referred to, not
// copied.
struct Answer {
  std::vector<std::byte> head;
  Bytes tail;
};

// kReturn of a null.
Answer null_answer();
// kException. `text_code` is the type code of a text: kTextOfTvm021 for clients that know no other.
Answer exception_answer(const std::string& message, std::int32_t text_code = kTypeString);
// kReturn of what a system request gives: one value, which is null, an integer, a text or a handle.
Answer system_answer(const Value& value);
// kReturn of a call's result: its type code and the result. What it refers to gets handles.
Answer call_answer(const Value& value, HandleTable& handles);

}  // namespace run_model::rpc
