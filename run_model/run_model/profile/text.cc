#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/text.h"
#include "run_model/run_model/profile/formats.h"
#include "run_model/shared/formatted.h"

namespace run_model {
namespace {

std::string milliseconds(double value) {
  return formatted(value < 100.0 ? "%.3f" : value < 10000.0 ? "%.1f" : "%.0f", value);
}

std::string rate(const std::optional<double>& value) {
  return value ? formatted(*value < 1000.0 ? "%.1f" : "%.0f", *value) : "-";
}

std::string percent(double share) { return formatted("%.1f", 100.0 * share); }

// On one line and without control characters; not cut.
std::string printable(std::string_view text) {
  const std::string quoted = in_quotes(text, std::string::npos);
  return quoted.substr(1, quoted.size() - 2);
}

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// At most `width` bytes; what is too long loses its middle, whole characters of it.
std::string cut_in_the_middle(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  constexpr std::string_view kGap = "..";
  std::size_t head = (width - kGap.size()) / 2;
  std::size_t tail = text.size() - (width - kGap.size() - head);
  while (head > 0 && !starts_character(text[head])) --head;
  while (tail < text.size() && !starts_character(text[tail])) ++tail;
  return text.substr(0, head) + std::string(kGap) + text.substr(tail);
}

// What all of TVM's functions have in common tells nothing in a table.
std::string short_function(const std::string& function) {
  std::string_view rest = function;
  for (const std::string_view prefix : {"tvmgen_default_", "fused_"}) {
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  }
  return printable(rest.empty() ? function : rest);
}

std::string output_shape(const ProfiledNode& node) {
  if (node.info.outputs.empty()) return "-";
  std::string text = list_of(node.info.outputs.front().shape, "x",
                             [](std::int64_t dimension) { return std::to_string(dimension); });
  if (text.empty()) text = "scalar";
  const std::size_t more = node.info.outputs.size() - 1;
  return more == 0 ? text : text + " +" + std::to_string(more);
}

struct Column {
  std::string title;
  bool right = true;
  std::size_t limit = 0;  // cells are cut to this many bytes; 0: never
  std::vector<std::string> cells;

  std::size_t width() const {
    std::size_t widest = title.size();
    for (const std::string& cell : cells) {
      widest = std::max(widest, limit > 0 ? std::min(cell.size(), limit) : cell.size());
    }
    return widest;
  }
};

std::string table(std::vector<Column>& columns) {
  std::vector<std::size_t> widths;
  for (Column& column : columns) {
    widths.push_back(column.width());
    for (std::string& cell : column.cells) {
      if (column.limit > 0) cell = cut_in_the_middle(cell, column.limit);
    }
  }
  std::string text;
  const auto add = [&](std::size_t i, const std::string& cell) {
    const std::string padding(widths[i] - cell.size(), ' ');
    if (columns[i].right) text += padding;
    text += cell;
    if (i + 1 == columns.size()) {
      text += "\n";
    } else {
      if (!columns[i].right) text += padding;
      text += "  ";
    }
  };
  for (std::size_t i = 0; i < columns.size(); ++i) add(i, columns[i].title);
  for (std::size_t row = 0; row < columns.front().cells.size(); ++row) {
    for (std::size_t i = 0; i < columns.size(); ++i) add(i, columns[i].cells[row]);
  }
  return text;
}

// A table of nodes in the making.
class NodeColumns {
 public:
  using Node = const ProfiledNode&;
  using Cell = std::string (*)(std::size_t index, Node node);

  NodeColumns(const Profile& profile, const ProfileSettings& settings)
      : profile_(profile), rows_(profile.nodes.size()) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      rows_[i] = settings.order == ProfileOrder::kTime ? profile.by_time[i] : i;
    }
    if (settings.top > 0 && settings.top < rows_.size()) rows_.resize(settings.top);
  }

  void add_number(const char* title, Cell cell) { add({title, true, 0, {}}, cell); }
  void add_text(const char* title, std::size_t limit, Cell cell) {
    add({title, false, limit, {}}, cell);
  }

  // Of a line, what the columns so far take of it.
  std::size_t width() const {
    std::size_t sum = 0;
    for (const Column& column : columns_) sum += column.width() + 2;
    return sum;
  }

  std::string text() {
    std::string text = table(columns_);
    const std::size_t left_out = profile_.nodes.size() - rows_.size();
    if (left_out > 0) text += "… and " + counted(left_out, "more node") + "\n";
    return text;
  }

 private:
  void add(Column column, Cell cell) {
    for (const std::size_t i : rows_) column.cells.push_back(cell(i, profile_.nodes[i]));
    columns_.push_back(std::move(column));
  }

  const Profile& profile_;
  std::vector<std::size_t> rows_;  // numbers of the nodes that are shown
  std::vector<Column> columns_;
};

using Node = NodeColumns::Node;

void add_figures(NodeColumns& columns, bool cumulative, bool wide) {
  columns.add_number("#", [](std::size_t i, Node) { return std::to_string(i); });
  if (wide) {
    columns.add_number("min ms", [](std::size_t, Node n) { return milliseconds(n.time.min); });
    columns.add_number("mean ms", [](std::size_t, Node n) { return milliseconds(n.time.mean); });
  }
  columns.add_number("p50 ms", [](std::size_t, Node n) { return milliseconds(n.time.median); });
  columns.add_number("p95 ms", [](std::size_t, Node n) { return milliseconds(n.time.p95); });
  columns.add_number("%", [](std::size_t, Node n) { return percent(n.share); });
  if (cumulative) {
    columns.add_number("cum %", [](std::size_t, Node n) { return percent(n.cumulative_share); });
  }
  columns.add_number("GFLOP/s", [](std::size_t, Node n) { return rate(n.gflops()); });
  columns.add_number("GB/s", [](std::size_t, Node n) { return rate(n.gigabytes_per_second()); });
  if (wide) {
    columns.add_number(
        "moved", [](std::size_t, Node n) { return bytes_text(n.bytes_read + n.bytes_written); });
  }
}

