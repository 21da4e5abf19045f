#include "runtime/last_error.h"

#include <utility>

namespace run_model {
namespace {

thread_local std::string last_error;

}  // namespace

const std::string& last_packed_error() { return last_error; }

void set_last_packed_error(std::string message) noexcept { last_error = std::move(message); }

void clear_last_packed_error() noexcept { last_error.clear(); }

}  // namespace run_model
