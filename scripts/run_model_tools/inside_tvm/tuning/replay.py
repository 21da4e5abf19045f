"""Tuners on recordings in the place of hardware: the action "replay".

Every tuner gets the same tasks, the same measurements and as many trials; those of TVM are TVM's
own, driven as Tuner.tune() drives them.
"""

import random
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from tvm import autotvm
from tvm.autotvm.env import GLOBAL_SCOPE
from tvm.autotvm.tuner import xgboost_cost_model
from tvm.contrib.popen_pool import StatusKind

from run_model_tools.inside_tvm import Refusal, tell
from run_model_tools.inside_tvm.tuning import tuners
from run_model_tools.inside_tvm.tuning.tasks import create_task, knobs_of
from run_model_tools.tuners import recording as recordings
from run_model_tools.tuners.experience import Experience, Past

# A run ends when it has come so near to the best known: nobody asks for more.
ENOUGH = 0.99


def replay(tvm, request):
    """{"runs": [{"task", "tuner", "seed", "trials", "seconds", "steps"}]}.

    seconds: that the tuner itself has used.  steps: [trial, index] whenever a faster configuration
    was found, counted from 1.
    """
    history = [recordings.read(Path(path)) for path in request.get("history", ())]
    runs, noise = [], request.get("noise", 0.0)
    for path in request["recordings"]:
        measured = recordings.read(Path(path))
        bench = Bench(measured, history)
        for name in request["tuners"]:
            for seed in request["seeds"]:
                runs.append(bench.run(name, seed, request["trials"], request["batch"], noise))
                tell(request, "run", task=measured.name, tuner=name, seed=seed)
    return {"runs": runs}


