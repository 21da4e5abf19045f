// The caches that language models of TVM's nn.llm (PagedKVCache) keep their keys and values in:
// what vm.builtin.paged_attention_kv_cache_create makes, and the functions on it. Of each sequence
// the rows lie in pages, which the model's own kernels find by tables of page numbers.
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <run_model/dtype.h>
#include "base/text.h"
#include "runtime/relax/functions/builtins.h"

namespace run_model {

class PagedCache {
 public:
  explicit PagedCache(const RelaxCall& call);

  void clear();
  void add(std::int64_t id);
  void remove(std::int64_t id);
  void pop(const RelaxCall& call, std::int64_t id, std::int64_t rows);
  void begin(const RelaxCall& call, std::span<const std::int64_t> ids,
             std::span<const std::int64_t> rows);
  void attend(const RelaxCall& call) const;
  void attend_elsewhere(const RelaxCall& call) const;

  FfiValue query_positions(const RelaxCall& call) const { return forward_of(call).positions; }
  bool empty() const { return sequences_.empty(); }
  std::int64_t free_pages() const { return static_cast<std::int64_t>(free_pages_.size()); }
  std::int64_t all_rows() const;

 private:
  struct Sequence {
    std::int64_t rows = 0;
    std::vector<std::int32_t> pages;
  };

  // What is fed at once: tables of int32, one entry for each row or sequence, `starts` one more.
  struct Forward {
    std::int64_t rows = 0;
    bool one_each = true;  // then keys and values are written before queries look at them
    FfiValue positions;    // of each row in its sequence
    FfiValue places;       // where each row goes, in rows of all pages
    FfiValue starts;       // of each sequence's rows among all
    FfiValue rows_before;  // that each sequence had
    FfiValue page_starts, pages, rows_of_last_page;
    FfiValue zeros;  // the position of each sequence's first row
    bool has_pages = false;
  };

  std::int64_t size(const RelaxCall& call, std::size_t argument, std::size_t item) const;
  FfiValue kernel(const RelaxCall& call, std::size_t argument) const;
  Sequence& sequence(std::int64_t id);
  std::int64_t pages_for(std::int64_t rows) const { return (rows + page_rows_ - 1) / page_rows_; }
  void fill_tables(const RelaxCall& call, std::span<Sequence* const> fed);
  const Forward& forward_of(const RelaxCall& call) const;
  const FfiValue& pages_of(const RelaxCall& call) const;
  FfiValue first_rows(const RelaxCall& call, std::size_t argument, std::int64_t heads,
                      std::int64_t width) const;
  void look(const RelaxCall& call, const FfiValue& pages, const FfiValue& q, const FfiValue& k,
            const FfiValue& v, const FfiValue& out) const;

  const RelaxMachine* machine_;  // whose functions the kernels are
  std::int64_t first_layer_ = 0, query_heads_ = 0, key_heads_ = 0, width_ = 0, value_width_ = 0;
  std::int64_t page_rows_ = 0, page_count_ = 0;
  std::int64_t rope_mode_ = 0;
  double rope_scale_ = 1, rope_theta_ = 0;
  DLDataType dtype_{};
  FfiValue rope_factors_;
  FfiValue append_, attend_new_, attend_cached_, attend_cached_by_one_, merge_, split_;
  std::vector<FfiValue> layers_;  // [pages, keys or values, heads, rows, width]
  std::vector<std::int32_t> free_pages_;
  std::map<std::int64_t, Sequence> sequences_;
  std::unique_ptr<Forward> forward_;
};

namespace {

constexpr DLDataType kFloat32{kDLFloat, 32, 1};
constexpr DLDataType kInt32{kDLInt, 32, 1};
constexpr std::int64_t kRopeApart = 1;      // by a kernel of its own, before keys are written
constexpr std::int64_t kRopeInKernels = 2;  // where queries look at keys
constexpr std::int64_t kMostPagedRows = std::int64_t{1} << 29;

double number(const RelaxCall& call, std::size_t index) {
  const FfiAny& value = call.at(index);
  return value.type == kFfiFloat ? value.real : static_cast<double>(call.integer(index));
}

[[noreturn]] void left_out(const std::string& what) {
  throw Error(
      ErrorKind::kIncompatible,
      "the model makes a paged cache of attention with " + what + ", which run_model leaves out",
      "compile it for plain attention on the CPU");
}

FfiValue table(const RelaxCall& call, const std::vector<std::int64_t>& numbers) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  FfiValue made = call.machine.allocate_tensor(std::span(&count, 1), kInt32);
  auto* data = static_cast<std::int32_t*>(as_tensor(made)->data());
  for (const std::int64_t each : numbers) *data++ = static_cast<std::int32_t>(each);
  return made;
}

FfiValue new_tensor(const RelaxCall& call, std::initializer_list<std::int64_t> shape,
                    DLDataType dtype) {
  return call.machine.allocate_tensor(std::vector<std::int64_t>(shape), dtype);
}

void run_kernel(const RelaxCall& call, const FfiValue& function,
                std::initializer_list<FfiAny> arguments) {
  call.machine.call(*as_function(function), std::vector<FfiAny>(arguments));
}

}  // namespace

