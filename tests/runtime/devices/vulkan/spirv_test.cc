#include "runtime/devices/vulkan/spirv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "tests/runtime/devices/vulkan/shaders.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using ::testing::ElementsAre;

TEST(SpirvTest, FactsOfAShaderWithPushConstants) {
  for (const char* file : {"scale_add", "scale_add_1.0"}) {
    SCOPED_TRACE(file);
    const ShaderFacts facts = read_shader(shader_words(file), "scale_add");
    EXPECT_EQ(facts.major, 1U);
    EXPECT_EQ(facts.minor, file == std::string("scale_add") ? 3U : 0U);
    EXPECT_THAT(facts.capabilities, ElementsAre(1));
    EXPECT_THAT(facts.threads, ElementsAre(64, 1, 1));
    EXPECT_EQ(facts.shared_bytes, 0U);
    ASSERT_EQ(facts.bindings.size(), 3U);
    EXPECT_FALSE(facts.bindings.at(0).uniform);
    EXPECT_FALSE(facts.bindings.at(0).written);
    EXPECT_FALSE(facts.bindings.at(1).written);
    EXPECT_TRUE(facts.bindings.at(2).written);
    EXPECT_TRUE(facts.has_push_constants);
    ASSERT_EQ(facts.scalars.size(), 2U);
    EXPECT_EQ(facts.scalars[1].offset, 8U);
    EXPECT_EQ(facts.scalars[1].bytes, 4U);
  }
}

TEST(SpirvTest, FactsOfAShaderWithAUniformBuffer) {
  const ShaderFacts facts = read_shader(shader_words("polynomial"), "polynomial");
  EXPECT_THAT(facts.threads, ElementsAre(16, 2, 1));
  EXPECT_TRUE(facts.bindings.at(2).uniform);
  EXPECT_FALSE(facts.has_push_constants);
  ASSERT_EQ(facts.scalars.size(), 6U);
  EXPECT_EQ(facts.scalars[5].offset, 152U);
}

TEST(SpirvTest, CountsSharedMemory) {
  EXPECT_EQ(read_shader(shader_words("group_sum"), "group_sum").shared_bytes, 512U);
  EXPECT_EQ(read_shader(shader_words("much_shared"), "much_shared").shared_bytes, 1U << 20);
}

TEST(SpirvTest, RefusesWhatIsNoModule) {
  const std::vector<std::uint32_t> good = shader_words("step");
  const auto with = [&good](std::size_t word, std::uint32_t value) {
    std::vector<std::uint32_t> changed = good;
    changed[word] = value;
    return changed;
  };
  const auto fails = [](const std::vector<std::uint32_t>& words, const std::string& text) {
    EXPECT_TRUE(throws_error([&] { read_shader(words, "step"); }, ErrorKind::kFormat,
                             {"kernel 'step'", text}));
  };
  fails({}, "it has 0 words");
  fails(with(0, 0x464c457f), "begins with 0x464c457f");
  fails(with(0, 0x03022307), "big-endian");
  fails(with(1, 0x00020000), "no version of SPIR-V 1");
  fails(with(3, 0), "no bound of ids");
  fails(with(3, 0xffffffff), "no bound of ids");
  fails(with(3, 2), "no id below the bound 2");
  fails(with(4, 1), "reserved word");
  fails(with(5, 17), "0 words long");
  fails(with(5, 0xffff0011), "only " + std::to_string(good.size() - 5) + " are left");
  EXPECT_TRUE(throws_error([&] { read_shader(good, "other"); }, ErrorKind::kFormat,
                           "no entry point of this name"));
  EXPECT_TRUE(throws_error([&] { read_shader(shader_words("image"), "image"); },
                           ErrorKind::kIncompatible, "an image"));
}

// Whatever a word becomes: facts or an error, within the bounds of the words.
TEST(SpirvTest, NoChangedWordLeadsAstray) {
  for (const char* name : {"scale_add", "polynomial", "group_sum", "much_shared"}) {
    const std::vector<std::uint32_t> good = shader_words(name);
    int refused = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
      for (const std::uint32_t value :
           {0U, 1U, 0xffffffffU, good[i] + 1, good[i] - 1, good[i] ^ 0x00010000U,
            good[i] ^ 0x80000000U, good[(i * 7 + 3) % good.size()]}) {
        std::vector<std::uint32_t> changed = good;
        changed[i] = value;
        try {
          read_shader(changed, name);
        } catch (const Error&) {
          ++refused;
        }
      }
    }
    EXPECT_GT(refused, static_cast<int>(good.size()));
  }
}

TEST(SpirvTest, NoCutLeadsAstray) {
  std::vector<std::uint32_t> words = shader_words("group_sum");
  while (!words.empty()) {
    words.pop_back();
    try {
      read_shader(words, "group_sum");
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace run_model
