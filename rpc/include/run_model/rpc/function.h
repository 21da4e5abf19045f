// What a client can call and ask for functions: functions, modules, objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <run_model/rpc/value.h>

namespace run_model::rpc {

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

// One that takes a name and many bytes, which it uses as they arrive.
class StreamedFunction : public Function {
 public:
  using Function::Function;

  // `next` reads at least one byte into the buffer it is given and returns how many; together it
  // gives `bytes`. What is left when this returns or throws is skipped.
  virtual Value call_streamed(
      const std::string& name, std::uint64_t bytes,
      const std::function<std::size_t(std::span<std::byte>)>& next) const = 0;
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

// The functions that a client finds by name: TVM's registry of global functions.
class Registry {
 public:
  // A function of this name that was added before is replaced.
  void add(FunctionPointer function);
  void add(std::string name, std::function<Value(const Arguments&)> body);

  // Null where there is none of that name.
  FunctionPointer find(std::string_view name) const;

 private:
  std::map<std::string, FunctionPointer, std::less<>> functions_;
};

}  // namespace run_model::rpc