std::int64_t PagedCache::size(const RelaxCall& call, std::size_t argument, std::size_t item) const {
  const std::span<const std::int64_t> shape = call.shape(argument);
  if (item >= shape.size() || shape[item] < 0 || shape[item] > kMostPagedRows) {
    call.fail("number " + std::to_string(item) + " of argument " + std::to_string(argument) +
              " is missing or no size");
  }
  return shape[item];
}

// ("tirx", function), or the function itself.
FfiValue PagedCache::kernel(const RelaxCall& call, std::size_t argument) const {
  FfiAny value = call.at(argument);
  if (const FfiArrayObject* items = as_array(value)) {
    if (items->items.size() > 1 && !text_of(items->items[0]).starts_with("tir")) {
      left_out("kernels of " + in_quotes(text_of(items->items[0])));
    }
    if (!items->items.empty()) value = items->items.back();
  }
  if (as_function(value) == nullptr) {
    call.fail("argument " + std::to_string(argument) + " is no kernel");
  }
  return FfiValue(value);
}

// (sizes: sequences, rows, rows at once, rows of a page, whether windows slide[, …]; layers; heads
// of queries; of keys; width; of values; kinds of layers; whether it is sent; rope: mode, scale,
// theta, factors; a number of the type; kernels …)
PagedCache::PagedCache(const RelaxCall& call) : machine_(&call.machine) {
  const std::int64_t rows = size(call, 0, 1);
  page_rows_ = size(call, 0, 3);
  if (page_rows_ == 0) call.fail("a page has no rows");
  if (size(call, 0, 4) != 0) left_out("sliding windows");
  if (call.shape(1).size() != 2) left_out("layers on several machines");
  first_layer_ = size(call, 1, 0);
  const std::int64_t layers = size(call, 1, 1) - first_layer_;
  query_heads_ = call.integer(2);
  key_heads_ = call.integer(3);
  width_ = call.integer(4);
  value_width_ = call.integer(5);
  for (const std::int64_t kind : call.shape(6)) {
    if (kind != 0) left_out("layers of attention other than plain ones");
  }
  if (call.integer(7) != 0) left_out("transfer between machines");
  rope_mode_ = call.integer(8);
  rope_scale_ = number(call, 9);
  rope_theta_ = number(call, 10);
  if (as_tensor(call.at(11)) != nullptr) rope_factors_ = FfiValue(call.at(11));
  dtype_ = call.tensor(12).tensor.dtype;
  append_ = kernel(call, 13);
  attend_new_ = kernel(call, 15);
  attend_cached_ = kernel(call, 16);
  attend_cached_by_one_ = kernel(call, 17);
  merge_ = kernel(call, 23);
  split_ = kernel(call, 24);
  page_count_ = pages_for(rows) + 1;
  for (std::int64_t i = 0; i < layers; ++i) {
    layers_.push_back(new_tensor(call, {page_count_, 2, key_heads_, page_rows_, width_}, dtype_));
  }
  clear();
}

void PagedCache::clear() {
  sequences_.clear();
  forward_.reset();
  free_pages_.clear();
  for (std::int64_t i = page_count_; i-- > 0;) free_pages_.push_back(static_cast<std::int32_t>(i));
}

