#include "runtime/devices/code/code_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "tests/temporary_folder.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string found(const CodeCache& cache, const std::string& key) {
  const auto bytes = cache.find(key);
  return bytes ? std::string(as_text(*bytes)) : "nothing";
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(folder)) files.push_back(file.path());
  return files;
}

class CodeCacheTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(CodeCacheTest, FindsWhatWasKept) {
  const CodeCache cache(folder_.path());
  const std::string key = CodeCache::key({"opencl", "driver 1", "source"});
  EXPECT_EQ(found(cache, key), "nothing");
  cache.keep(key, bytes_of("compiled"));
  EXPECT_EQ(found(cache, key), "compiled");
  cache.keep(key, bytes_of(""));
  EXPECT_EQ(found(cache, key), "");
  EXPECT_EQ(found(CodeCache(folder_.path()), key), "");
  EXPECT_EQ(files_in(folder_.path()).size(), 1U);
}

TEST_F(CodeCacheTest, KeysTellAllPartsApart) {
  EXPECT_NE(CodeCache::key({"ab", "c"}), CodeCache::key({"a", "bc"}));
  EXPECT_NE(CodeCache::key({"ab"}), CodeCache::key({"ab", ""}));
  EXPECT_EQ(CodeCache::key({"ab", "c"}), CodeCache::key({"ab", "c"}));
}

TEST_F(CodeCacheTest, NoDamagedEntryIsGiven) {
  const CodeCache cache(folder_.path());
  const std::string key = CodeCache::key({"x"});
  cache.keep(key, bytes_of("some compiled code"));
  const fs::path file = files_in(folder_.path()).at(0);
  std::ifstream stream(file, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(stream), {}};
  for (std::size_t i = 0; i <= good.size(); ++i) {
    std::string damaged = good;
    if (i < good.size()) damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    if (i == good.size()) damaged += "x";
    std::ofstream(file, std::ios::binary) << damaged;
    ASSERT_EQ(found(cache, key), "nothing") << i;
    ASSERT_FALSE(fs::exists(file));
    std::ofstream(file, std::ios::binary) << good.substr(0, i == good.size() ? 0 : i);
    ASSERT_EQ(found(cache, key), "nothing") << i;
  }
  // Another entry's file under this one's name.
  const std::string other = CodeCache::key({"y"});
  cache.keep(other, bytes_of("other code"));
  fs::rename(files_in(folder_.path()).at(0), file);
  EXPECT_EQ(found(cache, key), "nothing");
  cache.keep(key, bytes_of("some compiled code"));
  EXPECT_EQ(found(cache, key), "some compiled code");
}

