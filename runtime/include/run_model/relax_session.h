// The functions of a Relax executable (TVM 0.21 and later) called one after the other, with what
// they keep between the calls: language models that are fed token by token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/module.h>
#include <run_model/tensor.h>
#include <run_model/thread_pool.h>

namespace run_model {

// What functions of an executable take and give. Cheap to copy; copies share their tensor or state.
class RelaxValue {
 public:
  enum class Kind { kNothing, kTensor, kShape, kInteger, kBool, kReal, kText, kTuple, kState };

  RelaxValue();  // nothing
  // The model reads the tensor where it is; one that is not aligned is copied first.
  static RelaxValue of_tensor(const Tensor& tensor);
  static RelaxValue of_shape(const std::vector<std::int64_t>& dims);
  static RelaxValue of_integer(std::int64_t number);
  static RelaxValue of_bool(bool truth);
  static RelaxValue of_real(double number);
  static RelaxValue of_text(std::string_view text);
  static RelaxValue of_tuple(const std::vector<RelaxValue>& items);

  // kState: what only the model's own functions can use, such as a cache.
  Kind kind() const;

  // Each throws Error(kMismatch) where the value is not of that kind.
  Tensor tensor() const;
  std::vector<std::int64_t> shape() const;
  std::int64_t integer() const;  // of kBool 0 or 1
  double real() const;
  std::string text() const;
  std::vector<RelaxValue> items() const;  // of a tuple

 private:
  friend class RelaxSession;
  struct Content;
  explicit RelaxValue(std::shared_ptr<const Content> content);

  std::shared_ptr<const Content> content_;
};

// Not safe to use from two threads at once. Values may outlive their session, but states can be
// used in it only.
class RelaxSession {
 public:
  // `threads` null: the process-wide pool. Throws Error(kIncompatible), and Error(kMismatch) for a
  // library without an executable.
  explicit RelaxSession(std::shared_ptr<Module> library,
                        std::shared_ptr<ThreadPool> threads = nullptr);
  ~RelaxSession();
  RelaxSession(RelaxSession&&) noexcept;
  RelaxSession& operator=(RelaxSession&&) noexcept;

  // The functions that can be called by name.
  std::vector<std::string> functions() const;

  // Calls one of them, or one of the virtual machine ("vm.builtin.attention_kv_cache_append").
  // Tensors in the result stay what they are when others are computed. Throws Error(kMismatch)
  // where there is no such function or the arguments do not fit it, Error(kModel) when it fails.
  RelaxValue call(const std::string& function, std::span<const RelaxValue> arguments);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace run_model
