// The host's copies of tensors on devices that the caller of an executor reads and writes.
#pragma once

#include <cstddef>
#include <map>

#include <run_model/tensor.h>

namespace run_model {

class EntryStorage;

class HostSides {
 public:
  explicit HostSides(EntryStorage& entries) : entries_(entries) {}

  // Memory that is copied to the entry once, before the next run, or before each where the caller
  // keeps the tensor and may write to it at any time.
  Tensor to_write(std::size_t entry, bool before_each_run);
  // The entry's values, to be read, and to be written as above.
  Tensor to_read_and_write(std::size_t entry);
  // The same with the caller's own memory.
  void write_from(std::size_t entry, const Tensor& tensor);

  // The entry's values, copied after each run. As in the executor's interface, the memory is the
  // same at every call.
  Tensor to_read(std::size_t entry);
  void read_into(std::size_t entry, const Tensor& tensor);

  // The caller has the entry's memory on the device: nothing is copied to it, and from it what
  // to_read() asks for from now on.
  void leave(std::size_t entry);

  // Before and after the graph's functions. A node may be run on its own too: what is read then is
  // copied when it is asked for.
  void upload();
  void download();
  void note_change();

 private:
  struct Side {
    Tensor tensor;
    bool write_once = false;
    bool write_always = false;
    bool read = false;
    bool is_callers = false;  // the tensor
    bool stale = true;        // the device has other values
  };

  Side& side_of(std::size_t entry);
  void fetch(std::size_t entry, Side& side);

  EntryStorage& entries_;
  std::map<std::size_t, Side> sides_;
};

}  // namespace run_model
