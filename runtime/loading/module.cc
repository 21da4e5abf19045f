#include <run_model/module.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/mapped_file.h"
#include "base/text.h"
#include "runtime/backend_api.h"
#include "runtime/devices/device_functions.h"
#include "runtime/elf/file.h"
#include "runtime/elf/host.h"
#include "runtime/loading/device_blob.h"
#include "runtime/loading/library_check.h"
#include "runtime/loading/model_library.h"
#include "runtime/relax/called_names.h"
#include "runtime/relax/executable.h"
#include "runtime/relax/functions/runtime_functions.h"

namespace run_model {
namespace {

// Where the library wants its own address: by the ABI of TVM up to 0.20, and by tvm-ffi's, since
// 0.22 and in 0.21.
constexpr std::string_view kContextSymbols[] = {"__tvm_module_ctx", "__tvm_ffi__library_ctx",
                                                "__tvm_ffi_library_ctx"};
constexpr std::string_view kBlobSymbol = "__tvm_dev_mblob";
constexpr std::string_view kMainSymbol = "__tvm_main__";

// A library in this process; closing it unmaps its code.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(void* handle) : handle_(handle) {}
  LoadedLibrary(LoadedLibrary&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  LoadedLibrary& operator=(LoadedLibrary&&) = delete;
  ~LoadedLibrary() {
    if (handle_ != nullptr) {
      ::dlclose(handle_);
    }
  }

  void* handle() const { return handle_; }
  void* find(const std::string& name) const { return ::dlsym(handle_, name.c_str()); }

 private:
  void* handle_;
};

// The lines of /proc/self/maps, "7f…-7f… r-xp 00001000 08:01 1234 /model.so", from the device on:
// which file lies behind each of `places`, in its order. Empty where nothing tells.
std::vector<std::string> files_behind(std::span<const void* const> places) {
  std::vector<std::string> files(places.size());
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    char* rest = nullptr;
    const std::uintmax_t begin = std::strtoumax(line.c_str(), &rest, 16);
    const std::uintmax_t end = *rest == '-' ? std::strtoumax(rest + 1, &rest, 16) : begin;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto place = reinterpret_cast<std::uintptr_t>(places[i]);
      if (place < begin || place >= end) continue;
      std::uintmax_t inode = 0;
      int device = 0;
      int name = 0;
      std::sscanf(rest, "%*s %*s %n%*s %ju%n", &device, &inode, &name);
      if (name != 0 && inode != 0) files[i].assign(rest + device, rest + name);
    }
  }
  return files;
}

// Where the library's dynamic section lies; null where the loader does not tell. What it reads is
// freed by whoever closes the library last, after the closing of `library`: the loader's own lock
// says so, which ThreadSanitizer does not see.
[[gnu::no_sanitize("thread")]] const void* dynamic_section(const LoadedLibrary& library) {
  link_map* map = nullptr;
  return ::dlinfo(library.handle(), RTLD_DI_LINKMAP, &map) == 0 ? map->l_ld : nullptr;
}

// Whether the library was loaded from the file that `file` maps. The loader goes by names: under
// one that it knows it gives what it has loaded, also when another file has taken that name since.
bool loaded_from(const LoadedLibrary& library, const MappedFile& file) {
  const std::array<const void*, 2> places{dynamic_section(library), file.bytes().data()};
  const std::vector<std::string> files = files_behind(places);
  return files[0].empty() || files[1].empty() || files[0] == files[1];
}

class LibraryModule;

// The modules that are open, by the loader's handle: the loader gives the same one for the same
// file.
struct OpenModules {
  std::mutex mutex;
  std::map<void*, std::weak_ptr<LibraryModule>> entries;

  // Never destroyed: a module may outlive the program's static objects.
  static OpenModules& instance() {
    static auto* modules = new OpenModules;
    return *modules;
  }
};

