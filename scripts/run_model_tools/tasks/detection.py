"""What a description of detections may say."""

from __future__ import annotations

from run_model_tools.tasks.fields import Field

FORMS = ("ssd", "yolo-rows", "yolo-heads", "yolo-v8", "boxes", "box-rows", "distances",
         "centers")
ACTIVATIONS = ("none", "sigmoid", "softmax")
UNITS = ("pixels", "normalized")
BOX_FORMATS = ("xyxy", "yxyx", "xywh", "cxcywh", "cycxhw")
_COMMON = ("kind", "form", "labels", "activation", "score_clip", "background", "classes_per_box",
           "score_threshold", "candidates", "nms", "limit", "clip", "keypoints", "region",
           "masks", "angle")


def output_field(field: Field) -> None:
    """An output by its name or number."""
    if isinstance(field.value, str):
        if not field.value:
            field.fail("is empty, where the name or number of an output is expected")
    else:
        field.whole()


def check_detection(task: Field) -> None:
    form = task.member("form").one_of(*FORMS)
    _FORMS[form](task)
    _check_keypoints(task, form)
    _check_masks(task, form)
    _check_angle(task, form)
    task.check(Field.positive, "score_clip")
    task.check(Field.whole, "background", "candidates")
    task.check(lambda field: field.one_of("best", "every"), "classes_per_box")
    task.check(lambda field: field.one_of("none", "input", "picture"), "clip")
    task.member("score_threshold").share()
    _check_nms(task, form)
    task.check(lambda field: field.whole(1), "limit")


def _check_ssd(task: Field) -> None:
    task.refuse_others((*_COMMON, "boxes", "scores", "anchors", "x_scale", "y_scale", "w_scale",
                        "h_scale", "box_format", "exponential", "size_limit", "box_offset"))
    output_field(task.member("boxes"))
    output_field(task.member("scores"))
    _check_anchors(task.member("anchors"))
    for key in ("x_scale", "y_scale", "w_scale", "h_scale"):
        task.member(key).positive()
    task.member("box_format").one_of("cxcywh", "cycxhw")
    task.member("exponential").boolean()
    task.check(Field.positive, "size_limit")
    task.check(Field.whole, "box_offset")
    task.member("activation").one_of(*ACTIVATIONS)


def _check_heads(task: Field) -> None:
    task.refuse_others((*_COMMON, "outputs", "anchors", "coding", "scale_xy", "layout"))
    outputs = task.member("outputs").list_of(output_field, 1)
    anchors = task.member("anchors")
    lists = anchors.list_of(
        lambda one: one.list_of(lambda pair: pair.exactly(2, Field.positive), 1))
    if len(lists) != len(outputs):
        anchors.fail("has not one list for each of the outputs")
    coding = task.member("coding").one_of("v3", "v5")
    scale = task.find("scale_xy")
    if scale:
        if coding == "v5":
            scale.fail("has a meaning with the coding v3 only")
        scale.positive()
    task.member("layout").one_of("NCHW", "NHWC")
    if "keypoints" in task.object():
        task.member("keypoints").fail("has no meaning with the form yolo-heads")
    _check_activation(task)


def _check_rows(task: Field) -> None:
    task.refuse_others((*_COMMON, "output", "units", "objectness", "strides"))
    strides = task.find("strides")
    if strides:
        strides.list_of(Field.side, 1)
        if task.member("units").one_of(*UNITS) != "pixels":
            task.member("units").fail("is not 'pixels', which rows that are not decoded have")
    task.check(Field.boolean, "objectness")
    _check_one_output(task)


def _check_v8(task: Field) -> None:
    task.refuse_others((*_COMMON, "output", "units"))
    _check_one_output(task)


def _check_boxes(task: Field) -> None:
    task.refuse_others((*_COMMON, "boxes", "scores", "classes", "count", "box_format", "units"))
    for key in ("boxes", "scores"):
        output_field(task.member(key))
    task.check(output_field, "classes", "count")
    task.member("box_format").one_of(*BOX_FORMATS)
    task.member("units").one_of(*UNITS)
    _check_activation(task)


