// Stands in for parts of Debian's static gflags and glog that these programs never call, although
// the parts that they call name them: names of functions in stack traces, the handler of signals
// that prints those, and gflags' own completion of command lines, whose place a program's table of
// flags has taken. Where another release gives a function other parameters, it has its own.
#include <cstddef>

namespace google {

bool Symbolize(void* address, char* name, std::size_t name_size);
bool Symbolize(void*, char*, std::size_t) { return false; }

void HandleCommandLineCompletions();
void HandleCommandLineCompletions() {}

namespace glog_internal_namespace_ {

bool IsFailureSignalHandlerInstalled();
bool IsFailureSignalHandlerInstalled() { return false; }

}  // namespace glog_internal_namespace_

}  // namespace google
