"""What code may use of a CPU: of this machine's, as /proc/cpuinfo says, and of a target's, by
LLVM."""

import os

# LLVM's name of a feature -> the name in /proc/cpuinfo.  What an x86 host lacks of its model's
# features (virtual machines hide some) must not be used by the code generator.
X86_FEATURES = {
    "sse4.1": "sse4_1", "sse4.2": "sse4_2", "sse4a": "sse4a", "popcnt": "popcnt", "lzcnt": "abm",
    "avx": "avx", "avx2": "avx2", "fma": "fma", "fma4": "fma4", "xop": "xop", "f16c": "f16c",
    "bmi": "bmi1", "bmi2": "bmi2", "adx": "adx", "movbe": "movbe", "aes": "aes",
    "pclmul": "pclmulqdq", "sha": "sha_ni", "gfni": "gfni", "vaes": "vaes",
    "vpclmulqdq": "vpclmulqdq", "avxvnni": "avx_vnni", "avx512f": "avx512f", "avx512cd": "avx512cd",
    "avx512bw": "avx512bw", "avx512dq": "avx512dq", "avx512vl": "avx512vl",
    "avx512ifma": "avx512ifma", "avx512vbmi": "avx512vbmi", "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni", "avx512bitalg": "avx512_bitalg",
    "avx512vpopcntdq": "avx512_vpopcntdq", "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16", "amx-tile": "amx_tile", "amx-int8": "amx_int8",
    "amx-bf16": "amx_bf16",
}


# The x86-64 psABI's levels, by the flags in /proc/cpuinfo that each adds.
X86_LEVELS = [
    ("x86-64-v2", {"sse4_2", "popcnt", "ssse3", "cx16"}),
    ("x86-64-v3", {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"}),
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
]


def cpu_flags():
    """The flags (x86) or Features (arm) of the first CPU in /proc/cpuinfo."""
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith(("flags", "Features")):
                return set(line.split(":", 1)[1].split())
    return set()


def cpu_model():
    """What tells one micro-architecture from another: "AuthenticAMD 25/17", the vendor's name,
    family and model of the first CPU in /proc/cpuinfo, or Arm's "0x41/0xd08"; "" where it says
    neither."""
    found = {}
    with open("/proc/cpuinfo") as file:
        for line in file:
            name, _, value = line.partition(":")
            found.setdefault(name.strip(), value.strip())
    if "vendor_id" in found and "cpu family" in found:
        return "%s %s/%s" % (found["vendor_id"], found["cpu family"], found.get("model", ""))
    if "CPU implementer" in found:
        return "%s/%s" % (found["CPU implementer"], found.get("CPU part", ""))
    return ""


def x86_level(flags):
    """The highest x86-64 level of which all flags are there."""
    name, needed = "x86-64", set()
    for level, adds in X86_LEVELS:
        needed |= adds
        if needed <= flags:
            name = level
    return name


def native_target(tvm):
    """The target string of this machine, as LLVM sees its CPU."""
    machine = os.uname().machine
    codegen = tvm.target.codegen
    cpu = ""
    if hasattr(codegen, "llvm_get_system_cpu"):
        cpu = str(codegen.llvm_get_system_cpu())
    if machine == "x86_64":
        flags = cpu_flags()
        # An old LLVM calls a new CPU "generic" or "x86-64", which would leave AVX out.
        if cpu in ("", "generic", "x86-64"):
            return "llvm -mcpu=" + x86_level(flags)
        # Older releases cannot say what a CPU's model has; then these are named to be safe.
        features = ["avx", "avx2", "fma", "f16c", "bmi", "bmi2", "avx512f", "avx512bw",
                    "avx512cd", "avx512dq", "avx512vl", "avx512vnni", "avx512bf16"]
        if hasattr(codegen, "llvm_get_cpu_features"):
            features = [str(f) for f in codegen.llvm_get_cpu_features(
                _target_of_cpu(tvm, cpu))]
        missing = ["-" + f for f in sorted(features)
                   if f in X86_FEATURES and X86_FEATURES[f] not in flags]
        return "llvm -mcpu=" + cpu + (" -mattr=" + ",".join(missing) if missing else "")
    if machine == "aarch64":
        attributes = "+neon" + (",+dotprod" if "asimddp" in cpu_flags() else "")
        return "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=" + attributes
    return "llvm" + (" -mcpu=" + cpu if cpu else "")


def _target_of_cpu(tvm, cpu):
    # Releases with Relax only read no such strings, and the first ones nothing else.
    return tvm.target.Target({"kind": "llvm", "mcpu": cpu} if not hasattr(tvm, "relay")
                             else "llvm -mcpu=" + cpu)


def host_plan_target(tvm, lanes):
    """The target string on which this machine runs a plan of our kernels for another one.

    lanes: float32 numbers in a vector of that plan.  A plan of its own shape matters more than
    speed here; what this machine has no such vectors for is computed by plain C code (isa.py).
    """
    native = native_target(tvm)
    if os.uname().machine == "x86_64":
        level = x86_level(cpu_flags())
        if lanes == 16 and level == "x86-64-v4":
            return native
        if lanes >= 8 and level in ("x86-64-v3", "x86-64-v4"):
            return "llvm -mcpu=x86-64-v3"
        return "llvm -keys=cpu,run_model_plain -mcpu=" + level
    return native


def llvm_features(tvm, target):
    """What LLVM may use of the target's CPU; None where it makes no code or TVM does not tell."""
    ask = getattr(tvm.target.codegen, "llvm_get_cpu_features", None)
    if ask is None or target.kind.name != "llvm":
        return None
    return sorted(str(feature) for feature in ask(target))
