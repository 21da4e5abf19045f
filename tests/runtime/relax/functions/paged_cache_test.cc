// Which rows and pages a paged cache of attention gives its sequences; what the kernels make of
// them is in tests/compat (`paged`).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <run_model/relax_session.h>
#include "tests/runtime/relax/function_library.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing_relax::con;
using testing_relax::ExecutableBuilder;
using testing_relax::fun;
using testing_relax::FunctionLibrary;
using testing_relax::imm;
using testing_relax::reg;

constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kWidth = 4;

// main() makes a cache for 8 rows in pages of 4, and one page more.
std::shared_ptr<FunctionLibrary> cache_maker(std::int64_t slides, std::int64_t kind) {
  ExecutableBuilder builder;
  const std::int64_t kernel = fun(builder.packed("rank"));
  const std::int64_t tir = con(builder.text("tirx"));
  builder.begin("main", {}, 2);
  builder.call(0, "vm.builtin.make_tuple", {tir, kernel});
  std::vector<std::int64_t> arguments{con(builder.shape({2, 8, 8, 4, slides})),
                                      con(builder.shape({0, 1})),
                                      imm(kHeads),
                                      imm(kHeads),
                                      imm(kWidth),
                                      imm(kWidth),
                                      con(builder.shape({kind})),
                                      imm(0),
                                      imm(1),
                                      imm(1),
                                      imm(10000),
                                      imm(0),
                                      con(builder.ten_and_twenty())};
  arguments.insert(arguments.end(), 2, kernel);
  arguments.insert(arguments.end(), 9, reg(0));
  arguments.insert(arguments.end(), 4, kernel);
  builder.call(1, "vm.builtin.paged_attention_kv_cache_create", arguments);
  builder.ret(1);
  return std::make_shared<FunctionLibrary>(builder.bytes());
}

class PagedCacheTest : public testing::Test {
 protected:
  RelaxValue call(const std::string& name, std::initializer_list<RelaxValue> further = {}) {
    std::vector<RelaxValue> arguments{cache_};
    arguments.insert(arguments.end(), further);
    return session_.call("vm.builtin." + name, arguments);
  }
  void add(std::int64_t id) { call("kv_state_add_sequence", {RelaxValue::of_integer(id)}); }
  void begin(const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& rows) {
    call("kv_state_begin_forward", {RelaxValue::of_shape(ids), RelaxValue::of_shape(rows)});
  }
  void pop(std::int64_t id, std::int64_t rows) {
    call("kv_state_popn", {RelaxValue::of_integer(id), RelaxValue::of_integer(rows)});
  }
  std::int64_t pages() { return call("attention_kv_cache_get_num_available_pages").integer(); }
  std::vector<std::int32_t> positions() {
    const Tensor tensor = call("attention_kv_cache_get_query_positions").tensor();
    const auto elements = tensor.elements<std::int32_t>();
    return {elements.begin(), elements.end()};
  }

  RelaxSession session_{cache_maker(0, 0)};
  RelaxValue cache_ = session_.call("main", {});
};

TEST_F(PagedCacheTest, GivesPagesAndTakesThemBack) {
  EXPECT_EQ(cache_.kind(), RelaxValue::Kind::kState);
  EXPECT_EQ(pages(), 3);
  add(0);
  add(5);
  begin({0}, {5});
  EXPECT_EQ(positions(), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pages(), 1);
  begin({5, 0}, {2, 1});
  EXPECT_EQ(positions(), (std::vector<std::int32_t>{0, 1, 5}));
  EXPECT_EQ(call("attention_kv_cache_get_total_sequence_length").integer(), 8);
  EXPECT_EQ(pages(), 0);
  pop(0, 2);
  EXPECT_EQ(pages(), 1);
  pop(0, 0);
  begin({0}, {1});
  EXPECT_EQ(positions(), (std::vector<std::int32_t>{4}));
  call("kv_state_remove_sequence", {RelaxValue::of_integer(0)});
  EXPECT_EQ(pages(), 2);
  call("kv_state_clear");
  EXPECT_EQ(pages(), 3);
  EXPECT_EQ(call("attention_kv_cache_empty").integer(), 1);
}

TEST_F(PagedCacheTest, RefusesWhatItCannotHold) {
  const auto refuses = [&](const auto& what, ErrorKind kind, const std::string& said) {
    EXPECT_TRUE(throws_error(what, kind, said));
  };
  add(0);
  refuses([&] { positions(); }, ErrorKind::kMismatch, "before it knows what it is fed");
  refuses([&] { add(0); }, ErrorKind::kMismatch, "sequence 0 already");
  refuses([&] { begin({1}, {1}); }, ErrorKind::kMismatch, "no sequence 1");
  refuses([&] { begin({0}, {13}); }, ErrorKind::kMismatch, "3 pages left, but 4 are needed");
  EXPECT_EQ(pages(), 3);
  begin({0}, {3});
  refuses([&] { begin({0, 0}, {1, 1}); }, ErrorKind::kFormat, "fed twice");
  refuses([&] { begin({0}, {0}); }, ErrorKind::kFormat, "fed 0 rows");
  refuses([&] { begin({0}, {1, 1}); }, ErrorKind::kFormat, "1 sequences and 2 lengths");
  refuses([&] { pop(0, 4); }, ErrorKind::kFormat, "4 rows are taken from a sequence of 3");
  const auto attend = [&](std::int64_t layer, std::int64_t rows) {
    const auto of = [&](std::int64_t heads) {
      return RelaxValue::of_tensor(Tensor::empty({rows, heads, kWidth}, {kDLFloat, 32, 1}));
    };
    call("attention_kv_cache_attention_with_fused_qkv",
         {RelaxValue::of_integer(layer), RelaxValue::of_real(1), of(3 * kHeads), of(kHeads)});
  };
  refuses([&] { attend(0, 2); }, ErrorKind::kMismatch, "fed 3 rows is given float32 [2, 6, 4]");
  refuses([&] { attend(1, 3); }, ErrorKind::kFormat, "no layer 1");
}

TEST(PagedCacheKindTest, NamesWhatIsLeftOut) {
  RelaxSession slides(cache_maker(1, 0));
  EXPECT_TRUE(throws_error([&] { slides.call("main", {}); }, ErrorKind::kIncompatible,
                           "with sliding windows"));
  RelaxSession latent(cache_maker(0, 1));
  EXPECT_TRUE(throws_error([&] { latent.call("main", {}); }, ErrorKind::kIncompatible,
                           "other than plain ones"));
}

}  // namespace
}  // namespace run_model