TEST_F(CodeCacheTest, RemovesWhatWasNotUsedForTheLongestTime) {
  const CodeCache cache(folder_.path(), 10'000);
  const std::string large(1900, 'x');
  std::vector<std::string> keys;
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 4; ++i) {
    keys.push_back(CodeCache::key({std::to_string(i)}));
    cache.keep(keys.back(), bytes_of(large));
    fs::last_write_time(folder_ / (keys.back() + ".kernels"), now - std::chrono::minutes(10 - i));
  }
  EXPECT_EQ(found(cache, keys[0]), large);  // used now
  cache.keep(CodeCache::key({"new"}), bytes_of(large));
  EXPECT_EQ(found(cache, CodeCache::key({"new"})), large);
  EXPECT_EQ(found(cache, keys[0]), large);
  EXPECT_EQ(found(cache, keys[1]), "nothing");
  std::uintmax_t total = 0;
  for (const fs::path& file : files_in(folder_.path())) total += fs::file_size(file);
  EXPECT_LE(total, 10'000U);
  cache.keep(CodeCache::key({"too large"}), bytes_of(std::string(5001, 'x')));
  EXPECT_EQ(found(cache, CodeCache::key({"too large"})), "nothing");
}

TEST_F(CodeCacheTest, RemovesWhatEndedProcessesLeft) {
  const CodeCache cache(folder_.path(), 100);
  const std::string key = CodeCache::key({"x"});
  const fs::path old = folder_ / (key + ".kernels.tmp1.0");
  const fs::path recent = folder_ / (key + ".kernels.tmp2.0");
  const fs::path other = folder_ / "README";
  for (const fs::path& file : {old, recent, other}) std::ofstream(file) << "x";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache.keep(key, bytes_of("code"));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(recent));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(CodeCacheTest, SeveralMayUseItAtOnce) {
  const std::string key = CodeCache::key({"x"});
  const std::vector<std::string> versions{std::string(20'000, 'a'), std::string(30'000, 'b')};
  std::vector<std::thread> threads;
  std::array<int, 4> wrong{};
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([&, i] {
      const CodeCache cache(folder_.path());
      for (int round = 0; round < 50; ++round) {
        cache.keep(key, bytes_of(versions[i % 2]));
        const std::string seen = found(cache, key);
        if (seen != versions[0] && seen != versions[1]) ++wrong[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ::testing::Each(0));
  EXPECT_EQ(files_in(folder_.path()).size(), 1U);
}

TEST_F(CodeCacheTest, NeverFails) {
  const CodeCache nowhere(folder_ / "none/there");
  const std::string key = CodeCache::key({"x"});
  nowhere.keep(key, bytes_of("code"));
  EXPECT_EQ(found(nowhere, key), "nothing");
  fs::create_directory(folder_ / (key + ".kernels"));
  const CodeCache blocked(folder_.path());
  blocked.keep(key, bytes_of("code"));
  EXPECT_EQ(found(blocked, key), "nothing");
}

class Environment {
 public:
  Environment() {
    for (const char* name : kNames) {
      const char* const value = std::getenv(name);
      before_.emplace_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
      unsetenv(name);
    }
  }
  ~Environment() {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (before_[i]) {
        setenv(kNames[i], before_[i]->c_str(), 1);
      } else {
        unsetenv(kNames[i]);
      }
    }
  }

 private:
  static constexpr std::array kNames{"RUN_MODEL_KERNEL_CACHE", "XDG_CACHE_HOME", "HOME"};
  std::vector<std::optional<std::string>> before_;
};

TEST_F(CodeCacheTest, LiesWhereTheUserSays) {
  const Environment restored;
  const std::string key = CodeCache::key({"x"});
  const auto place = [&](const char* variable, const fs::path& value) {
    setenv(variable, value.c_str(), 1);
    const auto cache = CodeCache::open_for_user();
    unsetenv(variable);
    if (!cache) return fs::path("none");
    cache->keep(key, bytes_of("code"));
    for (const auto& file : fs::recursive_directory_iterator(folder_.path())) {
      if (!file.is_regular_file()) continue;
      const fs::path folder = file.path().parent_path();
      EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
      fs::remove(file.path());
      return fs::relative(folder, folder_.path());
    }
    return fs::path("nowhere");
  };
  EXPECT_EQ(place("XDG_CACHE_HOME", folder_ / "a"), "a/run_model/kernels");
  EXPECT_EQ(place("HOME", folder_ / "b"), "b/.cache/run_model/kernels");
  EXPECT_EQ(place("RUN_MODEL_KERNEL_CACHE", folder_ / "c"), "c");
  EXPECT_EQ(place("RUN_MODEL_KERNEL_CACHE", "off"), "none");
  EXPECT_EQ(place("XDG_CACHE_HOME", "relative"), "none");
  EXPECT_EQ(place("HOME", "/proc"), "none");
  EXPECT_EQ(CodeCache::open_for_user(), nullptr);
  fs::create_directory(folder_ / "open");
  fs::permissions(folder_ / "open", fs::perms::all);
  EXPECT_EQ(place("RUN_MODEL_KERNEL_CACHE", folder_ / "open"), "none");
}

}  // namespace
}  // namespace run_model
