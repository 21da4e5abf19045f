#include "runtime/executor/host_sides.h"

#include "runtime/memory/entry_storage.h"

namespace run_model {

HostSides::Side& HostSides::side_of(std::size_t entry) {
  Side& side = sides_[entry];
  if (!side.tensor.defined()) side.tensor = entries_.host_memory(entry);
  return side;
}

void HostSides::fetch(std::size_t entry, Side& side) {
  if (side.stale) entries_.download(entry, side.tensor.data());
  side.stale = false;
}

Tensor HostSides::to_write(std::size_t entry, bool before_each_run) {
  // What the caller gave is not ours to write to.
  if (const auto known = sides_.find(entry); known != sides_.end() && known->second.is_callers) {
    sides_.erase(known);
  }
  Side& side = side_of(entry);
  side.write_once = true;
  side.write_always = side.write_always || before_each_run;
  return side.tensor;
}

Tensor HostSides::to_read_and_write(std::size_t entry) {
  Side& side = side_of(entry);
  if (!side.write_once && !side.write_always) fetch(entry, side);
  side.write_always = true;
  return side.tensor;
}

void HostSides::write_from(std::size_t entry, const Tensor& tensor) {
  Side& side = sides_[entry];
  side.tensor = tensor;
  side.is_callers = true;
  side.write_always = true;
}

Tensor HostSides::to_read(std::size_t entry) {
  Side& side = side_of(entry);
  side.read = true;
  if (!side.write_once && !side.write_always) fetch(entry, side);
  return side.tensor;
}

void HostSides::read_into(std::size_t entry, const Tensor& tensor) {
  Side& side = sides_[entry];
  side.tensor = tensor;
  side.read = true;
  side.stale = true;
}

void HostSides::leave(std::size_t entry) {
  const auto known = sides_.find(entry);
  if (known == sides_.end()) return;
  known->second.write_once = known->second.write_always = known->second.read = false;
  known->second.stale = true;
}

void HostSides::upload() {
  for (auto& [entry, side] : sides_) {
    if (!side.write_once && !side.write_always) continue;
    entries_.upload(entry, side.tensor.data());
    side.write_once = false;
    side.stale = false;
  }
}

void HostSides::download() {
  note_change();
  for (auto& [entry, side] : sides_) {
    if (side.read) fetch(entry, side);
  }
}

void HostSides::note_change() {
  for (auto& [entry, side] : sides_) side.stale = !side.write_always;
}

}  // namespace run_model
