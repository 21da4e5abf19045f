// Functions that take a name and many bytes, which they use as they arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <run_model/rpc/function.h>

namespace run_model::rpc {

class StreamedFunction : public Function {
 public:
  using Function::Function;

  // `next` reads at least one byte into the buffer it is given and returns how many; together it
  // gives `bytes`. What is left when this returns or throws is skipped.
  virtual Value call_streamed(
      const std::string& name, std::uint64_t bytes,
      const std::function<std::size_t(std::span<std::byte>)>& next) const = 0;
};

}  // namespace run_model::rpc
