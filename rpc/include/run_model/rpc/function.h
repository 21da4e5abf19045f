// What a client can call and ask for functions: functions, modules, objects.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <run_model/rpc/value.h>

namespace run_model::rpc {

using Values = std::span<const Value>;

// The arguments of one call, taken out with a check: each of these throws Error(kMismatch) naming
// the function, the position (from 0) and what was found where the argument is missing or of
// another kind.
class Arguments {
 public:
  Arguments(const std::string& function, Values values) : function_(function), values_(values) {}

  std::size_t size() const { return values_.size(); }
  Values values() const { return values_; }
  const Value& operator[](std::size_t i) const;

  // Throws Error(kMismatch) unless there are at least `least` and at most `most` arguments.
  void check_count(std::size_t least, std::size_t most) const;

  bool is_null(std::size_t i) const;
  bool is_text(std::size_t i) const;
  std::int64_t integer(std::size_t i) const;  // integers and bools
  // As integer(), and refuses what lies outside of [least, most].
  std::int64_t integer_within(std::size_t i, std::int64_t least, std::int64_t most) const;
  double real(std::size_t i) const;  // floats and integers
  const std::string& text(std::size_t i) const;
  // Bytes, or the characters of a text.
  std::span<const std::byte> bytes(std::size_t i) const;
  const TensorArgument& tensor(std::size_t i) const;
  const std::shared_ptr<RemoteModule>& module(std::size_t i) const;
  // A device; refused unless it is the CPU.
  Device cpu(std::size_t i) const;

  [[noreturn]] void fail(std::size_t i, const std::string& expected) const;

 private:
  const std::string& function_;
  Values values_;
};

// Something to be called. Errors are exceptions (run_model::Error, std::exception); the session
// turns them into the client's.
class Function {
 public:
  explicit Function(std::string name) : name_(std::move(name)) {}
  virtual ~Function() = default;
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  const std::string& name() const { return name_; }

  virtual Value call(Values arguments) const = 0;

  // The same call as call(arguments), for calling it many times: what can be done once is done
  // once. The result is dropped. `arguments` need not outlive the return.
  virtual std::function<void()> prepare(Values arguments) const;

 private:
  std::string name_;
};

using FunctionPointer = std::shared_ptr<const Function>;

// A Function from a callable that takes Arguments and returns a Value.
FunctionPointer make_function(std::string name, std::function<Value(const Arguments&)> body);

// A loaded library, a graph executor …: what has functions by name.
class RemoteModule : public std::enable_shared_from_this<RemoteModule> {
 public:
  virtual ~RemoteModule() = default;

  // As TVM's type_key: "library", "GraphExecutor" …; for messages.
  virtual std::string kind() const = 0;

  // Null where it has none of that name.
  virtual FunctionPointer find(const std::string& name) = 0;
};

// Anything else that a client holds a handle of and only passes back (TVM's objects).
class RemoteObject {
 public:
  virtual ~RemoteObject() = default;
  virtual std::string kind() const = 0;
};

}  // namespace run_model::rpc
