// The caches that a transformer of TVM's nn.Module (nn.KVCache) keeps its keys and values in:
// what vm.builtin.attention_kv_cache_* do.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <run_model/dtype.h>
#include "runtime/relax/functions/builtins.h"

namespace run_model {
namespace {

std::vector<std::int64_t> with_rows(const FfiTensorObject& tensor, std::int64_t rows) {
  std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  shape.front() = rows;
  return shape;
}

// Zeros: a window can reach rows that nothing was written to.
FfiValue empty_rows(const RelaxCall& call, std::span<const std::int64_t> shape, DLDataType dtype) {
  FfiValue rows = call.machine.allocate_tensor(shape, dtype);
  const std::size_t bytes = tensor_bytes(shape, dtype);
  if (bytes > 0) std::memset(as_tensor(rows)->data(), 0, bytes);
  return rows;
}

// A cache that a call works on. Rows are what its first dimension counts.
class Cache {
 public:
  Cache(RelaxCall& call, const FfiAny& value) : call_(call) {
    if (call.machine.tracer() != nullptr) {
      throw NotTraceable("it keeps a cache of attention between its runs");
    }
    object_ = as_cache(value);
    if (object_ == nullptr) {
      call.fail(std::string(ffi_type_name(value)) + " was given, expected a cache of attention");
    }
  }

  FfiCacheObject& object() { return *object_; }

  // Makes room for `rows` and writes those of `value` from `first` on.
  void write(const FfiTensorObject& value, std::int64_t from, std::int64_t count,
             std::int64_t first) {
    reserve(first + count);
    const std::size_t bytes = row_bytes();
    if (count == 0 || bytes == 0) return;
    std::memcpy(rows() + static_cast<std::size_t>(first) * bytes,
                static_cast<const char*>(value.data()) + static_cast<std::size_t>(from) * bytes,
                static_cast<std::size_t>(count) * bytes);
  }

  // Throws where `value` is not made of rows like the cache's.
  std::int64_t rows_of(const FfiTensorObject& value) const {
    const FfiTensorObject& data = tensor();
    const bool fits =
        same_dtype(value.tensor.dtype, data.tensor.dtype) &&
        value.tensor.ndim == data.tensor.ndim &&
        std::equal(value.shape().begin() + 1, value.shape().end(), data.shape().begin() + 1);
    if (!fits) {
      call_.fail("a cache of " + tensor_form_name(data.tensor.dtype, data.shape()) + " is given " +
                 tensor_form_name(value.tensor.dtype, value.shape()));
    }
    return value.shape()[0];
  }

  const FfiTensorObject& tensor() const { return *as_tensor(object_->data); }

 private:
  char* rows() const { return static_cast<char*>(tensor().data()); }

  std::size_t row_bytes() const {
    return tensor_bytes(with_rows(tensor(), 1), tensor().tensor.dtype);
  }

  // Twice as many rows as before, as often as needed: appending one by one takes linear time.
  void reserve(std::int64_t wanted) {
    std::int64_t held = tensor().shape()[0];
    if (wanted <= held) return;
    held = std::max<std::int64_t>(held, 1);
    while (held < wanted) {
      if (held > std::numeric_limits<std::int64_t>::max() / 2) call_.fail("the cache is too large");
      held *= 2;
    }
    FfiValue grown = empty_rows(call_, with_rows(tensor(), held), tensor().tensor.dtype);
    const std::size_t bytes = tensor_bytes(tensor().shape(), tensor().tensor.dtype);
    if (bytes > 0) std::memcpy(as_tensor(grown)->data(), tensor().data(), bytes);
    object_->data = std::move(grown);
  }