PagedCache::Sequence& PagedCache::sequence(std::int64_t id) {
  const auto found = sequences_.find(id);
  if (found != sequences_.end()) return found->second;
  throw Error(ErrorKind::kMismatch,
              "a paged cache of attention has no sequence " + std::to_string(id),
              "add it by vm.builtin.kv_state_add_sequence");
}

void PagedCache::add(std::int64_t id) {
  if (!sequences_.try_emplace(id).second) {
    throw Error(ErrorKind::kMismatch,
                "a paged cache of attention has a sequence " + std::to_string(id) + " already",
                "give each sequence a number of its own");
  }
}

void PagedCache::remove(std::int64_t id) {
  const Sequence& gone = sequence(id);
  free_pages_.insert(free_pages_.end(), gone.pages.begin(), gone.pages.end());
  sequences_.erase(id);
}

void PagedCache::pop(const RelaxCall& call, std::int64_t id, std::int64_t rows) {
  Sequence& shorter = sequence(id);
  if (rows < 0 || rows > shorter.rows) {
    call.fail(std::to_string(rows) + " rows are taken from a sequence of " +
              std::to_string(shorter.rows));
  }
  shorter.rows -= rows;
  while (static_cast<std::int64_t>(shorter.pages.size()) > pages_for(shorter.rows)) {
    free_pages_.push_back(shorter.pages.back());
    shorter.pages.pop_back();
  }
}

std::int64_t PagedCache::all_rows() const {
  std::int64_t rows = 0;
  for (const auto& [id, each] : sequences_) rows += each.rows;
  return rows;
}

// The pages as queries are to see them.
void PagedCache::fill_tables(const RelaxCall& call, std::span<Sequence* const> fed) {
  std::vector<std::int64_t> starts{0};
  std::vector<std::int64_t> pages;
  std::vector<std::int64_t> last;
  for (const Sequence* each : fed) {
    pages.insert(pages.end(), each->pages.begin(), each->pages.end());
    starts.push_back(static_cast<std::int64_t>(pages.size()));
    last.push_back(each->rows == 0 ? 0 : (each->rows - 1) % page_rows_ + 1);
  }
  forward_->has_pages = !pages.empty();
  forward_->page_starts = table(call, starts);
  forward_->pages = table(call, pages);
  forward_->rows_of_last_page = table(call, last);
}

void PagedCache::begin(const RelaxCall& call, std::span<const std::int64_t> ids,
                       std::span<const std::int64_t> rows) {
  if (ids.empty() || ids.size() != rows.size()) {
    call.fail("with " + std::to_string(ids.size()) + " sequences and " +
              std::to_string(rows.size()) + " lengths");
  }
  if (std::set<std::int64_t>(ids.begin(), ids.end()).size() != ids.size()) {
    call.fail("a sequence is fed twice at once");
  }
  auto forward = std::make_unique<Forward>();
  std::vector<Sequence*> fed;
  std::int64_t wanted = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    fed.push_back(&sequence(ids[i]));
    if (rows[i] < 1 || rows[i] > kMostPagedRows) {
      call.fail("a sequence is fed " + std::to_string(rows[i]) + " rows");
    }
    wanted += pages_for(fed[i]->rows + rows[i]) - static_cast<std::int64_t>(fed[i]->pages.size());
    forward->one_each = forward->one_each && rows[i] == 1;
  }
  if (wanted > free_pages()) {
    throw Error(ErrorKind::kMismatch,
                "a paged cache of attention has " + std::to_string(free_pages()) +
                    " pages left, but " + std::to_string(wanted) + " are needed",
                "make a larger cache, or remove sequences from it");
  }
  forward_ = std::move(forward);
  if (!forward_->one_each) fill_tables(call, fed);
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> places;
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> starts{0};
  for (std::size_t i = 0; i < fed.size(); ++i) {
    Sequence& longer = *fed[i];
    before.push_back(longer.rows);
    starts.push_back(starts.back() + rows[i]);
    for (std::int64_t k = 0; k < rows[i]; ++k, ++longer.rows) {
      if (longer.rows % page_rows_ == 0) {
        longer.pages.push_back(free_pages_.back());
        free_pages_.pop_back();
      }
      positions.push_back(longer.rows);
      places.push_back(longer.pages.back() * page_rows_ + longer.rows % page_rows_);
    }
  }
  if (forward_->one_each) fill_tables(call, fed);
  forward_->rows = starts.back();
  forward_->positions = table(call, positions);
  forward_->places = table(call, places);
  forward_->starts = table(call, starts);
  forward_->rows_before = table(call, before);
  forward_->zeros = table(call, std::vector<std::int64_t>(fed.size()));
}

