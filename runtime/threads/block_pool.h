// Scratch memory that is kept for the next request: which blocks are lent, and which are not.
//
// Compiled code asks for the same sizes at every run, so blocks stay; where none is large enough, a
// new one takes the place of the largest. Getting memory and giving it back is the owner's part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <vector>

namespace run_model {

class BlockPool {
 public:
  struct Block {
    void* memory;
    std::size_t bytes;
  };

  // Room for one more block, so that nothing below fails once memory has been got. May throw
  // std::bad_alloc.
  void reserve() {
    lent_.reserve(lent_.size() + 1);
    unused_.reserve(lent_.size() + unused_.size() + 1);
  }

  // Lends the smallest unused block of at least that size, of several the one that was in use last;
  // null where there is none.
  void* lend(std::size_t bytes) noexcept {
    auto best = unused_.rend();
    for (auto block = unused_.rbegin(); block != unused_.rend(); ++block) {
      if (block->bytes >= bytes && (best == unused_.rend() || is_smaller(*block, *best))) {
        best = block;
        if (block->bytes == bytes) break;
      }
    }
    if (best == unused_.rend()) return nullptr;
    void* memory = best->memory;
    lent_.push_back(*best);
    unused_.erase(std::next(best).base());
    return memory;
  }

  // A new block, which is lent at once.
  void add_lent(Block block) noexcept { lent_.push_back(block); }

  // False when `memory` is not lent.
  bool take_back(void* memory) noexcept {
    const auto block = std::find_if(lent_.rbegin(), lent_.rend(),
                                    [memory](const Block& b) { return b.memory == memory; });
    if (block == lent_.rend()) return false;
    unused_.push_back(*block);
    lent_.erase(std::next(block).base());
    return true;
  }

  // The largest unused block, which is the owner's from now on.
  std::optional<Block> give_up_largest() noexcept {
    const auto largest = std::max_element(unused_.begin(), unused_.end(), is_smaller);
    if (largest == unused_.end()) return std::nullopt;
    const Block block = *largest;
    unused_.erase(largest);
    return block;
  }

  // All unused blocks, likewise, each by discard(block).
  template <typename Discard>
  void give_up_unused(Discard discard) noexcept {
    for (const Block& block : unused_) discard(block);
    unused_.clear();  // which keeps the room for those that are lent
  }
  template <typename Discard>
  void give_up_all(Discard discard) noexcept {
    give_up_unused(discard);
    for (const Block& block : lent_) discard(block);
    lent_.clear();
  }

  std::size_t held_bytes() const noexcept {
    std::size_t total = 0;
    for (const Block& block : lent_) total += block.bytes;
    for (const Block& block : unused_) total += block.bytes;
    return total;
  }

 private:
  static bool is_smaller(const Block& a, const Block& b) noexcept { return a.bytes < b.bytes; }

  std::vector<Block> lent_;
  std::vector<Block> unused_;
};

}  // namespace run_model
