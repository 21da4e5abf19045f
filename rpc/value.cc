#include <run_model/rpc/value.h>

#include <array>
#include <cstring>

#include <run_model/error.h>
#include <run_model/rpc/function.h>
#include "base/text.h"

namespace run_model::rpc {

Bytes Bytes::copy_of(std::span<const std::byte> data) {
  const auto memory = std::make_shared_for_overwrite<std::byte[]>(data.size());
  if (!data.empty()) std::memcpy(memory.get(), data.data(), data.size());
  return {memory, {memory.get(), data.size()}};
}

std::string kind_name(const Value& value) {
  // In the order of Value's alternatives.
  static constexpr std::array<const char*, std::variant_size_v<Value>> kNames = {
      "null",     "an integer",      "a number", "a bool",           "a text",
      "bytes",    "an element type", "a device", "an opaque handle", "a tensor",
      "a tensor", "a function",      "a module", "an object"};
  return kNames.at(value.index());
}

void Arguments::check_count(std::size_t least, std::size_t most) const {
  if (size() >= least && size() <= most) return;
  const std::string range =
      least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
  throw Error(ErrorKind::kMismatch, "the function " + in_quotes(function_) + " takes " + range +
                                        " arguments, but was given " + std::to_string(size()));
}

const Value& Arguments::operator[](std::size_t i) const {
  if (i >= values_.size()) {
    throw Error(ErrorKind::kMismatch,
                "the function " + in_quotes(function_) + " needs an argument " + std::to_string(i) +
                    " (counted from 0), but was given only " + std::to_string(values_.size()));
  }
  return values_[i];
}

void Arguments::fail(std::size_t i, const std::string& expected) const {
  throw Error(ErrorKind::kMismatch,
              "argument " + std::to_string(i) + " (counted from 0) of the function " +
                  in_quotes(function_) + " is " + kind_name((*this)[i]) + ", expected " + expected);
}

bool Arguments::is_null(std::size_t i) const {
  return std::holds_alternative<std::monostate>((*this)[i]);
}

bool Arguments::is_text(std::size_t i) const {
  return std::holds_alternative<std::string>((*this)[i]);
}

std::int64_t Arguments::integer(std::size_t i) const {
  const Value& value = (*this)[i];
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* flag = std::get_if<Bool>(&value)) return flag->value ? 1 : 0;
  fail(i, "an integer");
}

std::int64_t Arguments::integer_within(std::size_t i, std::int64_t least, std::int64_t most) const {
  const std::int64_t value = integer(i);
  if (value >= least && value <= most) return value;
  throw Error(ErrorKind::kMismatch,
              "argument " + std::to_string(i) + " (counted from 0) of the function " +
                  in_quotes(function_) + " is " + std::to_string(value) + ", expected " +
                  std::to_string(least) + " to " + std::to_string(most));
}

double Arguments::real(std::size_t i) const {
  const Value& value = (*this)[i];
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  fail(i, "a number");
}

const std::string& Arguments::text(std::size_t i) const {
  const auto* text = std::get_if<std::string>(&(*this)[i]);
  if (text == nullptr) fail(i, "a text");
  return *text;
}

std::span<const std::byte> Arguments::bytes(std::size_t i) const {
  const Value& value = (*this)[i];
  if (const auto* bytes = std::get_if<Bytes>(&value)) return bytes->data;
  if (const auto* text = std::get_if<std::string>(&value)) return std::as_bytes(std::span(*text));
  fail(i, "bytes");
}

const TensorArgument& Arguments::tensor(std::size_t i) const {
  const TensorArgument& tensor = any_tensor(i);
  if (tensor.device_memory != nullptr) fail(i, "one of the CPU (it is on a GPU)");
  return tensor;
}

const TensorArgument& Arguments::any_tensor(std::size_t i) const {
  const auto* tensor = std::get_if<TensorArgument>(&(*this)[i]);
  if (tensor == nullptr) fail(i, "a tensor");
  return *tensor;
}

const std::shared_ptr<RemoteModule>& Arguments::module(std::size_t i) const {
  const auto* module = std::get_if<std::shared_ptr<RemoteModule>>(&(*this)[i]);
  if (module == nullptr) fail(i, "a module");
  return *module;
}

Device Arguments::device(std::size_t i) const {
  const auto* device = std::get_if<Device>(&(*this)[i]);
  if (device == nullptr) fail(i, "a device");
  return *device;
}

Device Arguments::cpu(std::size_t i) const {
  const Device found = device(i);
  if (found.type != kDLCPU) {
    fail(i, "the CPU (device type 1), which alone can do this; found type " +
                std::to_string(found.type));
  }
  return found;
}

}  // namespace run_model::rpc
