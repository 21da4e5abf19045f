"""Files of tuning records: one best record a layer, in the formats that TVM itself reads.

A file kernels/records/FAMILY.TARGET.KIND starts with one comment line, "# " and a JSON object that
says where the times come from; TVM skips it.  The other lines are, by KIND:

  autotvm         AutoTVM's JSON lines, one for each workload
  graph           the same, one for each convolution of one network in the order of its graph, as
                  AutoTVM's graph tuner chose them (a workload may have several layouts)
  auto_scheduler  the auto-scheduler's JSON lines, one for each workload
  metaschedule    {"workload": [hash, module], "record": [trace, seconds, target, arguments]}, the
                  two tables of MetaSchedule's database joined; `module` is zlib-packed base64

Also imported inside TVM's process (run_model_tools.inside_tvm), so Python 3.8 has to understand it;
it needs the standard library only.
"""

import base64
import json
import os
import shlex
import tempfile
import zlib

KINDS = ("autotvm", "graph", "auto_scheduler", "metaschedule")
SCHEMA_VERSION = 1

# AutoTVM writes this for a trial that failed.
FAILED_COST = 1e9


class Record:
    """One line: its text, what was tuned (`key`), and its time.

    key: equal for records that compete with each other.  target: TVM's target string.
    template: AutoTVM's name of the template, else None.  seconds: of one call, the fastest of the
    repeats, since what disturbs a measurement only ever adds to it.
    """

    def __init__(self, kind, key, target, template, seconds, text):
        self.kind = kind
        self.key = key
        self.target = target
        self.template = template
        self.seconds = seconds
        self.text = text


def workload_key(template, arguments):
    """The key of an AutoTVM workload, from a record or from a task."""
    return json.dumps([template, arguments], separators=(",", ":"))


def autotvm_trial(line):
    """(target, template, arguments, knobs, seconds) of a line of AutoTVM's log; None for others.

    knobs: (name, kind, choice) of each, the choice as a list.  seconds: the mean of the repeats, 0
    where the trial failed.
    """
    try:
        value = json.loads(line)
        target, template, arguments = value["input"][:3]
        costs, error = value["result"][:2]
        knobs = [(name, kind, list(choice) if isinstance(choice, list) else [choice])
                 for name, kind, choice in value["config"]["entity"]]
        return target, template, arguments, knobs, 0.0 if error else sum(costs) / len(costs)
    except (ValueError, KeyError, IndexError, TypeError, ZeroDivisionError):
        return None


def parse(line):
    """A Record of one line, or None for a line that is none: cut off, failed, of another format."""
    try:
        value = json.loads(line)
        if "workload" in value:
            record = value["record"]
            return _checked("metaschedule", value["workload"][0], json.dumps(record[2]), None,
                            record[1], line)
        if "config" in value:
            target, template, arguments = value["input"][:3]
            # Before 2020, a template's name did not tell its target, and workloads were others.
            if not isinstance(value["config"].get("entity"), list) or value.get("version") != 0.2:
                return None
            costs, error = value["result"][:2]
            return None if error else _checked("autotvm", workload_key(template, arguments), target,
                                               template, costs, line)
        target = value["i"][0][1]
        costs, error = value["r"][:2]
        return None if error else _checked("auto_scheduler", value["i"][0][0], target, None, costs,
                                           line)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return None


def _checked(kind, key, target, template, costs, line):
    seconds = min(float(cost) for cost in costs)
    if not isinstance(key, str) or not isinstance(target, str) or not 0 < seconds < FAILED_COST:
        return None
    return Record(kind, key, target, template, seconds, line.strip())


def read(path):
    """(header, records, unreadable): of a file of any origin.

    header: the object of its first line, {} where that is no such comment.  unreadable counts
    lines that are neither comments nor records of a run that succeeded.
    """
    header, records, unreadable = {}, [], 0
    with open(str(path), encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file):
            if line.startswith("#"):
                if number == 0:
                    header = _header(line)
                continue
            if not line.strip():
                continue
            record = parse(line)
            if record is None:
                unreadable += 1
            else:
                records.append(record)
    return header, records, unreadable


def _header(line):
    try:
        value = json.loads(line[1:])
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def read_header(path):
    """The object of a file's first line; {} where there is none."""
    with open(str(path), encoding="utf-8", errors="replace") as file:
        line = file.readline()
    return _header(line) if line.startswith("#") else {}


