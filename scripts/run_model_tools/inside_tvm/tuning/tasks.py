"""AutoTVM tasks by their workloads, as records and recordings name them."""


def create_task(request):
    """The task of request["template"] with request["arguments"] for request["target"]."""
    import tvm
    from tvm import autotvm
    from tvm.topi import arm_cpu, x86  # noqa: F401  (they register the templates)

    target = tvm.target.Target(request["target"])
    with target:
        return autotvm.task.create(request["template"], tuples(request["arguments"]),
                                   target=target)


def tuples(value):
    """JSON's lists back into the tuples that a workload is made of."""
    if isinstance(value, list):
        return tuple(tuples(item) for item in value)
    return value


def knobs_of(task):
    """[{"name", "choices"}] of a task's space, in the order of its indices: a choice is the list
    of numbers or words that a record has for it."""
    return [{"name": name, "choices": [choice_of(entity) for entity in space.entities]}
            for name, space in task.config_space.space_map.items()]


def choice_of(entity):
    """What one choice of a knob is, for JSON: the parts of a split (-1: whatever is left), an
    order of loops, annotations, or one value."""
    for attribute in ("size", "perm", "anns"):
        if hasattr(entity, attribute):
            return [item if isinstance(item, str) else int(item)
                    for item in getattr(entity, attribute)]
    return [entity.val]