// Of the function, and of the network's own nodes that it computes where they are known, in so many
// bytes. Where there is room for one name only, the network's own tells more.
void add_names(NodeColumns& columns, std::size_t room, bool known, bool wide) {
  constexpr std::size_t kLeast = 12;
  if (wide || !known) {
    columns.add_text("function", known ? std::max(room / 2, kLeast) : room,
                     [](std::size_t, Node n) { return short_function(n.info.function); });
  }
  if (known) {
    columns.add_text("computes", wide ? std::max(room - room / 2 - 2, kLeast) : room,
                     [](std::size_t, Node n) {
                       return n.onnx_nodes.empty() ? short_function(n.info.function)
                                                   : printable(comma_list(n.onnx_nodes));
                     });
  }
}

std::string node_table(const Profile& profile, const ProfileSettings& settings, std::size_t width) {
  // Room for all columns, and a function's name that is of use.
  const bool wide = width >= 150;
  NodeColumns columns(profile, settings);
  add_figures(columns, settings.order == ProfileOrder::kTime, wide);
  if (wide) {
    columns.add_text("family", 0, [](std::size_t, Node n) {
      return std::string(operator_family_title(n.family));
    });
  }
  if (std::ranges::any_of(profile.nodes, [](Node n) { return !n.info.device.empty(); })) {
    columns.add_text("device", 0, [](std::size_t, Node n) {
      return n.info.device.empty() ? std::string("cpu") : n.info.device;
    });
  }
  columns.add_text("output", 18, [](std::size_t, Node n) { return output_shape(n); });
  const std::size_t used = columns.width();
  add_names(columns, std::max<std::size_t>(width > used ? width - used : 0, 12),
            std::ranges::any_of(profile.nodes, [](Node n) { return !n.onnx_nodes.empty(); }), wide);
  return columns.text();
}

std::string family_table(const Profile& profile) {
  std::vector<Column> columns = {{"operator family", false, 0, {}}, {"nodes", true, 0, {}},
                                 {"p50 ms", true, 0, {}},           {"%", true, 0, {}},
                                 {"GFLOP/s", true, 0, {}},          {"moved", true, 0, {}}};
  for (const ProfiledFamily& family : profile.families) {
    // A rate of some of the nodes beside the time of all would mislead.
    const bool all = family.counted_nodes == family.nodes;
    const std::array<std::string, 6> cells = {std::string(operator_family_title(family.family)),
                                              std::to_string(family.nodes),
                                              milliseconds(family.time),
                                              percent(family.share),
                                              rate(all ? family.gflops() : std::nullopt),
                                              bytes_text(family.bytes)};
    for (std::size_t i = 0; i < cells.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return table(columns);
}

std::string sums(const Profile& profile) {
  const double plain = profile.plain_run.median;
  std::string text = "Sum of the nodes " + milliseconds(profile.sum_of_nodes) + " ms; a run " +
                     milliseconds(plain) + " ms, node by node " +
                     milliseconds(profile.node_run.median) + " ms (medians)\n";
  text += "Running node by node costs " + formatted("%+.3f ms", profile.overhead);
  if (plain > 0.0) text += formatted(" (%+.1f %%)", 100.0 * profile.overhead / plain);
  return text + "\n";
}

std::string memory_lines(const Profile& profile) {
  const ProfileMemory& memory = profile.memory;
  std::string text = "Memory: parameters " +
                     bytes_text(memory.executor.params_mapped + memory.executor.params_copied) +
                     ", activations " + bytes_text(memory.executor.activations) + "\n";
  text += "        at most " + bytes_text(memory.peak_live_bytes) +
          " of activations needed at once (node " + std::to_string(memory.peak_node) + ")\n";
  text += "        workspace of a node up to " + bytes_text(memory.workspace_bytes) +
          " on the calling thread\n";
  const MemoryAccount& account = memory.executor;
  if (account.device_activations == 0 && account.device_params == 0) return text;
  return text + "        on devices: parameters " + bytes_text(account.device_params) +
         ", activations " + bytes_text(account.device_activations) + ", workspaces " +
         bytes_text(account.device_workspaces) + "\n";
}

}  // namespace

std::size_t report_width() {
  constexpr std::size_t kWithoutTerminal = 100;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kWithoutTerminal;
  return std::max<std::size_t>(size.ws_col, kMinProfileWidth);
}

std::string profile_text(const Profile& profile, const ProfileSettings& settings,
                         std::size_t width) {
  std::string text =
      "Profile: " + counted(profile.nodes.size(), "node") +
      (profile.functions.empty()
           ? ""
           : " of " +
                 comma_list(profile.functions, [](const std::string& f) { return in_quotes(f); })) +
      ", " + counted(profile.runs, "run") + " after " + std::to_string(profile.warm_up_runs) +
      " to warm up, " + counted(static_cast<std::size_t>(profile.threads), "thread") + "\n\n";
  if (profile.nodes.empty()) return text + "The graph computes nothing.\n";
  text += node_table(profile, settings, std::max(width, kMinProfileWidth)) + "\n";
  text += family_table(profile) + "\n";
  return text + sums(profile) + memory_lines(profile);
}

}  // namespace run_model
