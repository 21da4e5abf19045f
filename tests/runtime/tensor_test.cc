#include <run_model/tensor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

const DLDataType kFloat32 = parse_dtype("float32");

TEST(Tensor, StorageIsAligned) {
  for (std::int64_t n : {0, 1, 3, 1000}) {
    Tensor tensor = Tensor::empty({n}, kFloat32);
    EXPECT_TRUE(tensor.aligned()) << n;
    EXPECT_EQ(tensor.nbytes(), static_cast<std::size_t>(n) * 4);
    EXPECT_TRUE(tensor.defined());
  }
  EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, CopiesShareBytesAndClonesDoNot) {
  Tensor tensor = Tensor::empty({2}, kFloat32);
  tensor.elements<float>()[0] = 1.0f;
  tensor.elements<float>()[1] = 2.0f;
  Tensor same = tensor;
  Tensor clone = tensor.clone();
  tensor.elements<float>()[1] = 5.0f;
  EXPECT_EQ(same.elements<float>()[1], 5.0f);
  EXPECT_EQ(clone.elements<float>()[1], 2.0f);
}

TEST(Tensor, ElementsChecksTheType) {
  EXPECT_THROW(Tensor::empty({2}, kFloat32).elements<std::int32_t>(), Error);
  EXPECT_THROW(Tensor::empty({2}, kFloat32).elements<double>(), Error);
  EXPECT_EQ(Tensor::empty({2}, parse_dtype("float16")).elements<std::uint16_t>().size(), 2u);
  EXPECT_EQ(Tensor::empty({3}, parse_dtype("bool")).elements<std::uint8_t>().size(), 3u);
  EXPECT_THROW(Tensor::empty({2}, parse_dtype("float32x4")).elements<float>(), Error);
}

TEST(Tensor, ReshapeKeepsTheCount) {
  Tensor tensor = Tensor::empty({2, 3}, kFloat32);
  EXPECT_EQ(tensor.reshape({6}).data(), tensor.data());
  EXPECT_THROW(tensor.reshape({5}), Error);
}