const PagedCache::Forward& PagedCache::forward_of(const RelaxCall& call) const {
  if (machine_ != &call.machine) call.fail("the cache is another session's");
  if (forward_ != nullptr) return *forward_;
  throw Error(ErrorKind::kMismatch,
              "a paged cache of attention is used (" + std::string(call.name) +
                  ") before it knows what it is fed",
              "call vm.builtin.kv_state_begin_forward with sequences and lengths first");
}

const FfiValue& PagedCache::pages_of(const RelaxCall& call) const {
  const std::int64_t layer = call.integer(1) - first_layer_;
  if (layer < 0 || layer >= static_cast<std::int64_t>(layers_.size())) {
    call.fail("there is no layer " + std::to_string(call.integer(1)));
  }
  return layers_[static_cast<std::size_t>(layer)];
}

// Those rows of a tensor [rows, heads, width] that are fed; it may have more.
FfiValue PagedCache::first_rows(const RelaxCall& call, std::size_t argument, std::int64_t heads,
                                std::int64_t width) const {
  const FfiTensorObject& tensor = call.tensor(argument);
  const std::span<const std::int64_t> shape = tensor.shape();
  const std::int64_t rows = forward_of(call).rows;
  if (!same_dtype(tensor.tensor.dtype, dtype_) || shape.size() != 3 || shape[0] < rows ||
      shape[1] != heads || shape[2] != width) {
    throw Error(ErrorKind::kMismatch,
                "a paged cache of attention that is fed " + std::to_string(rows) +
                    " rows is given " + tensor_form_name(tensor.tensor.dtype, shape) +
                    ", expected " +
                    tensor_form_name(dtype_, std::vector<std::int64_t>{rows, heads, width}),
                "give the lengths of what is fed to vm.builtin.kv_state_begin_forward");
  }
  return make_tensor(std::vector<std::int64_t>{rows, heads, width}, dtype_, tensor.data(),
                     tensor.owner);
}

// Attention of queries to the cache and, where they are not in it yet, to the new keys.
void PagedCache::look(const RelaxCall& call, const FfiValue& pages, const FfiValue& q,
                      const FfiValue& k, const FfiValue& v, const FfiValue& out) const {
  const Forward& fed = *forward_;
  const FfiValue mode = FfiValue::of_integer(rope_mode_ == kRopeInKernels ? 1 : 0);
  const FfiValue rope_scale = FfiValue::of_real(rope_scale_);
  const FfiValue theta = FfiValue::of_real(rope_theta_);
  const FfiValue scale = FfiValue::of_real(number(call, 2));
  const FfiValue sums = new_tensor(call, {fed.rows, query_heads_}, kFloat32);
  if (fed.one_each) {
    run_kernel(call, attend_cached_by_one_,
               {q, pages, fed.page_starts, fed.pages, fed.rows_of_last_page, fed.zeros,
                fed.positions, out, sums, mode, rope_scale, theta, scale});
    return;
  }
  run_kernel(call, attend_new_,
             {q, fed.starts, k, v, fed.starts, fed.positions, fed.rows_before, out, sums,
              FfiValue::of_integer(1), mode, rope_scale, theta, scale});
  if (!fed.has_pages) return;
  const FfiValue old_out = new_tensor(call, {fed.rows, query_heads_, value_width_}, dtype_);
  const FfiValue old_sums = new_tensor(call, {fed.rows, query_heads_}, kFloat32);
  run_kernel(
      call, attend_cached_,
      {q, fed.starts, pages, fed.page_starts, fed.pages, fed.rows_of_last_page, fed.zeros,
       fed.positions, old_out, old_sums, FfiValue::of_integer(0), mode, rope_scale, theta, scale});
  run_kernel(call, merge_, {out, sums, old_out, old_sums});
}

