#include <run_model/rpc/host_port.h>

#include <charconv>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model::rpc {

HostPort parse_host_port(const std::string& what, std::string_view text) {
  const auto refuse = [&]() -> HostPort {
    throw Error(ErrorKind::kUsage,
                what + " is " + in_quotes(text) + ", expected HOST:PORT as in 192.168.2.1:9190",
                "an address of IPv6 is in brackets, as in [::1]:9190");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return refuse();
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != host.npos) {
    return refuse();
  }
  const std::string_view digits = text.substr(colon + 1);
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (host.empty() || error != std::errc() || end != digits.data() + digits.size() || port < 1 ||
      port > 65535) {
    return refuse();
  }
  return {std::string(host), port};
}

std::string to_text(const HostPort& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return (brackets ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace run_model::rpc
