
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "rpc/modules/library_module.h"
#include "tests/has_elements.h"
#include "tests/rpc/executor_fixture.h"
#include "tests/runtime/relax/function_library.h"
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

using testing_executor::call;
using testing_executor::given;
using testing_executor::number;
using testing_executor::values_of;
using testing_executor::vector_of;
using testing_relax::branching_executable;
using testing_relax::dynamic_executable;
using testing_relax::ExecutableBuilder;
using testing_relax::FunctionLibrary;
using testing_relax::reg;
using testing_relax::small_executable;

const Value kMain = std::string("main");

std::shared_ptr<RemoteModule> machine_of(const ExecutableBuilder& builder) {
  const auto library =
      std::make_shared<LibraryModule>(std::make_shared<FunctionLibrary>(builder.bytes()));
  const Value machine = call(*library, "vm_load_executable", {});
  return std::get<std::shared_ptr<RemoteModule>>(machine);
}

// (x + x, (x, x + x)) of two numbers.
ExecutableBuilder nested_executable() {
  ExecutableBuilder builder;
  builder.begin("main", {"x"}, 6);
  builder.check_numbers(0, true, "ErrorContext(fn=main)");
  builder.new_pair(2);
  builder.call(kRelaxVoid, "add", {reg(0), reg(0), reg(2)});
  builder.call(3, "vm.builtin.make_tuple", {reg(0), reg(2)});
  builder.call(4, "vm.builtin.make_tuple", {reg(2), reg(3)});
  builder.ret(4);
  return builder;
}

TEST(VirtualMachineModuleTest, RunsOnInputsThatWereSet) {
  const auto machine = machine_of(small_executable());
  call(machine, "vm_initialization", {number(1), number(0), number(2)});
  call(machine, "set_input", {kMain, given({1, 2})});
  call(machine, "invoke_stateful", {kMain});
  EXPECT_EQ(std::get<std::int64_t>(call(machine, "get_output_arity", {kMain})), -1);
  EXPECT_TRUE(has_elements(values_of(call(machine, "get_output", {kMain})), {11, 22}));
  EXPECT_EQ(std::get<std::int64_t>(call(machine, "get_function_arity", {kMain})), 1);
  EXPECT_EQ(std::get<std::string>(call(machine, "get_function_param_name", {kMain, number(0)})),
            "x");
}

TEST(VirtualMachineModuleTest, CallsByNameDoNotTouchWhatWasSet) {
  const auto machine = machine_of(small_executable());
  const std::vector<Value> input{given({1, 2})};
  call(machine, "set_input", {kMain, input[0]});
  call(machine, "invoke_stateful", {kMain});
  const Value before = call(machine, "get_output", {kMain});
  const Value direct = call(machine, "main", {given({3, 4})});
  EXPECT_TRUE(has_elements(values_of(direct), {13, 24}));
  EXPECT_TRUE(has_elements(values_of(call(machine, "get_output", {kMain})), {11, 22}));
  // set_input has copied, so that the client may write to its tensor.
  std::get<TensorArgument>(input[0]).tensor.elements<float>()[0] = 100;
  call(machine, "invoke_stateful", {kMain});
  EXPECT_TRUE(has_elements(values_of(call(machine, "get_output", {kMain})), {11, 22}));
  call(machine, "set_input", {kMain, given({5, 6})});
  EXPECT_TRUE(has_elements(values_of(call(machine, "get_output", {kMain})), {11, 22}));
  call(machine, "invoke_stateful", {kMain});
  EXPECT_TRUE(has_elements(values_of(call(machine, "get_output", {kMain})), {15, 26}));
  // What the client got stays what it is.
  EXPECT_TRUE(has_elements(values_of(before), {11, 22}));
  EXPECT_TRUE(has_elements(values_of(direct), {13, 24}));
}

TEST(VirtualMachineModuleTest, FindsOutputsInTuples) {
  const auto machine = machine_of(nested_executable());
  call(machine, "set_input", {kMain, given({1, 2})});
  call(machine, "invoke_stateful", {kMain});
  const auto arity = [&](const std::vector<Value>& indices) {
    std::vector<Value> arguments{kMain};
    arguments.insert(arguments.end(), indices.begin(), indices.end());
    return std::get<std::int64_t>(call(machine, "get_output_arity", arguments));
  };
  EXPECT_EQ(arity({}), 2);
  EXPECT_EQ(arity({number(0)}), -1);
  EXPECT_EQ(arity({number(1)}), 2);
  EXPECT_EQ(arity({number(1), number(1)}), -1);
  EXPECT_TRUE(has_elements(values_of(call(machine, "get_output", {kMain, number(0)})), {2, 4}));
  EXPECT_TRUE(
      has_elements(values_of(call(machine, "get_output", {kMain, number(1), number(0)})), {1, 2}));
  EXPECT_TRUE(
      has_elements(values_of(call(machine, "get_output", {kMain, number(1), number(1)})), {2, 4}));
  EXPECT_TRUE(throws_error([&] { call(machine, "get_output", {kMain, number(1)}); },
                           ErrorKind::kMismatch, "a tuple of 2"));
  EXPECT_TRUE(throws_error([&] { arity({number(2)}); }, ErrorKind::kMismatch, "0 to 1"));
  EXPECT_TRUE(throws_error([&] { arity({number(0), number(0)}); }, ErrorKind::kMismatch,
                           "a tensor, not a tuple"));
  // Called by its name it gives an object.
  EXPECT_TRUE(std::holds_alternative<std::shared_ptr<RemoteObject>>(
      call(machine, "main", {given({1, 2})})));
}