TEST(Tensor, DlpackRoundTripSharesAndFreesTheBytes) {
  int released = 0;
  std::vector<float> memory{1, 2, 3, 4};
  {
    std::shared_ptr<void> owner(memory.data(), [&](void*) { ++released; });
    DLManagedTensor* managed = Tensor::view(memory.data(), {2, 2}, kFloat32, owner).to_dlpack();
    owner.reset();
    EXPECT_EQ(managed->dl_tensor.ndim, 2);
    EXPECT_EQ(managed->dl_tensor.shape[1], 2);
    Tensor back = Tensor::from_dlpack(managed);
    EXPECT_EQ(back.data(), memory.data());
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

struct Foreign {
  DLManagedTensor managed{};
  std::int64_t shape[2] = {2, 2};
  std::int64_t strides[2] = {2, 1};
  float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int deleted = 0;
  Foreign() {
    managed.dl_tensor = {data, {kDLCPU, 0}, 2, kFloat32, shape, strides, 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* m) { ++static_cast<Foreign*>(m->manager_ctx)->deleted; };
  }
};

TEST(Tensor, FromDlpackHonoursTheByteOffset) {
  Foreign foreign;
  foreign.managed.dl_tensor.byte_offset = 8;
  Tensor tensor = Tensor::from_dlpack(&foreign.managed);
  EXPECT_EQ(tensor.elements<float>()[0], 2.0f);
  tensor = Tensor();
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(Tensor, FromDlpackTakesAnyStridesOfNoElements) {
  Foreign foreign;
  foreign.shape[0] = 0;
  foreign.strides[0] = 5;
  foreign.strides[1] = 7;
  EXPECT_EQ(Tensor::from_dlpack(&foreign.managed).size(), 0);
}

TEST(Tensor, FromDlpackRefusesStridesAndOtherDevicesAndLeavesTheTensorAlone) {
  Foreign foreign;
  foreign.strides[0] = 4;
  EXPECT_THROW(Tensor::from_dlpack(&foreign.managed), Error);
  foreign.strides[0] = 2;
  foreign.managed.dl_tensor.device.device_type = kDLCUDA;
  EXPECT_THROW(Tensor::from_dlpack(&foreign.managed), Error);
  EXPECT_EQ(foreign.deleted, 0);
}

template <typename T>
std::vector<double> doubles_of(const std::string& dtype, const std::vector<T>& values) {
  const Tensor tensor =
      Tensor::empty({static_cast<std::int64_t>(values.size())}, parse_dtype(dtype));
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor.data()));
  return to_doubles(tensor);
}

TEST(Tensor, ReadsEveryElementType) {
  EXPECT_TRUE(has_elements(doubles_of<float>("float32", {-1.5F, 2}), {-1.5, 2}));
  EXPECT_TRUE(has_elements(doubles_of<double>("float64", {0.1, -7}), {0.1, -7}));
  EXPECT_TRUE(has_elements(doubles_of<std::int8_t>("int8", {-128, 127}), {-128, 127}));
  EXPECT_TRUE(has_elements(doubles_of<std::int16_t>("int16", {-300, 300}), {-300, 300}));
  EXPECT_TRUE(has_elements(doubles_of<std::int32_t>("int32", {-70000, 6}), {-70000, 6}));
  EXPECT_TRUE(has_elements(doubles_of<std::int64_t>("int64", {-5, 1LL << 53}), {-5, 0x1p53}));
  EXPECT_TRUE(has_elements(doubles_of<std::uint8_t>("uint8", {0, 255}), {0, 255}));
  EXPECT_TRUE(has_elements(doubles_of<std::uint16_t>("uint16", {0, 65535}), {0, 65535}));
  EXPECT_TRUE(has_elements(doubles_of<std::uint32_t>("uint32", {4294967295U}), {4294967295.0}));
  EXPECT_TRUE(has_elements(doubles_of<std::uint64_t>("uint64", {1ULL << 63}), {0x1p63}));
  EXPECT_TRUE(has_elements(doubles_of<std::uint8_t>("bool", {0, 1, 255}), {0, 1, 1}));
}

TEST(Tensor, ReadsSixteenBitFloats) {
  // 1, -2, the largest, the least subnormal.
  EXPECT_TRUE(has_elements(doubles_of<std::uint16_t>("float16", {0x3C00, 0xC000, 0x7BFF, 0x0001}),
                           {1, -2, 65504, 0x1p-24}));
  EXPECT_TRUE(has_elements(doubles_of<std::uint16_t>("bfloat16", {0x3F80, 0xC000, 0x7F7F}),
                           {1, -2, 0x1.FEp127}));
}

TEST(Tensor, WhatNeedsBytesRefusesATensorWithoutThem) {
  for (const Tensor& tensor :
       {Tensor(), Tensor::view(nullptr, {2}, parse_dtype("float32"), nullptr)}) {
    EXPECT_FALSE(tensor.defined());
    const auto refuses = [](const auto& call) {
      return throws_error(call, ErrorKind::kMismatch, "an empty tensor");
    };
    EXPECT_TRUE(refuses([&] { tensor.elements<float>(); }));
    EXPECT_TRUE(refuses([&] { tensor.clone(); }));
    EXPECT_TRUE(refuses([&] { tensor.to_dlpack(); }));
    EXPECT_TRUE(refuses([&] { to_doubles(tensor); }));
  }
  const Tensor none = Tensor::view(nullptr, {0, 3}, parse_dtype("float32"), nullptr);
  EXPECT_TRUE(none.elements<float>().empty());
  EXPECT_TRUE(none.clone().defined());
}

TEST(Tensor, RefusesVectors) {
  EXPECT_TRUE(throws_error([] { to_doubles(Tensor::empty({2}, parse_dtype("float32x4"))); },
                           ErrorKind::kMismatch, "float32x4"));
}

}  // namespace
}  // namespace run_model
