"""The searches of run_model_tools.tuners as tuners that AutoTVM accepts, and which tuner a task
gets."""

import os
from pathlib import Path

import numpy as np
from tvm import autotvm

from run_model_tools.inside_tvm.tuning.tasks import knobs_of
from run_model_tools.tuners.genetic_dqn import GeneticDqn, GeneticSettings
from run_model_tools.tuners.guided import Guided
from run_model_tools.tuners.space import Knob, Space

# What the cost model learns from before it proposes; TVM's default of 64 is more than most layers
# get of a time box.
PLAN_SIZE = 24


def space_of(task):
    """The Space of a task; an index means the same configuration in both."""
    space = task.config_space
    filtered = len(space) != space.range_length
    return Space(tuple(Knob(knob["name"], knob["choices"]) for knob in knobs_of(task)),
                 space.is_index_valid if filtered else None)


class SearchTuner(autotvm.tuner.Tuner):
    """A tuner that asks a Search."""

    def __init__(self, task, search):
        super().__init__(task)
        self.search = search

    def next_batch(self, batch_size):
        return [self.space.get(index) for index in self.search.propose(batch_size)]

    def update(self, inputs, results):
        self.search.learn((inp.config.index, speed_of(self.task, result))
                          for inp, result in zip(inputs, results))

    def has_next(self):
        # A search does not count its space before it has looked through all of it.
        return not self.search.exhausted and len(self.search.proposed) < len(self.space)

    def load_history(self, data_set, min_seed_records=0):
        """Takes earlier trials of this very task; those of others are passed over."""
        own = [(inp.config.index, speed_of(self.task, result)) for inp, result in data_set
               if inp.task.name == self.task.name and inp.task.args == self.task.args]
        if len(own) >= min_seed_records:
            self.search.learn(own)


class Only(autotvm.tuner.Tuner):
    """Proposes one configuration."""

    def __init__(self, task, index):
        super().__init__(task)
        self._left = [index]

    def next_batch(self, batch_size):
        return [self.space.get(self._left.pop())]

    def has_next(self):
        return bool(self._left)


class GADQNTuner(SearchTuner):
    """A genetic algorithm, whose crossover and mutation two deep Q-networks decide on.

    seed: makes the proposals repeatable.  state: a file that the networks are read from where it
    is there, and written to after each update.
    """

    def __init__(self, task, pop_size=PLAN_SIZE, elite_num=3, seed=None, state=None, **dqn):
        from run_model_tools.tuners.dqn import DqnSettings

        space = space_of(task)
        settings = GeneticSettings(min(pop_size, len(task.config_space)), elite_num,
                                   DqnSettings(**dqn))
        super().__init__(task, GeneticDqn(space, seed, settings))
        self._state = Path(state) if state else None
        if self._state and self._state.exists():
            self.search.load(self._state)

    def update(self, inputs, results):
        super().update(inputs, results)
        if self._state:
            self.search.save(self._state)


class GuidedTuner(SearchTuner):
    """Bayesian optimisation that goes on from `experience` with other tasks.

    expected: what that expects of configurations, where it is known already.
    """

    def __init__(self, task, seed=None, experience=None, expected=None):
        super().__init__(task, Guided(space_of(task), seed, experience, task.args, expected))

    def has_next(self):
        return super().has_next() and not self.search.done


def speed_of(task, result):
    """FLOP/s of a trial; 0 where it failed."""
    return task.flop / float(np.mean(result.costs)) if result.error_no == 0 else 0.0


def make_tuner(name, task, seed=None, state=None, experience=None):
    """The tuner called `name` for a task.

    state: the file that a tuner which learns for longer than one session keeps that in.
    experience: gives what other tasks have taught, when it is called.
    """
    space = task.config_space
    if name == "gridsearch":
        return autotvm.tuner.GridSearchTuner(task)
    # With few configurations there is nothing to learn.
    if name == "random" or len(space) <= PLAN_SIZE:
        return autotvm.tuner.RandomTuner(task)
    if name == "ga":
        return autotvm.tuner.GATuner(task, pop_size=min(PLAN_SIZE, len(space)))
    if name == "guided":
        return GuidedTuner(task, seed, experience() if experience else None)
    if name == "ga-dqn":
        return GADQNTuner(task, seed=seed, state=state)
    # xgboost from 2.0 on refuses the objective "rank" with times as labels.
    return autotvm.tuner.XGBTuner(task, plan_size=PLAN_SIZE, feature_type="curve",
                                  loss_type="rank-binary", num_threads=os.cpu_count())


def resume(tuner, task, before):
    """Tells a tuner what was measured already: (MeasureInput, MeasureResult) of this task."""
    if not before:
        return
    if isinstance(tuner, SearchTuner):
        tuner.search.learn((inp.config.index, speed_of(task, result)) for inp, result in before)
    elif hasattr(tuner, "cost_model"):
        tuner.visited.update(inp.config.index for inp, _ in before)
        tuner.update(*_of_task(task, before))
    elif isinstance(tuner, autotvm.tuner.GATuner):
        # The latest are a generation, from which it breeds the next.
        latest = before[-tuner.pop_size:]
        if len(latest) > tuner.elite_num:
            tuner.genes = [tuner.space.point2knob(inp.config.index) for inp, _ in latest]
            tuner.visited = {inp.config.index for inp, _ in before}
            tuner.update(*_of_task(task, latest))
    elif isinstance(tuner, autotvm.tuner.GridSearchTuner):
        seen = {inp.config.index for inp, _ in before}
        while tuner.index in seen and tuner.has_next():
            tuner.visited.append(tuner.index)
            tuner.index = tuner.space.get_next_index(tuner.index, start=tuner.begin_idx,
                                                     end=tuner.end_idx)
    elif isinstance(getattr(tuner, "visited", None), list):
        tuner.visited.extend(sorted({inp.config.index for inp, _ in before}))


def _of_task(task, before):
    """(inputs, results) of this very task: a record's own does not know how much it computes."""
    inputs = [autotvm.measure.MeasureInput(task.target, task,
                                           task.config_space.get(inp.config.index))
              for inp, _ in before]
    return inputs, [result for _, result in before]
