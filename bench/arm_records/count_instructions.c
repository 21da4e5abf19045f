// A plugin of QEMU's user-mode emulators that counts the guest's instructions and prints the sum on
// the file named by its argument out=PATH when the program ends.
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

enum { kAddUint64 = 0 };  // enum qemu_plugin_op

void qemu_plugin_register_vcpu_tb_trans_cb(PluginId id,
                                           void (*translated)(PluginId, struct qemu_plugin_tb*));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, int operation,
                                              void* counter, uint64_t amount);
void qemu_plugin_register_atexit_cb(PluginId id, void (*ended)(PluginId, void*), void* data);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static uint64_t instructions;
static char* path;

static void on_translated(PluginId id, struct qemu_plugin_tb* block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(block, kAddUint64, &instructions,
                                           qemu_plugin_tb_n_insns(block));
}

static void on_end(PluginId id, void* data) {
  (void)id;
  (void)data;
  FILE* file = path != NULL ? fopen(path, "w") : stderr;
  if (file == NULL) return;
  fprintf(file, "%" PRIu64 "\n", instructions);
  if (file != stderr) fclose(file);
}

__attribute__((visibility("default"))) int qemu_plugin_install(PluginId id, const void* info,
                                                               int count, char** arguments) {
  (void)info;
  for (int i = 0; i < count; ++i) {
    if (strncmp(arguments[i], "out=", 4) == 0) path = strdup(arguments[i] + 4);
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
  qemu_plugin_register_atexit_cb(id, on_end, NULL);
  return 0;
}