def _check_distances(task: Field) -> None:
    offsets = ("bins", "box_offset", "score_offset", "classes")
    task.refuse_others((*_COMMON, "boxes", "scores", "centerness", "strides", "point_offset",
                        "distances", *offsets))
    for key in ("boxes", "scores"):
        output_field(task.member(key))
    task.check(output_field, "centerness")
    task.member("strides").list_of(Field.side, 1)
    task.member("point_offset").number()
    task.member("distances").one_of("cells", "pixels")
    task.check(Field.whole, *offsets)
    if "keypoints" in task.object():
        task.member("keypoints").fail("has no meaning with the form distances")
    task.member("activation").one_of(*ACTIVATIONS)


def _check_centers(task: Field) -> None:
    task.refuse_others((*_COMMON, "heatmap", "sizes", "offsets", "layout", "order", "size_unit"))
    for key in ("heatmap", "sizes"):
        output_field(task.member(key))
    task.check(output_field, "offsets")
    task.member("layout").one_of("NCHW", "NHWC")
    task.member("order").one_of("xy", "yx")
    task.member("size_unit").one_of("cells", "pixels")
    for key in ("keypoints", "classes_per_box"):
        if key in task.object():
            task.member(key).fail("has no meaning with the form centers")
    task.member("activation").one_of("none", "sigmoid")


def _check_box_rows(task: Field) -> None:
    task.refuse_others((*_COMMON, "output", "box_format", "units"))
    task.member("box_format").one_of(*BOX_FORMATS)
    _check_one_output(task)


_FORMS = {"ssd": _check_ssd, "yolo-rows": _check_rows, "yolo-heads": _check_heads,
          "yolo-v8": _check_v8, "boxes": _check_boxes, "box-rows": _check_box_rows,
          "distances": _check_distances, "centers": _check_centers}


def _check_one_output(task: Field) -> None:
    output_field(task.member("output"))
    task.member("units").one_of(*UNITS)
    _check_activation(task)


def _check_activation(task: Field) -> None:
    task.check(lambda field: field.one_of(*ACTIVATIONS), "activation")


def _check_keypoints(task: Field, form: str) -> None:
    keypoints = task.find("keypoints")
    if not keypoints:
        return
    keypoints.refuse_others(("count", "values", "offset", "output", "scores"))
    keypoints.member("count").whole(1, 1000)
    keypoints.check(lambda field: field.whole(2, 3), "values")
    if "offset" in keypoints.object() and form != "ssd":
        keypoints.member("offset").fail("has a meaning with the form ssd only")
    keypoints.check(Field.whole, "offset")
    if form == "boxes":
        output_field(keypoints.member("output"))
        keypoints.check(output_field, "scores")
        return
    for key in ("output", "scores"):
        if key in keypoints.object():
            keypoints.member(key).fail("has a meaning with the form boxes only")


def _check_masks(task: Field, form: str) -> None:
    masks = task.find("masks")
    if not masks:
        return
    output_field(masks.member("output"))
    masks.check(Field.boolean, "drop_empty")
    if form == "boxes":
        masks.refuse_others(("output", "drop_empty", "threshold"))
        masks.check(Field.share, "threshold")
        return
    masks.refuse_others(("output", "drop_empty", "count", "layout"))
    if form not in ("yolo-rows", "yolo-v8", "box-rows"):
        masks.fail("has a meaning with the forms yolo-rows, yolo-v8, boxes and box-rows only")
    masks.member("count").whole(1, 4096)
    masks.member("layout").one_of("NCHW", "NHWC")


def _check_angle(task: Field, form: str) -> None:
    angle = task.find("angle")
    if not angle:
        return
    angle.refuse_others(("unit", "direction"))
    ready = form in ("boxes", "box-rows")
    if not ready and form not in ("yolo-rows", "yolo-v8"):
        angle.fail("has a meaning with the forms yolo-rows, yolo-v8, boxes and box-rows only")
    if ready and task.value["box_format"] != "cxcywh":
        task.member("box_format").fail("is not 'cxcywh', which boxes with an angle have")
    for key in ("keypoints", "masks", "clip"):
        if key in task.object():
            task.member(key).fail("cannot be there beside an angle")
    angle.member("unit").one_of("radians", "degrees")
    angle.member("direction").one_of("clockwise", "counter-clockwise")