class LibraryModule final : public ModelLibrary {
 public:
  LibraryModule(std::filesystem::path path, const ElfFile& elf, LoadedLibrary library)
      : path_(std::move(path)), library_(std::move(library)) {
    const LibraryKind kind = library_kind(elf);
    speaks_ffi_ = kind == LibraryKind::kTvm021 || kind == LibraryKind::kTvm022;
    if (kind == LibraryKind::kTvm022) prefix_ = kFfiPrefix;
    for (const std::string_view name : compiled_functions(elf)) {
      functions_.emplace(name);
    }
    fill_slots(elf);
    if (const ElfSymbol* main = elf.find(kMainSymbol); main != nullptr) {
      main_function_ = text_at(elf, *main);
    }
  }

  ~LibraryModule() override {
    forget_loops();
    auto& open = OpenModules::instance();
    const std::lock_guard lock(open.mutex);
    const auto entry = open.entries.find(library_.handle());
    // Opened again meanwhile, the file has a new module under the same handle.
    if (entry != open.entries.end() && entry->second.expired()) {
      open.entries.erase(entry);
    }
  }

  const std::filesystem::path& path() const override { return path_; }

  PackedFunction find(const std::string& name) const override {
    const std::string& function = name == kMainSymbol ? main_function_ : name;
    if (speaks_ffi_ || !functions_.contains(function)) {
      return nullptr;
    }
    return reinterpret_cast<PackedFunction>(library_.find(function));
  }

  FfiFunction find_ffi(const std::string& name) const override {
    const std::string symbol = prefix_ + name;
    if (!speaks_ffi_ || !functions_.contains(symbol)) return nullptr;
    return reinterpret_cast<FfiFunction>(library_.find(symbol));
  }

  void* function_object(const std::string& name) const override {
    const std::lock_guard lock(objects_mutex_);
    FfiValue& value = objects_[name];
    if (value.type == kFfiNone) value = make_relax_function(*this, name);
    return value.object;
  }

  bool speaks_ffi() const override { return speaks_ffi_; }

  std::shared_ptr<const RelaxExecutable> relax_executable() const override {
    return relax_executable_;
  }

  void set_relax_executable(std::shared_ptr<const RelaxExecutable> executable) {
    relax_executable_ = std::move(executable);
  }

  const std::optional<EmbeddedGraph>& embedded_graph() const override { return embedded_graph_; }

  const DeviceCodes& device_codes() const override { return device_codes_; }

  DeviceFunctions* device_functions() const override { return device_functions_.get(); }

  void set_device_blob(DeviceBlob blob) {
    embedded_graph_ = std::move(blob.graph);
    device_codes_ = std::move(blob.codes);
    if (!device_codes_.empty())
      device_functions_ = std::make_unique<DeviceFunctions>(device_codes_);
  }

 private:
  // Writes the addresses of this runtime's functions into the library's pointer variables for them,
  // and its own into the context that the library hands back to TVMBackendGetFuncFromEnv.
  void fill_slots(const ElfFile& elf) {
    for (const ExportedSymbol& symbol : exported_symbols()) {
      write_slot(elf, std::string("__") + symbol.name, symbol.address);
    }
    for (const std::string_view name : kContextSymbols) {
      write_slot(elf, std::string(name), static_cast<Module*>(this));
    }
  }

  void write_slot(const ElfFile& elf, const std::string& name, void* value) {
    const ElfSymbol* slot = elf.find(name);
    if (slot == nullptr || slot->type != STT_OBJECT) {
      return;
    }
    if (slot->bytes != sizeof(void*) || !writable_after_loading(elf, *slot)) {
      throw Error(ErrorKind::kFormat,
                  elf.source() + " is damaged: its variable " + in_quotes(name) +
                      " is not a pointer that can be written to",
                  "copy or export it again");
    }
    if (void* address = library_.find(name); address != nullptr) {
      std::memcpy(address, &value, sizeof(value));
    }
  }

  static bool writable_after_loading(const ElfFile& elf, const ElfSymbol& symbol) {
    for (const ElfSegment& segment : elf.segments()) {
      if (segment.type == PT_GNU_RELRO && symbol.address >= segment.address &&
          symbol.address - segment.address < segment.memory_bytes) {
        return false;
      }
    }
    return elf.in_image(symbol.address, symbol.bytes, PF_W);
  }

