"""Which configuration of a template TVM takes where nothing was tuned; runs inside TVM's process.

A tuner may not come across it, and what it found instead may be slower.  So it is measured before
anything else, and what is better has to be better than that.
"""

from contextlib import nullcontext

from run_model_tools.inside_tvm.devices import tiles
from run_model_tools.inside_tvm.devices.kernels import KINDS
from run_model_tools.inside_tvm.tuning.tasks import choice_of
from run_model_tools.tuning.weighing import blocks_of_entity


def find(task):
    """(index, blocks) of an AutoTVM task: None for what TVM's default has no place in the task's
    space for, and for a template whose layers have no blocks of channels."""
    entity = _default(task)
    blocks = blocks_of_entity(task.name, [(name, "", choice) for name, choice in entity.items()])
    return _index(task.config_space, entity), blocks


def _default(task):
    """{knob: choice} that the template decides on by itself; without those it leaves open."""
    import tvm
    from tvm import autotvm
    from tvm.autotvm.task.space import FallbackConfigEntity

    class Noted(autotvm.task.DispatchContext):
        """Answers with one default, which the template fills in."""

        def __init__(self):
            super().__init__()
            self.configuration = FallbackConfigEntity()

        def _query_inside(self, target, workload):
            return self.configuration

        def update(self, target, workload, cfg):
            pass

    noted = Noted()
    try:
        # Of a GPU's template, our compiler's tiles are the default.
        with task.target, noted, tiles.chosen(tvm) if task.target.kind.name in KINDS \
                else nullcontext():
            task.func(*task.args)
    except Exception:
        # A template that cannot be untuned: whatever a tuner finds is better.
        return {}
    return {name: choice_of(entity) for name, entity in noted.configuration._entity_map.items()}


def _index(space, entity):
    """The place of a configuration in a space; None where it is not in it."""
    genes = []
    for name, knob in space.space_map.items():
        choices = [choice_of(choice) for choice in knob.entities]
        place = next((i for i, choice in enumerate(choices)
                      if name in entity and _same(choice, entity[name])), None)
        if place is None:
            return None
        genes.append(place)
    return int(space.knob2point(genes))


def _same(choice, other):
    """-1 is what the other parts of a split leave."""
    return len(choice) == len(other) and all(
        -1 in (one, two) or one == two for one, two in zip(choice, other))