def best(records, seconds=lambda record: record.seconds):
    """The record of each key that costs least, by key; of equal ones, the first.

    seconds: what a record costs, its time where nothing else is said (weighing.Weighing).
    """
    chosen = {}
    for record in records:
        cost = seconds(record)
        if record.key not in chosen or cost < chosen[record.key][0]:
            chosen[record.key] = cost, record
    return {key: record for key, (_, record) in chosen.items()}


def write(path, header, records):
    """Writes a file whole or not at all, the records in the order given."""
    lines = ["# " + json.dumps(dict({"schema_version": SCHEMA_VERSION}, **header))]
    lines += [record.text for record in records]
    path = str(path)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".",
                                         prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def merge(path, header, records, seconds=lambda record: record.seconds):
    """Adds records to a file of one kind; of two for the same thing the one that costs less stays.

    Gives (new, faster, kept): how many were not there, replaced a slower one, or stayed behind.
    """
    there = {}
    if os.path.exists(str(path)):
        there = best(read(path)[1], seconds)
    new = faster = kept = 0
    for key, record in best(records, seconds).items():
        if key not in there:
            new += 1
        elif seconds(record) < seconds(there[key]):
            faster += 1
        else:
            kept += 1
            continue
        there[key] = record
    if new or faster:
        write(path, header, [there[key] for key in sorted(there)])
    return new, faster, kept


def mend(path):
    """Ends a log that was cut in the middle of a line, so that it can be gone on with.

    The rest of the broken line stays, as a line that no reader takes for a record.
    """
    if not os.path.exists(str(path)) or os.path.getsize(str(path)) == 0:
        return
    with open(str(path), "rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")


def drop_broken_lines(path, is_whole):
    """Leaves out the lines of a log that were cut, or whose JSON value is not as is_whole(value)
    says; gives how many stay."""
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.readlines()
    kept = []
    for line in lines:
        try:
            if line.endswith("\n") and is_whole(json.loads(line)):
                kept.append(line)
        except (ValueError, TypeError):
            pass
    if len(kept) != len(lines):
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.writelines(kept)
        os.replace(path + ".new", path)
    return len(kept)


def join_metaschedule(workloads, records):
    """MetaSchedule's two tables (their lines) -> lines of the kind metaschedule.

    A record is [index of its workload, [trace, seconds, target, arguments]].
    """
    modules = [json.loads(line) for line in workloads if line.strip()]
    joined = []
    for line in records:
        try:
            index, record = json.loads(line)
            shash, module = modules[index]
        except (ValueError, IndexError, TypeError):
            continue
        packed = base64.b64encode(zlib.compress(base64.b64decode(module), 9)).decode()
        joined.append(json.dumps({"workload": [shash, packed], "record": record},
                                 separators=(",", ":")))
    return joined


def split_metaschedule(records, folder):
    """Writes the two tables, from Records of the kind metaschedule, as TVM wants them in
    `folder`."""
    indices = {}
    with open(os.path.join(str(folder), "database_workload.json"), "w") as workloads, \
            open(os.path.join(str(folder), "database_tuning_record.json"), "w") as table:
        for record in records:
            value = json.loads(record.text)
            shash, packed = value["workload"]
            if packed not in indices:
                indices[packed] = len(indices)
                module = base64.b64encode(zlib.decompress(base64.b64decode(packed))).decode()
                workloads.write(json.dumps([shash, module]) + "\n")
            table.write(json.dumps([indices[packed], value["record"]]) + "\n")


def target_words(text):
    """What decides whether code for one target suits another, out of a target string."""
    words = shlex.split(text)
    options = dict(word[1:].split("=", 1) for word in words[1:]
                   if word.startswith("-") and "=" in word)
    keys = options.get("keys", "").split(",")
    device = options.get("device") or ("arm_cpu" if "arm_cpu" in keys else None)
    triple = options.get("mtriple", options.get("target", ""))
    machine = None
    for start, name in (("aarch64", "aarch64"), ("arm64", "aarch64"), ("arm", "arm"),
                        ("x86", "x86_64"), ("i386", "i386"), ("riscv64", "riscv64")):
        if triple.startswith(start):
            machine = name
            break
    if machine is None and not triple and device is None:
        machine = "x86_64"
    model = options.get("model")
    return {"kind": words[0] if words else "", "device": device, "machine": machine,
            "model": None if model == "unknown" else model}
