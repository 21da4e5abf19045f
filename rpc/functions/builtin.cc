// The list of all groups, and the two that are about bytes: files, as TVM's rpc_server_env.cc and
// client.py (v0.18.0) expect of them, and how many a copy may have.
#include "rpc/functions/builtin.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <run_model/rpc/function.h>
#include "base/mapped_file.h"
#include "base/text.h"

namespace run_model::rpc {
namespace {

class UploadFunction final : public StreamedFunction {
 public:
  explicit UploadFunction(SessionFolder& folder)
      : StreamedFunction("tvm.rpc.server.upload"), folder_(folder) {}

  Value call(Values values) const override {
    const Arguments arguments(name(), values);
    arguments.check_count(2, 2);
    folder_.write(arguments.text(0), arguments.bytes(1));
    return {};
  }

  Value call_streamed(const std::string& name, std::uint64_t bytes,
                      const std::function<std::size_t(std::span<std::byte>)>& next) const override {
    folder_.write(name, bytes, next);
    return {};
  }

 private:
  SessionFolder& folder_;
};

// TVM's tuners clean up by the names that files have on the host, absolute ones, then remove more
// than there is, and at last the empty name (autotvm/measure/measure_methods.py). Their upload has
// put a file under the last part of its name, so that is the one that is meant.
void remove_file(SessionFolder& folder, const std::filesystem::path& path) {
  const std::filesystem::path name = path.is_absolute() ? path.filename() : path;
  if (!name.empty()) folder.remove(name);
}

}  // namespace

void add_builtin_functions(Registry& registry, SessionFolder& folder) {
  add_file_functions(registry, folder);
  add_module_functions(registry, folder);
  add_executors(registry);
  add_time_evaluator(registry);
  add_random_fill(registry);
  add_thread_functions(registry);
  add_copy_limit(registry);
}

void add_file_functions(Registry& registry, SessionFolder& folder) {
  registry.add(std::make_shared<UploadFunction>(folder));
  registry.add("tvm.rpc.server.download", [&folder](const Arguments& arguments) -> Value {
    arguments.check_count(1, 1);
    const std::filesystem::path path = folder.file(arguments.text(0));
    // There is nothing to map of an empty file.
    if (std::filesystem::file_size(path) == 0) return Bytes{};
    const auto file = MappedFile::open(path);
    return Bytes{file, file->bytes()};
  });
  registry.add("tvm.rpc.server.remove", [&folder](const Arguments& arguments) -> Value {
    arguments.check_count(1, 1);
    remove_file(folder, arguments.text(0));
    return {};
  });
  // TVM's C++ server has this function, its Python one not. The session has the one folder.
  registry.add("tvm.rpc.server.listdir", [&folder](const Arguments& arguments) -> Value {
    arguments.check_count(0, 1);
    return list_of(folder.names(), ",");
  });
}

void add_copy_limit(Registry& registry) {
  registry.add("tvm.rpc.server.GetCRTMaxPacketSize", [](const Arguments& arguments) -> Value {
    arguments.check_count(0, 0);
    // Copies are not limited. TVM's client (rpc_endpoint.cc, v0.18.0) asks for this function before
    // each copy where there is none, and only once where there is one.
    return std::int64_t{1} << 62;
  });
}

}  // namespace run_model::rpc