  static std::string text_at(const ElfFile& elf, const ElfSymbol& symbol) {
    const auto bytes = elf.bytes_of(symbol);
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    return bytes.empty() ? std::string() : std::string(text, ::strnlen(text, bytes.size()));
  }

  std::filesystem::path path_;
  LoadedLibrary library_;
  std::unordered_set<std::string> functions_;
  std::string main_function_;
  std::optional<EmbeddedGraph> embedded_graph_;
  DeviceCodes device_codes_;
  std::unique_ptr<DeviceFunctions> device_functions_;
  bool speaks_ffi_ = false;
  std::string prefix_;  // of the functions' symbols
  std::shared_ptr<const RelaxExecutable> relax_executable_;
  mutable std::mutex objects_mutex_;
  mutable std::map<std::string, FfiValue> objects_;
};

LoadedLibrary load(const std::string& path, const ElfFile& elf, const Host& host) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    throw load_error(elf, host, reason != nullptr ? reason : "");
  }
  return LoadedLibrary(handle);
}

DeviceBlob device_blob_of(const ElfFile& elf, const std::shared_ptr<const MappedFile>& file) {
  const ElfSymbol* symbol = elf.find(kBlobSymbol);
  if (symbol == nullptr) return {};
  const auto bytes = elf.bytes_of(*symbol);
  const auto base =
      bytes.empty() ? 0 : static_cast<std::size_t>(bytes.data() - file->bytes().data());
  DeviceBlob blob = read_device_blob(bytes, elf.source(), base);
  if (blob.graph) blob.graph->file = file;
  return blob;
}

std::shared_ptr<const RelaxExecutable> read_relax(const ElfFile& elf,
                                                  const std::shared_ptr<const MappedFile>& file) {
  auto executable = relax_executable_of(elf, file->bytes());
  if (!executable) return nullptr;
  check_called_names(*executable, elf, file->bytes());
  executable->file = file;
  return std::make_shared<const RelaxExecutable>(std::move(*executable));
}

}  // namespace

const ModelLibrary* as_model_library(const Module& library) {
  return dynamic_cast<const ModelLibrary*>(&library);
}

const DeviceCodes& ModelLibrary::device_codes() const {
  static const DeviceCodes none;
  return none;
}

const EmbeddedGraph* embedded_graph(const Module& library) {
  const ModelLibrary* model = as_model_library(library);
  return model != nullptr && model->embedded_graph() ? &*model->embedded_graph() : nullptr;
}

std::shared_ptr<Module> Module::open(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path, "library");
  const ElfFile elf = ElfFile::parse(file->bytes(), "library " + path_in_quotes(path));
  const Host host = Host::current();
  check_library(elf, host);
  auto blob = device_blob_of(elf, file);
  auto relax = read_relax(elf, file);

  auto& open = OpenModules::instance();
  // With a slash in its name the library is not looked for along the search path.
  const std::filesystem::path absolute = std::filesystem::absolute(path);
  std::string name = absolute.string();
  void* other_file = nullptr;
  while (true) {
    // These outlive the lock, which their destructor takes.
    std::shared_ptr<LibraryModule> other;
    std::shared_ptr<LibraryModule> module;
    const std::lock_guard lock(open.mutex);
    LoadedLibrary library = load(name, elf, host);
    void* const handle = library.handle();
    if (!loaded_from(library, *file)) {
      if (handle == other_file) {
        throw Error(ErrorKind::kFile,
                    elf.source() + " was replaced by another file while it was being loaded",
                    "try again");
      }
      // Under another spelling of the name the loader looks at the file itself.
      other_file = handle;
      name.insert(name.rfind('/'), "/.");
      continue;
    }
    if (const auto entry = open.entries.find(handle); entry != open.entries.end()) {
      other = entry->second.lock();
      if (other != nullptr) return other;
    }
    module = std::make_shared<LibraryModule>(path, elf, std::move(library));
    module->set_device_blob(std::move(blob));
    module->set_relax_executable(std::move(relax));
    open.entries[handle] = module;
    return module;
  }
}

}  // namespace run_model