class Bench:
    """One recording, and what is needed to let tuners loose on it."""

    def __init__(self, measured, history=()):
        self.measured = measured
        self.task = create_task({"template": measured.template, "arguments": measured.arguments,
                                 "target": measured.target})
        made = [(knob.name, knob.choices) for knob in measured.knobs]
        if made != [(knob["name"], knob["choices"]) for knob in knobs_of(self.task)]:
            raise Refusal("recording", "the recording of %s is of another space than this TVM's"
                          % measured.name)
        self.task.config_space.random_walk = random_walk(self.task.config_space.dims)
        # What a task is recorded as itself is no experience.
        self._history = [other for other in history if other.arguments != measured.arguments
                         and other.template == measured.template]
        self.experience = Experience(
            Past(other.arguments, other.space, dict(enumerate(other.speeds.tolist())))
            for other in self._history)
        self._features = self._expected = self._base = None

    def run(self, name, seed, trials, batch, noise):
        """noise: the standard deviation of the logarithm of what a tuner is told, by the truth."""
        random.seed(seed)
        np.random.seed(seed)
        chance = np.random.default_rng((seed, 1))
        tuner = self._make(name, seed)
        steps, count, best, spent = [], 0, 0.0, 0.0
        while count < trials:
            start = time.perf_counter()
            configs = tuner.next_batch(min(batch, trials - count)) if tuner.has_next() else []
            spent += time.perf_counter() - start
            if not configs:
                break
            inputs = [autotvm.measure.MeasureInput(self.task.target, self.task, config)
                      for config in configs]
            results = [self.measure(config.index, np.exp(noise * chance.standard_normal()))
                       for config in configs]
            for config in configs:
                count += 1
                speed = self.measured.speeds[config.index]
                if speed > best:
                    best = float(speed)
                    steps.append([count, int(config.index)])
            if best >= ENOUGH:
                break
            start = time.perf_counter()
            tuner.update(inputs, results)
            spent += time.perf_counter() - start
        return {"task": self.measured.name, "tuner": name, "seed": seed, "trials": count,
                "seconds": round(spent, 4), "steps": steps}

    def measure(self, index, factor=1.0):
        """What AutoTVM would have been told by the hardware, which is disturbed by `factor`."""
        seconds = self.measured.seconds[index] * factor
        if np.isnan(seconds):
            error = autotvm.measure.MeasureErrorNo.RUNTIME_DEVICE
            return autotvm.measure.MeasureResult(("", "recorded as failed"), error, 0, 0)
        return autotvm.measure.MeasureResult((float(seconds),), 0, float(seconds), 0)

    def _make(self, name, seed):
        if name == "xgb-64":
            # As TVM makes it where nobody says otherwise.
            return self._with_features(autotvm.tuner.XGBTuner(
                self.task, plan_size=64, feature_type="curve", loss_type="rank-binary"))
        if name == "xgb-history":
            return self._with_history(self._with_features(tuners.make_tuner("xgb", self.task)))
        if name == "guided-alone":
            return tuners.GuidedTuner(self.task, seed)
        if name == "guided":
            tuner = tuners.GuidedTuner(self.task, seed, self.experience, self._expected)
            # The same for every seed.
            self._expected = tuner.search.expectations
            return tuner
        tuner = tuners.make_tuner(name, self.task, seed)
        return self._with_features(tuner) if hasattr(tuner, "cost_model") else tuner

    def _with_features(self, tuner):
        """Gives the cost model the features of all configurations, extracted once for all seeds,
        and lets it predict all of them at once after each fit: the numbers are the same."""
        model = tuner.cost_model
        if self._features is None:
            self._features = features_of(self.task)
        model.feature_cache.feature_cache[model.fea_type] = self._features
        fit, predict = model.fit, model.predict
        known = {}

        def fit_anew(xs, ys, plan_size):
            known.clear()
            fit(xs, ys, plan_size)

        def look_up(xs, output_margin=False):
            if output_margin:
                return predict(xs, output_margin)
            if "all" not in known:
                known["all"] = predict(range(self.task.config_space.range_length))
            return known["all"][np.asarray(xs, dtype=int)]

        model.fit, model.predict = fit_anew, look_up
        # Its workers would import TVM anew for every fit, to extract what is there already.
        model._reset_pool = lambda *_: None
        return tuner

    def _with_history(self, tuner):
        """What AutoTVM's load_history() does with the other tasks' recordings.

        The model that is learnt from them is the same for every seed.
        """
        model = tuner.cost_model
        base = model.spawn_base_model()
        if self._base is None:
            features, data = [], []
            for other in map(Bench, self._history):
                features += list(features_of(other.task).values())
                data += [(autotvm.measure.MeasureInput(other.task.target, other.task,
                                                       other.task.config_space.get(index)),
                          other.measure(index)) for index in range(len(other.measured.seconds))]
            speeds = [tuners.speed_of(inp.task, result) for inp, result in data]
            base._get_pool = lambda: Extracted(features, speeds)
            base._reset_pool = lambda *_: None
            if not base.fit_log(data, tuner.plan_size, 1):
                raise Refusal("recording", "there is no recording to learn from")
            everything = range(self.task.config_space.range_length)
            self._base = {margin: base.predict(everything, margin) for margin in (False, True)}
        base.predict = lambda xs, output_margin=False: self._base[output_margin][
            np.asarray(xs, dtype=int)]
        tuner.trials = tuner.model_optimizer.find_maximums(base, tuner.plan_size, tuner.visited)
        model.load_basemodel(base)
        return tuner


def random_walk(dims):
    """ConfigSpace.random_walk() of a space without a filter, which takes most of a search's time:
    one knob gets another choice, all with the same probability."""
    strides = [int(np.prod(dims[:knob])) for knob in range(len(dims))]
    chance = random.random

    def walk(point):
        while True:
            knob = int(chance() * len(dims))
            size, stride = dims[knob], strides[knob]
            old, new = point // stride % size, int(chance() * size)
            if old != new:
                return point + (new - old) * stride

    return walk


class Extracted:
    """Stands for the pool that extracts features, for those that are there already."""

    def __init__(self, features, speeds):
        self._found = [SimpleNamespace(status=StatusKind.COMPLETE, value=(feature, speed))
                       for feature, speed in zip(features, speeds) if feature is not None]

    def map_with_error_catching(self, *_):
        return self._found


_FEATURES = {}  # type: dict


def features_of(task):
    """{index: AutoTVM's features of the configuration, None where it has none}."""
    key = repr((task.name, task.args))
    if key not in _FEATURES:
        _FEATURES[key] = _extract_features(task)
    return _FEATURES[key]


def _extract_features(task):
    xgboost_cost_model._extract_popen_initializer(task.config_space, task.target, task)
    GLOBAL_SCOPE.in_tuning, features = True, {}
    for index in range(task.config_space.range_length):
        try:
            features[index] = xgboost_cost_model._extract_curve_feature_index(index)
        except Exception:
            features[index] = None
    GLOBAL_SCOPE.in_tuning = False
    return features