TEST(VirtualMachineModuleTest, TakesAnyShapeThatFits) {
  const auto machine = machine_of(dynamic_executable());
  const auto run = [&](const std::vector<float>& x, const std::vector<float>& y) {
    call(machine, "set_input", {kMain, given(x), given(y)});
    call(machine, "invoke_stateful", {kMain});
    return std::get<ArrayResult>(call(machine, "get_output", {kMain})).tensor;
  };
  const Tensor three = run({1, 2, 3}, {1, 1, 1});
  EXPECT_EQ(three.shape(), std::vector<std::int64_t>{6});
  EXPECT_EQ(three.elements<float>()[2], 4);
  EXPECT_EQ(run({1}, {2}).shape(), std::vector<std::int64_t>{2});
  EXPECT_EQ(values_of(call(machine, "main", {given({5, 6}), given({1, 1})})).at(1), 7);
  EXPECT_EQ(three.elements<float>()[2], 4);
  EXPECT_TRUE(throws_error([&] { run({1, 2}, {1}); }, ErrorKind::kMismatch, "contradict"));
  EXPECT_EQ(run({1, 2}, {1, 1}).elements<float>()[1], 3);
}

TEST(VirtualMachineModuleTest, InterpretsWhatDependsOnValues) {
  const auto machine = machine_of(branching_executable());
  const auto choice = [](bool value) -> Value {
    Tensor tensor = Tensor::empty({}, kFfiBoolType);
    *static_cast<char*>(tensor.data()) = value ? 1 : 0;
    return TensorArgument{tensor};
  };
  for (const bool value : {true, false}) {
    call(machine, "set_input", {kMain, choice(value), given({1, 2})});
    call(machine, "invoke_stateful", {kMain});
    EXPECT_EQ(std::get<std::int64_t>(call(machine, "get_output_arity", {kMain})), -1);
    EXPECT_EQ(values_of(call(machine, "get_output", {kMain})).at(0), value ? 2 : 11);
  }
}

TEST(VirtualMachineModuleTest, SavedFunctionsKeepTheirArguments) {
  const auto machine = machine_of(dynamic_executable());
  const Value last = given({10, 20});
  const Value name = std::string("saved");
  call(machine, "save_function", {kMain, name, number(1), last});
  std::get<TensorArgument>(last).tensor.elements<float>()[0] = 0;
  EXPECT_EQ(values_of(call(machine, "saved", {given({1, 2})})).at(0), 11);
  call(machine, "save_function", {kMain, name, number(0), given({1, 2}), given({1, 2})});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(call(machine, "saved", {})));
  const FunctionPointer saved = machine->find("saved");
  const std::function<void()> prepared = saved->prepare({});
  prepared();
  EXPECT_EQ(values_of(call(machine, "invoke_closure",
                           {Value(machine->find("main")), given({1, 2}), given({3, 4})}))
                .at(1),
            6);
}

TEST(VirtualMachineModuleTest, SaysWhatIsWrong) {
  const auto machine = machine_of(small_executable());
  const auto fails = [&](const std::string& function, const std::vector<Value>& arguments,
                         const std::string& why) {
    EXPECT_TRUE(
        throws_error([&] { call(machine, function, arguments); }, ErrorKind::kMismatch, why));
  };
  fails("invoke_stateful", {kMain}, "has no inputs yet");
  fails("get_output", {kMain}, "has no outputs yet");
  fails("set_input", {kMain}, "takes 1 tensors (x), but was given 0");
  fails("set_input", {kMain, number(1)}, "is an integer, expected a tensor");
  fails("set_input", {std::string("other"), given({1})}, "no function 'other'");
  fails("main", {given({1, 2, 3})}, "float32");
  fails("vm_initialization", {number(2), number(0), number(2)}, "only");
  fails("vm_initialization", {}, "three numbers");
  fails("get_function_param_name", {kMain, number(1)}, "expected");
  fails("set_instrument", {kMain}, "of the client");
  EXPECT_EQ(machine->find("add"), nullptr);
  EXPECT_EQ(machine->find("other"), nullptr);
}

TEST(VirtualMachineModuleTest, FunctionsOfSuchLibrariesTakeTensors) {
  LibraryModule library(std::make_shared<FunctionLibrary>());
  const FunctionPointer add = library.find("add");
  ASSERT_NE(add, nullptr);
  const Tensor sum = vector_of({0, 0});
  const std::vector<Value> arguments{given({1, 2}), given({3, 4}), TensorArgument{sum}};
  EXPECT_TRUE(std::holds_alternative<std::monostate>(add->call(arguments)));
  EXPECT_TRUE(has_elements(values_of(sum), {4, 6}));
  EXPECT_TRUE(throws_error([&] { add->call({}); }, ErrorKind::kModel, "'add' failed"));
  EXPECT_EQ(library.find("nothing"), nullptr);
  EXPECT_EQ(library.find("vm_load_executable"), nullptr);
}

}  // namespace
}  // namespace run_model::rpc
