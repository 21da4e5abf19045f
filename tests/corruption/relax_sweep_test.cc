// Relax executables. What is accepted is turned into a graph as well, with functions that are there
// by name only: nothing of the library is called.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "runtime/memory/storage_plan.h"
#include "runtime/relax/relax_model.h"
#include "tests/corruption/damage.h"
#include "tests/corruption/sweep.h"
#include "tests/runtime/relax/test_executable.h"

namespace run_model::corruption {
namespace {

int do_nothing(void*, const FfiAny*, std::int32_t, FfiAny*) { return 0; }

class NamesOnly : public ModelLibrary {
 public:
  const std::filesystem::path& path() const override { return path_; }
  PackedFunction find(const std::string& /*name*/) const override { return nullptr; }
  const std::optional<EmbeddedGraph>& embedded_graph() const override { return none_; }
  FfiFunction find_ffi(const std::string& name) const override {
    return name.starts_with("vm.") ? nullptr : do_nothing;
  }

 private:
  std::filesystem::path path_ = "model.so";
  std::optional<EmbeddedGraph> none_;
};

TEST(RelaxSweep, ExecutablesAreReadSafely) {
  const NamesOnly library;
  Sweep sweep({ErrorKind::kFormat, ErrorKind::kIncompatible}, "model.so");
  const auto read = [&](const std::string& how, const std::string& bytes) {
    std::optional<RelaxExecutable> executable;
    if (!sweep.accepts(how, [&] { executable = testing_relax::parse(bytes); })) return;
    try {
      const RelaxFunction& function = choose_function(*executable, "", "'model.so'");
      const auto forms = input_forms(*executable, function);
      const std::vector<std::vector<std::int64_t>> shapes(forms.size(), {2});
      const RelaxTrace trace = trace_function(*executable, function, forms, shapes, library);
      plan_storage(trace.graph, "'model.so'");
    } catch (const Error&) {
      // Refused by what it computes rather than by how it is written.
    }
  };
  for_each_damage(testing_relax::small_executable().bytes(), read);
}

}  // namespace
}  // namespace run_model::corruption