  RelaxCall& call_;
  FfiCacheObject* object_ = nullptr;
};

// (values to begin with, the shape to reserve, how many of the values count)
void create(RelaxCall& call) {
  if (call.machine.tracer() != nullptr) {
    throw NotTraceable("it makes a cache of attention");
  }
  const FfiTensorObject& init = call.tensor(0);
  const std::span<const std::int64_t> shape = call.shape(1);
  const std::int64_t filled = call.args.size() > 2 ? call.integer(2) : -1;
  if (shape.empty()) call.fail("a cache has one dimension at least");
  call.result = make_cache(empty_rows(call, shape, init.tensor.dtype));
  Cache cache(call, call.result);
  const std::int64_t rows = cache.rows_of(init);
  if (filled > rows) {
    call.fail("of " + std::to_string(rows) + " rows " + std::to_string(filled) + " are to count");
  }
  if (rows > shape[0]) call.fail("the values to begin with are more than the cache has room for");
  cache.write(init, 0, rows, 0);
  cache.object().filled = filled < 0 ? rows : filled;
  cache.object().window_end = std::max<std::int64_t>(filled, 0);
}

// (cache, rows)
void append(RelaxCall& call) {
  Cache cache(call, call.at(0));
  const FfiTensorObject& value = call.tensor(1);
  const std::int64_t rows = cache.rows_of(value);
  cache.write(value, 0, rows, cache.object().filled);
  cache.object().filled += rows;
  call.result = FfiValue(call.at(0));
}

void expect_filled(const RelaxCall& call, const FfiCacheObject& cache, std::int64_t rows) {
  if (rows == cache.filled) return;
  throw Error(ErrorKind::kMismatch,
              "a cache of attention holds " + std::to_string(cache.filled) + " rows, but " +
                  std::to_string(rows) + " are asked for (" + std::string(call.name) + ")",
              "give the length of all that was fed to the model so far");
}

// (cache, rows): all that it holds anew.
void update(RelaxCall& call) {
  Cache cache(call, call.at(0));
  const FfiTensorObject& value = call.tensor(1);
  const std::int64_t rows = cache.rows_of(value);
  expect_filled(call, cache.object(), rows);
  cache.write(value, 0, rows, 0);
  call.result = FfiValue(call.at(0));
}

// (cache, shape): what it holds, where it lies.
void view(RelaxCall& call) {
  Cache cache(call, call.at(0));
  const std::span<const std::int64_t> shape = call.shape(1);
  const FfiTensorObject& data = cache.tensor();
  if (shape.size() != data.shape().size() ||
      !std::equal(shape.begin() + 1, shape.end(), data.shape().begin() + 1)) {
    call.fail("a cache " + shape_name(data.shape()) + " is asked for " + shape_name(shape));
  }
  expect_filled(call, cache.object(), shape[0]);
  call.result = make_tensor(shape, data.tensor.dtype, data.data(), data.owner);
}

// The newest rows of a cache that holds no more than `most`; the first `sinks` stay for ever, over
// the others the new ones go round.
void override_window(RelaxCall& call, std::int64_t most, std::int64_t sinks) {
  Cache cache(call, call.at(0));
  const FfiTensorObject& value = call.tensor(1);
  const std::int64_t rows = cache.rows_of(value);
  FfiCacheObject& object = cache.object();
  if (sinks < 0 || most < sinks || rows > most - sinks || object.window_end > most) {
    call.fail(std::to_string(rows) + " rows do not go into a window of " + std::to_string(most) +
              " with " + std::to_string(sinks) + " that stay");
  }
  const std::int64_t before_end = std::min(rows, most - object.window_end);
  cache.write(value, 0, before_end, object.window_end);
  object.filled = std::min(object.filled + rows, most);
  object.window_end += before_end;
  if (before_end == rows) return;
  cache.write(value, before_end, rows - before_end, sinks);
  object.window_end = sinks + rows - before_end;
}

// (cache, rows, most)
void window_override(RelaxCall& call) {
  override_window(call, call.integer(2), 0);
  call.result = FfiValue(call.at(0));
}

// (cache, rows, most, sinks)
void window_override_with_sinks(RelaxCall& call) {
  override_window(call, call.integer(2), call.integer(3));
  call.result = FfiValue(call.at(0));
}

// (caches)
void clear_all(RelaxCall& call) {
  for (const FfiValue& each : call.array(0).items) {
    FfiCacheObject& cache = Cache(call, each).object();
    cache.filled = 0;
    cache.window_end = 0;
  }
}

// (caches, n): the last n rows are forgotten.
void pop_all(RelaxCall& call) {
  const std::int64_t rows = call.integer(1);
  for (const FfiValue& each : call.array(0).items) {
    FfiCacheObject& cache = Cache(call, each).object();
    if (rows < 0 || rows > cache.filled) {
      call.fail(std::to_string(rows) + " rows are taken from a cache that holds " +
                std::to_string(cache.filled));
    }
    cache.filled -= rows;
  }
}

constexpr NamedBuiltin kCacheFunctions[] = {
    {"vm.builtin.attention_kv_cache_create", create},
    {"vm.builtin.attention_kv_cache_append", append},
    {"vm.builtin.attention_kv_cache_update", update},
    {"vm.builtin.attention_kv_cache_view", view},
    {"vm.builtin.attention_kv_cache_window_override", window_override},
    {"vm.builtin.attention_kv_cache_window_override_with_sinks", window_override_with_sinks},
    {"vm.builtin.attention_kv_cache_array_clear", clear_all},
    {"vm.builtin.attention_kv_cache_array_popn", pop_all},
};

}  // namespace

std::span<const NamedBuiltin> cache_functions() { return kCacheFunctions; }

}  // namespace run_model
