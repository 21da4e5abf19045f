"""Which tuning records a network gets when it is compiled; runs inside TVM's process.

The request's "tuning" object: {"files": [{"name", "path", "kind"}], "explicit": bool,
"boards": [...]}.
Committed files were chosen by the target's name already.  An explicit file may hold records of many
targets: those of other instruction sets are left out, and of several boards' (`-model=`) one is
taken, since times of different boards say nothing about each other.

Records of AutoTVM are looked up layer by layer, so that any network profits.  The other kinds were
measured for one network as a whole, and serve networks of exactly its layers.
"""

import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager

from run_model_tools.inside_tvm.devices import schedules
from run_model_tools.inside_tvm.tuning import metaschedule, tunable_layers
from run_model_tools.tuning import records as tuning_records

# Where several kinds were committed for a network, what was measured best for the whole of it.
WHOLE_NETWORK = ("metaschedule", "auto_scheduler", "graph")


class AnotherMethod(Exception):
    """The network is to be compiled from the start in the way of `kind`."""

    def __init__(self, kind):
        Exception.__init__(self, kind)
        self.kind = kind


class Application:
    """Applies a request's records to one network, and says afterwards what was used."""

    def __init__(self, tvm, target, tuning, features):
        """features: gives the LLVM features of a target, a set of names."""
        self._tvm = tvm
        self._target = target
        self._tuning = tuning
        self._features = features
        self._folder = None
        self.report = None

    @contextmanager
    def whole(self, kind):
        """Compiles all of the network as `kind` does; gives the extra PassContext options."""
        with ExitStack() as stack:
            entry = next(e for e in self._files() if e["kind"] == kind)
            records = list(tuning_records.best(entry["records"]).values())
            self.report = {"method": kind, "files": [
                {"name": entry["name"], "records": len(records)}]}
            if kind == "auto_scheduler":
                from tvm import auto_scheduler

                stack.enter_context(auto_scheduler.ApplyHistoryBest(_load_auto_scheduler(records)))
                yield {"relay.backend.use_auto_scheduler": True}
            else:
                from tvm import meta_schedule

                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="run_model-"))
                tuning_records.split_metaschedule(records, folder)
                stack.enter_context(meta_schedule.database.JSONDatabase(work_dir=folder))
                stack.enter_context(_quiet_autotvm())
                stack.enter_context(metaschedule.flat_weights())
                yield {"relay.backend.use_meta_schedule": True,
                       "relay.backend.use_meta_schedule_dispatch": 1,
                       "relay.backend.tir_converter": "default"}

    def layout(self, kind):
        """The layout to which convolutions are converted before anything else, or None."""
        entry = next(e for e in self._files() if e["kind"] == kind)
        return entry["header"].get("layout")

    def kind_for_all(self):
        """The kind of an explicit file that is applied to whole networks only; else None."""
        if self._tuning["explicit"]:
            for entry in self._files():
                if entry["kind"] in ("auto_scheduler", "metaschedule"):
                    return entry["kind"]
        return None

    @contextmanager
    def by_layer(self, mod):
        """To be entered with the simplified module, before its layouts are chosen."""
        from tvm import autotvm

        layers, sequence = tunable_layers.find(self._tvm, mod, self._target)
        self._choose_method(tunable_layers.signature(layers, sequence))
        left_out = Counter()
        chosen = self._choose(layers, left_out)
        history = autotvm.task.ApplyHistoryBest(
            [autotvm.record.decode(record.text) for record, _ in chosen.values()])
        used = Counter(entry["name"] for _, entry in chosen.values())
        self.report = {"method": "autotvm", "layers": len(layers), "tuned_layers": len(chosen),
                       "files": [{"name": name, "records": count}
                                 for name, count in sorted(used.items())]}
        if left_out:
            self.report["left_out"] = dict(sorted(left_out.items()))
        with ExitStack() as stack:
            stack.enter_context(history)
            graph = self._graph(layers, sequence)
            if graph is not None:
                entry, records = graph
                self.report["method"] = "graph"
                self.report["files"].append({"name": entry["name"], "records": len(records)})
                stack.enter_context(_graph_context(records))
            yield

    def _files(self):
        """The request's files, read once; kind, header and the lines that fit the target."""
        for entry in self._tuning["files"]:
            if "records" not in entry:
                header, records, unreadable = tuning_records.read(entry["path"])
                entry.update(header=header, unreadable=unreadable)
                entry["kind"] = entry.get("kind") or (records[0].kind if records else "autotvm")
                wanted = "autotvm" if entry["kind"] == "graph" else entry["kind"]
                entry["records"] = [r for r in records if r.kind == wanted]
                entry["unreadable"] += len(records) - len(entry["records"])
        return self._tuning["files"]

    def _choose_method(self, signature):
        if self._tuning["explicit"]:
            return
        for kind in WHOLE_NETWORK:
            for entry in self._files():
                if entry["kind"] == kind and entry["header"].get("network") == signature:
                    self._tuning["files"] = [
                        e for e in self._files()
                        if e is entry or e["kind"] not in WHOLE_NETWORK]
                    if kind != "graph":
                        raise AnotherMethod(kind)
                    return
        self._tuning["files"] = [e for e in self._files() if e["kind"] not in WHOLE_NETWORK]

    def _choose(self, layers, left_out):
        """Place of a layer -> (record, file) for those that have one."""
        wanted = {key for layer in layers for key in layer.keys()}  # noqa: SIM118  (not a dictionary)
        found = []
        for entry in self._files():
            if entry["kind"] != "autotvm":
                continue
            left_out["unreadable"] += entry["unreadable"]
            for record in entry["records"]:
                if self._tuning["explicit"] and not self._fits(record.target):
                    left_out["other_target"] += 1
                elif record.key in wanted:
                    found.append((record, entry))
        if self._tuning["explicit"]:
            found = self._of_one_board(found, left_out)
        by_key = {}
        for record, entry in sorted(found, key=lambda item: item[0].seconds):
            by_key.setdefault(record.key, []).append((record, entry))
        best = {}
        chosen = {}
        for index, layer in enumerate(layers):
            usable = []
            for (name, _), key in zip(layer.templates, layer.keys()):
                if key in by_key and key not in best:
                    best[key] = self._fastest_possible(name, by_key[key], left_out)
                if best.get(key):
                    usable.append(key)
            # One of several templates says nothing about whether it beats the one that is taken
            # untuned: that needs a time of both, or a file that says that it was compared.
            compared = self._tuning["explicit"] or any(
                best[key][1]["header"].get("compared") for key in usable)
            if usable and usable[0] != layer.keys()[0] and not compared:
                left_out["no_time_of_the_default_template"] += len(usable)
            elif usable:
                chosen[index] = min((best[key] for key in usable), key=lambda b: b[0].seconds)
        for name in [name for name, count in left_out.items() if not count]:
            del left_out[name]
        return chosen

    def _fits(self, text):
        """Whether a record's target has this target's kind, device and instructions."""
        have = tuning_records.target_words(str(self._target))
        line = tuning_records.target_words(text)
        if have["kind"] != line["kind"] or have["device"] != line["device"]:
            return False
        if have["model"] and line["model"] and have["model"] != line["model"]:
            return False
        if have["machine"] != line["machine"]:
            return line["machine"] is None
        if have["machine"] == "x86_64":
            try:
                return self._vector_class(str(self._target)) == self._vector_class(text)
            except Exception:
                return False
        return True

    def _vector_class(self, text):
        features = self._features(self._tvm.target.Target(text)) or ()
        return next((name for name in ("avx512f", "avx2", "avx") if name in features), "sse")

    def _of_one_board(self, found, left_out):
        models = Counter(tuning_records.target_words(record.target)["model"] for record, _ in found)
        if len(models) < 2:
            return found
        preferred = [name for name in self._tuning.get("boards", ()) if name in models]
        board = preferred[0] if preferred else models.most_common(1)[0][0]
        kept = [item for item in found
                if tuning_records.target_words(item[0].target)["model"] == board]
        left_out["other_board"] += len(found) - len(kept)
        return kept

    def _fastest_possible(self, name, found, left_out):
        """(record, file) of a template's records, the fastest first, that TVM and the target can
        use; None without any."""
        for record, entry in found:
            task = self._task(name, record)
            if task is None:
                # Those that follow are of the same template.
                left_out["outdated"] += 1
                return None
            if schedules.exceeds_limits(self._tvm, *task, self._target):
                left_out["beyond_the_limits_of_the_target"] += 1
                continue
            return record, entry
        return None

    def _task(self, name, record):
        """(task, configuration) where TVM has the template, with the same knobs as when it was
        tuned, else None."""
        from tvm import autotvm

        try:
            inp, _ = autotvm.record.decode(record.text)
            with self._target:
                task = autotvm.task.create(name, inp.task.args, target=self._target)
            knobs = set(task.config_space.space_map)
            if knobs != {item[0] for item in inp.config.to_json_dict()["entity"]}:
                return None
            return task, inp.config
        except Exception:
            return None

    def _graph(self, layers, sequence):
        """(file, its records) where a file of the kind graph fits, else None."""
        convolutions = [layers[index] for index in sequence
                        if layers[index].operator == "nn.conv2d"]
        for entry in self._files():
            if entry["kind"] != "graph":
                continue
            records = entry["records"]
            if len(records) == len(convolutions) and all(
                    record.key in layer.keys()  # noqa: SIM118  (not a dictionary)
                    for record, layer in zip(records, convolutions)):
                return entry, records
        return None


def _graph_context(records):
    from tvm import autotvm

    class GraphThenLayers(autotvm.task.ApplyGraphBest):
        """The convolutions' records in the graph's order; any other layer by its workload."""

        def _query_inside(self, target, workload):
            if workload is None:
                return super()._query_inside(target, workload)
            return self._global_cfg_dict.get((str(target), workload))

    return GraphThenLayers([autotvm.record.decode(record.text) for record in records])


def _load_auto_scheduler(records):
    from tvm.auto_scheduler.measure_record import load_record_from_string

    return [load_record_from_string(record.text) for record in records]


@contextmanager
def _quiet_autotvm():
    from tvm import autotvm

    silent = autotvm.GLOBAL_SCOPE.silent
    autotvm.GLOBAL_SCOPE.silent = True
    try:
        yield
    finally:
        autotvm.GLOBAL_SCOPE.silent = silent