// (cache, layer, scale, [rows, heads of queries, keys and values, width], result)
void PagedCache::attend(const RelaxCall& call) const {
  const Forward& fed = forward_of(call);
  const FfiValue& pages = pages_of(call);
  const FfiValue all = first_rows(call, 3, query_heads_ + 2 * key_heads_, width_);
  const FfiValue out = first_rows(call, 4, query_heads_, width_);
  const FfiValue q = new_tensor(call, {fed.rows, query_heads_, width_}, dtype_);
  const FfiValue k = new_tensor(call, {fed.rows, key_heads_, width_}, dtype_);
  const FfiValue v = new_tensor(call, {fed.rows, key_heads_, width_}, dtype_);
  run_kernel(
      call, split_,
      {all, fed.positions, q, k, v,
       rope_factors_.type != kFfiNone ? rope_factors_
                                      : FfiValue::of_integer(rope_mode_ == kRopeApart ? 1 : 0)});
  if (fed.one_each) run_kernel(call, append_, {pages, k, v, fed.places});
  look(call, pages, q, k, v, out);
  if (!fed.one_each) run_kernel(call, append_, {pages, k, v, fed.places});
}

// (cache, layer whose keys and values they are, scale, queries, keys, values, result): nothing is
// written to the cache.
void PagedCache::attend_elsewhere(const RelaxCall& call) const {
  look(call, pages_of(call), first_rows(call, 3, query_heads_, width_),
       first_rows(call, 4, key_heads_, width_), first_rows(call, 5, key_heads_, value_width_),
       first_rows(call, 6, query_heads_, value_width_));
}

namespace {

PagedCache& cache_of(const RelaxCall& call) {
  PagedCache* cache = as_paged_cache(call.at(0));
  if (cache != nullptr) return *cache;
  call.fail(std::string(ffi_type_name(call.at(0))) + " was given, expected a paged cache");
}

void create_paged(RelaxCall& call) {
  if (call.machine.tracer() != nullptr) throw NotTraceable("it makes a cache of attention");
  call.result = make_paged_cache(std::make_shared<PagedCache>(call));
}

// (cache, numbers of the sequences, how many rows each is fed[, a tree of them])
void begin_forward(RelaxCall& call) {
  if (call.args.size() > 3 && call.at(3).type != kFfiNone) {
    call.fail("rows that are trees are left out");
  }
  cache_of(call).begin(call, call.shape(1), call.shape(2));
}

constexpr NamedBuiltin kPagedFunctions[] = {
    {"vm.builtin.paged_attention_kv_cache_create", create_paged},
    {"vm.builtin.kv_state_clear", [](RelaxCall& call) { cache_of(call).clear(); }},
    {"vm.builtin.kv_state_add_sequence",
     [](RelaxCall& call) { cache_of(call).add(call.integer(1)); }},
    {"vm.builtin.kv_state_remove_sequence",
     [](RelaxCall& call) { cache_of(call).remove(call.integer(1)); }},
    {"vm.builtin.kv_state_popn",
     [](RelaxCall& call) { cache_of(call).pop(call, call.integer(1), call.integer(2)); }},
    {"vm.builtin.kv_state_begin_forward", begin_forward},
    {"vm.builtin.kv_state_end_forward", [](RelaxCall& call) { cache_of(call); }},
    {"vm.builtin.attention_kv_cache_attention_with_fused_qkv",
     [](RelaxCall& call) { cache_of(call).attend(call); }},
    {"vm.builtin.attention_kv_cache_attention_with_shared_kv",
     [](RelaxCall& call) { cache_of(call).attend_elsewhere(call); }},
    {"vm.builtin.attention_kv_cache_get_query_positions",
     [](RelaxCall& call) { call.result = cache_of(call).query_positions(call); }},
    {"vm.builtin.attention_kv_cache_empty",
     [](RelaxCall& call) { call.result = FfiValue::of_bool(cache_of(call).empty()); }},
    {"vm.builtin.attention_kv_cache_get_num_available_pages",
     [](RelaxCall& call) { call.result = FfiValue::of_integer(cache_of(call).free_pages()); }},
    {"vm.builtin.attention_kv_cache_get_total_sequence_length",
     [](RelaxCall& call) { call.result = FfiValue::of_integer(cache_of(call).all_rows()); }},
};

}  // namespace

std::span<const NamedBuiltin> paged_cache_functions() { return kPagedFunctions; }

}  // namespace run_model
