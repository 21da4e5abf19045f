// A plugin of QEMU's user-mode emulators that counts what the guest executes of one library: for
// every block of instructions how often it ran, and its disassembly.
//
//   -plugin count_library.so,out=PATH,library=model.so
//
// PATH gets a line "elsewhere N", the instructions of all other code, and then, for each block that
// ran, "block OFFSET TIMES LENGTH" (OFFSET hexadecimal, of the file) and LENGTH lines of
// disassembly.  Counting is exact for a program whose code for the library runs on one thread.
//
// Debian has no package of QEMU's plugin header, so the few functions of the plugin API, version 1
// (docs/devel/tcg-plugins), are declared here.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t PluginId;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum { kAddUint64 = 0 };  // enum qemu_plugin_op

void qemu_plugin_register_vcpu_tb_trans_cb(PluginId id,
                                           void (*translated)(PluginId, struct qemu_plugin_tb*));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t index);
char* qemu_plugin_insn_disas(const struct qemu_plugin_insn* instruction);
void* qemu_plugin_insn_haddr(const struct qemu_plugin_insn* instruction);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, int operation,
                                              void* counter, uint64_t amount);
void qemu_plugin_register_atexit_cb(PluginId id, void (*ended)(PluginId, void*), void* data);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

struct Block {
  uint64_t times, offset;
  size_t length;
  char** text;
  struct Block* next;
};

static struct Block* blocks;
static uint64_t elsewhere;
static const char *path, *library = "";
// Where the library's code lies in the emulator's memory, once it is known, and in the file.
static uintptr_t code_begin, code_end;
static uint64_t code_offset;

static int ends_with(const char* text, const char* end) {
  size_t length = strlen(text), wanted = strlen(end);
  return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static int is_in_library(uintptr_t address) {
  if (address >= code_begin && address < code_end) return 1;
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4352];
  int found = 0;
  while (maps != NULL && fgets(line, sizeof line, maps)) {
    unsigned long begin, end, offset;
    char name[4096] = "";
    if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095s", &begin, &end, &offset, name) < 4) continue;
    if (address < begin || address >= end) continue;
    found = ends_with(name, library);
    if (found) code_begin = begin, code_end = end, code_offset = offset;
    break;
  }
  if (maps != NULL) fclose(maps);
  return found;
}

static void on_translated(PluginId id, struct qemu_plugin_tb* translated) {
  (void)id;
  size_t length = qemu_plugin_tb_n_insns(translated);
  uintptr_t address = (uintptr_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(translated, 0));
  if (!is_in_library(address)) {
    qemu_plugin_register_vcpu_tb_exec_inline(translated, kAddUint64, &elsewhere, length);
    return;
  }
  struct Block* block = calloc(1, sizeof *block);
  char** text = calloc(length, sizeof *text);
  if (block == NULL || text == NULL) exit(1);
  block->offset = address - code_begin + code_offset;
  block->length = length;
  block->text = text;
  for (size_t i = 0; i < length; ++i) {
    text[i] = qemu_plugin_insn_disas(qemu_plugin_tb_get_insn(translated, i));
  }
  block->next = blocks;
  blocks = block;
  qemu_plugin_register_vcpu_tb_exec_inline(translated, kAddUint64, &block->times, 1);
}

static void on_end(PluginId id, void* data) {
  (void)id;
  (void)data;
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "elsewhere %" PRIu64 "\n", elsewhere);
  for (struct Block* block = blocks; block != NULL; block = block->next) {
    if (block->times == 0) continue;
    fprintf(file, "block %" PRIx64 " %" PRIu64 " %zu\n", block->offset, block->times,
            block->length);
    for (size_t i = 0; i < block->length; ++i) fprintf(file, "%s\n", block->text[i]);
  }
  fclose(file);
}

__attribute__((visibility("default"))) int qemu_plugin_install(PluginId id, const void* info,
                                                               int count, char** arguments) {
  (void)info;
  for (int i = 0; i < count; ++i) {
    if (strncmp(arguments[i], "out=", 4) == 0) path = strdup(arguments[i] + 4);
    if (strncmp(arguments[i], "library=", 8) == 0) library = strdup(arguments[i] + 8);
  }
  if (path == NULL || *library == 0) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
  qemu_plugin_register_atexit_cb(id, on_end, NULL);
  return 0;
}
