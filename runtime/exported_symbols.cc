#include "runtime/exported_symbols.h"

#include "runtime/backend_api.h"
#include "runtime/float16_abi.h"

namespace run_model {
namespace {

#define RUN_MODEL_SYMBOL(function) {#function, reinterpret_cast<void*>(&function)}

const ExportedSymbol kSymbols[] = {
    RUN_MODEL_SYMBOL(TVMBackendParallelLaunch),
    RUN_MODEL_SYMBOL(TVMBackendParallelBarrier),
    RUN_MODEL_SYMBOL(TVMBackendAllocWorkspace),
    RUN_MODEL_SYMBOL(TVMBackendFreeWorkspace),
    RUN_MODEL_SYMBOL(TVMBackendGetFuncFromEnv),
    RUN_MODEL_SYMBOL(TVMBackendRunOnce),
    RUN_MODEL_SYMBOL(TVMBackendRegisterSystemLibSymbol),
    RUN_MODEL_SYMBOL(TVMBackendRegisterEnvCAPI),
    RUN_MODEL_SYMBOL(TVMFuncCall),
    RUN_MODEL_SYMBOL(TVMAPISetLastError),
    RUN_MODEL_SYMBOL(TVMGetLastError),
    RUN_MODEL_SYMBOL(__gnu_h2f_ieee),
    RUN_MODEL_SYMBOL(__gnu_f2h_ieee),
    RUN_MODEL_SYMBOL(__truncdfhf2),
#ifdef RUN_MODEL_HALF_IN_FLOAT_REGISTER
    RUN_MODEL_SYMBOL(__extendhfsf2),
    RUN_MODEL_SYMBOL(__extendhfdf2),
    RUN_MODEL_SYMBOL(__truncsfhf2),
#endif
#if defined(__arm__)
    RUN_MODEL_SYMBOL(__aeabi_h2f),
    RUN_MODEL_SYMBOL(__aeabi_f2h),
    RUN_MODEL_SYMBOL(__aeabi_d2h),
#endif
};

#undef RUN_MODEL_SYMBOL

}  // namespace

std::span<const ExportedSymbol> exported_symbols() { return kSymbols; }

}  // namespace run_model
