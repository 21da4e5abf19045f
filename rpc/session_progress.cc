#include <run_model/rpc/session_progress.h>

#include <algorithm>
#include <cstring>

namespace run_model::rpc {

void SessionProgress::set_doing(std::string_view text) {
  const std::size_t length = std::min(text.size(), doing_.size() - 1);
  std::memcpy(doing_.data(), text.data(), length);
  doing_[length] = '\0';
}

std::string SessionProgress::doing() const {
  return {doing_.data(), ::strnlen(doing_.data(), doing_.size())};
}

}  // namespace run_model::rpc
