#include "rpc/modules/library_module.h"

#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/text.h"
#include "rpc/device_buffer.h"
#include "rpc/modules/debug_executor_module.h"
#include "rpc/modules/graph_executor_module.h"
#include "runtime/loading/model_library.h"

namespace run_model::rpc {
namespace {

// A function of the factory that makes executors: its arguments are devices.
FunctionPointer factory_function(
    std::string name, std::size_t first_device,
    std::function<Value(const Arguments&, std::vector<DLDevice>)> make) {
  return make_function(std::move(name),
                       [first_device, make = std::move(make)](const Arguments& arguments) {
                         std::vector<DLDevice> gpus;
                         for (std::size_t i = first_device; i < arguments.size(); ++i) {
                           const Device device = arguments.device(i);
                           const DLDevice known = dl_device(device);
                           if (is_gpu(device)) gpus.push_back(known);
                         }
                         return make(arguments, std::move(gpus));
                       });
}

}  // namespace

FunctionPointer LibraryModule::find(const std::string& name) {
  const ModelLibrary* model = as_model_library(*library_);
  if (model != nullptr && model->relax_executable() != nullptr) {
    const std::shared_ptr<Module>& library = library_;
    if (name == "vm_load_executable") {
      return make_function(name, [library](const Arguments& arguments) -> Value {
        arguments.check_count(0, 0);
        return make_virtual_machine(library);
      });
    }
  }
  if (const EmbeddedGraph* embedded = embedded_graph(*library_)) {
    const std::shared_ptr<Module>& library = library_;
    if (name == embedded->module_name) {
      return factory_function(name, 0, [library](const Arguments&, std::vector<DLDevice> devices) {
        return make_graph_executor(library, std::move(devices));
      });
    }
    if (name == "debug_create") {
      return factory_function(name, 1,
                              [library](const Arguments& arguments, std::vector<DLDevice> devices) {
                                if (arguments.text(0) != embedded_graph(*library)->module_name) {
                                  throw Error(ErrorKind::kMismatch,
                                              "the library holds the model " +
                                                  in_quotes(embedded_graph(*library)->module_name) +
                                                  ", not " + in_quotes(arguments.text(0)));
                                }
                                return make_debug_executor(library, std::move(devices));
                              });
    }
    if (name == "get_graph_json") {
      return make_function(name, [library](const Arguments&) -> Value {
        return embedded_graph(*library)->graph_json;
      });
    }
    if (name == "get_graph_params") {
      return make_function(name, [](const Arguments&) -> Value {
        throw Error(ErrorKind::kMismatch, "a map of tensors cannot be sent over RPC",
                    "load the library on the host to get at its parameters");
      });
    }
  }
  return compiled_function(library_, name);
}

}  // namespace run_model::rpc