def _check_nms(task: Field, form: str) -> None:
    # Only what may be suppressed already, or is by its form, can go without a word about it.
    if form in ("boxes", "box-rows", "centers") and "nms" not in task.object():
        return
    nms = task.member("nms")
    if nms.value is None:
        return
    nms.refuse_others(("iou", "mode", "per_class", "overlap"))
    nms.member("iou").share()
    nms.member("per_class").boolean()
    mode = nms.find("mode")
    name = mode.one_of("hard", "weighted", "fast") if mode else "hard"
    if task.find("angle"):
        nms.member("overlap").one_of("area", "probabilistic")
        if mode and name == "weighted":
            mode.fail("is 'weighted', and boxes with an angle have no mean")
    elif "overlap" in nms.object():
        nms.member("overlap").fail("has a meaning with an angle only")


def _check_anchors(anchors: Field) -> None:
    generator = anchors.member("generator").one_of("mediapipe", "torchvision", "pyramid", "list")
    if generator == "mediapipe":
        _check_mediapipe_anchors(anchors)
    elif generator == "torchvision":
        _check_torchvision_anchors(anchors)
    elif generator == "pyramid":
        _check_pyramid_anchors(anchors)
    else:
        anchors.refuse_others(("generator", "boxes"))
        for box in anchors.member("boxes").items():
            if min(box.exactly(4, Field.number)[2:]) <= 0:
                box.fail("has a side that is not more than 0")


def _size(field: Field) -> None:
    field.exactly(2, Field.side)


def _check_mediapipe_anchors(anchors: Field) -> None:
    flags = ("reduce_boxes_in_lowest_layer", "fixed_anchor_size")
    numbers = ("anchor_offset_x", "anchor_offset_y", "interpolated_scale_aspect_ratio")
    anchors.refuse_others(("generator", "input_width", "input_height", "min_scale", "max_scale",
                           "num_layers", "strides", "feature_maps", "aspect_ratios", *flags,
                           *numbers))
    for key in ("input_width", "input_height"):
        anchors.member(key).side()
    for key in ("min_scale", "max_scale"):
        anchors.member(key).positive()
    strides = anchors.member("strides").list_of(Field.side, 1)
    layers, maps = anchors.find("num_layers"), anchors.find("feature_maps")
    if layers and layers.whole(1, 65535) != len(strides):
        layers.fail(f"is not the number of strides, {len(strides)}")
    if maps and len(maps.list_of(_size)) != len(strides):
        maps.fail("has not one size for each of the strides")
    anchors.member("aspect_ratios").list_of(Field.positive)
    anchors.check(Field.boolean, *flags)
    anchors.check(Field.number, *numbers)


def _check_torchvision_anchors(anchors: Field) -> None:
    anchors.refuse_others(("generator", "input_width", "input_height", "feature_maps",
                           "aspect_ratios", "min_ratio", "max_ratio", "scales", "steps", "clip"))
    maps = len(anchors.member("feature_maps").list_of(_size, 1))
    ratios = anchors.member("aspect_ratios")
    if len(ratios.list_of(lambda one: one.list_of(Field.positive))) != maps:
        ratios.fail("has not one list for each of the feature maps")
    anchors.check(Field.number, "min_ratio", "max_ratio")
    anchors.check(Field.boolean, "clip")
    scales, steps = anchors.find("scales"), anchors.find("steps")
    if scales and len(scales.list_of(Field.positive)) != maps + 1:
        scales.fail("has not one number more than there are feature maps")
    if steps:
        if len(steps.list_of(Field.positive)) != maps:
            steps.fail("has not one number for each feature map")
        for key in ("input_width", "input_height"):
            anchors.member(key).side()


def _check_pyramid_anchors(anchors: Field) -> None:
    anchors.refuse_others(("generator", "feature_maps", "sizes", "aspect_ratios", "offset",
                           "round", "outer"))
    maps = len(anchors.member("feature_maps").list_of(_size, 1))
    for key in ("sizes", "aspect_ratios"):
        lists = anchors.member(key)
        if len(lists.list_of(lambda one: one.list_of(Field.positive, 1))) != maps:
            lists.fail("has not one list for each of the feature maps")
    anchors.check(Field.number, "offset")
    anchors.check(Field.boolean, "round")
    anchors.check(lambda field: field.one_of("ratios", "sizes"), "outer")
