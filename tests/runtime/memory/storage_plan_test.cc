#include "runtime/memory/storage_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <run_model/error.h>
#include "tests/has_elements.h"
#include "tests/runtime/test_graphs.h"

namespace run_model {
namespace {

using testing::HasSubstr;
using testing_graphs::call_node;
using testing_graphs::graph_of;
using testing_graphs::input_node;
using testing_graphs::json;

StoragePlan planned(const json& document) {
  return plan_storage(parse_graph(document.dump(), "g"), "g");
}

std::string plan_refusal(const json& document) {
  try {
    planned(document);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFormat);
    return error.what();
  }
  return "accepted";
}

TEST(StoragePlan, FollowsReshapesAsAliases) {
  StoragePlan result = planned(testing_graphs::chain_graph());
  EXPECT_TRUE(has_elements(result.alias_of, {0, 1, 2, 2, 4}));
  EXPECT_TRUE(has_elements(result.storage_bytes, {16, 16, 16, 16}));
}

TEST(StoragePlan, AReshapeIntoAnotherStorageIsNoAlias) {
  StoragePlan result = planned(graph_of(
      {input_node("x"), call_node("reshape", "__nop", {{0, 0}}), call_node("f", "f", {{1, 0}})},
      {0, 1, 2}, {{2, 0}}));
  EXPECT_TRUE(has_elements(result.alias_of, {0, 1, 2}));
}

TEST(StoragePlan, TakesTheLargestTensorOfAStorage) {
  json document = graph_of({input_node("x"), call_node("f", "f", {{0, 0}}),
                            call_node("g", "g", {{1, 0}}), call_node("h", "h", {{2, 0}})},
                           {0, 1, 2, 1}, {{3, 0}});
  document["attrs"]["shape"][1][1] = {100};
  EXPECT_TRUE(has_elements(planned(document).storage_bytes, {16, 400, 16}));
}

// f's result is given to g's output's storage, yet h reads f.
TEST(StoragePlan, RefusesReadingAfterReuse) {
  EXPECT_THAT(
      plan_refusal(graph_of({input_node("x"), call_node("f", "f", {{0, 0}}),
                             call_node("g", "g", {{0, 0}}), call_node("h", "h", {{1, 0}, {2, 0}})},
                            {0, 1, 1, 2}, {{3, 0}})),
      HasSubstr("the storage of 'f' is overwritten by 'g' before node 'h' reads it"));
}

TEST(StoragePlan, RefusesReusingAnOutput) {
  EXPECT_THAT(plan_refusal(graph_of(
                  {input_node("x"), call_node("f", "f", {{0, 0}}), call_node("g", "g", {{0, 0}})},
                  {0, 1, 1}, {{1, 0}, {2, 0}})),
              HasSubstr("before the caller reads it"));
}

TEST(StoragePlan, RefusesWritingIntoInputs) {
  EXPECT_THAT(
      plan_refusal(graph_of({input_node("x"), input_node("w"), call_node("f", "f", {{0, 0}})},
                            {0, 1, 1}, {{2, 0}})),
      HasSubstr("the storage of the input 'w' is given to 'f' too"));
  EXPECT_THAT(
      plan_refusal(graph_of({input_node("x"), input_node("w"), call_node("f", "f", {{0, 0}})},
                            {0, 0, 1}, {{2, 0}})),
      HasSubstr("the storage of the input 'x' is given to 'w' too"));
}

TEST(StoragePlan, RefusesTwoOutputsOfANodeInOnePlace) {
  EXPECT_THAT(plan_refusal(graph_of({input_node("x"), call_node("s", "split", {{0, 0}}, 2)},
                                    {0, 1, 1}, {{1, 0}})),
              HasSubstr("overwritten"));
}

TEST(StoragePlan, AllowsReuseAfterTheLastReadAndInPlaceWork) {
  EXPECT_NO_THROW(planned(graph_of({input_node("x"), call_node("f", "f", {{0, 0}}),
                                    call_node("g", "g", {{1, 0}}), call_node("h", "h", {{2, 0}})},
                                   {0, 1, 2, 1}, {{3, 0}})));
  EXPECT_NO_THROW(planned(
      graph_of({input_node("x"), call_node("f", "f", {{0, 0}}), call_node("g", "g", {{1, 0}})},
               {0, 1, 1}, {{2, 0}})));
}

}  // namespace
}  // namespace run_model
