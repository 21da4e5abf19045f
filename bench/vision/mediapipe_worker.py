"""Asked with lines "GRAPH<tab>PICTURE<tab>RUNS", runs one of MediaPipe's own graphs so often on a
picture, and answers with what its profiler counted: {"CALCULATOR": [microseconds, ...]}.

A calculator's times are those of its Process() calls, in whole microseconds, which the profiler
keeps as a histogram; so they come sorted.
"""

from __future__ import annotations

import glob
import json
import os
import sys
import tempfile
from collections import defaultdict

import mediapipe
import numpy as np
from google.protobuf.message import DecodeError
from mediapipe.framework import calculator_pb2, calculator_profile_pb2
from mediapipe.python import packet_creator
from mediapipe.python._framework_bindings import calculator_graph, validated_graph_config
from PIL import Image

_PACKAGES = os.path.dirname(os.path.dirname(mediapipe.__file__))
_LONGEST_US = 200_000
_SIDE_PACKETS = {
    "face_landmark/face_landmark_front_cpu": {
        "num_faces": 1, "with_attention": False, "use_prev_landmarks": False},
    "hand_landmark/hand_landmark_tracking_cpu": {
        "num_hands": 2, "model_complexity": 1, "use_prev_landmarks": False},
    "pose_landmark/pose_landmark_cpu": {
        "model_complexity": 1, "enable_segmentation": True, "smooth_landmarks": False,
        "smooth_segmentation": False, "use_prev_landmarks": False},
}


def run(graph_name: str, picture: str, runs: int) -> dict[str, list[int]]:
    image_name, _, model = picture.partition("#")
    image = np.asarray(Image.open(image_name).convert("RGB"))
    reader = validated_graph_config.ValidatedGraphConfig()
    reader.initialize(binary_graph_path=os.path.join(
        _PACKAGES, "mediapipe", "modules", f"{graph_name}.binarypb"))
    config = calculator_pb2.CalculatorGraphConfig()
    config.ParseFromString(reader.binary_config)
    side = dict(_SIDE_PACKETS.get(graph_name, {}))
    if graph_name.startswith("selfie"):
        side["model_selection"] = int(model or 0)
    with tempfile.TemporaryDirectory() as folder:
        profiler = config.profiler_config
        profiler.enable_profiler = profiler.trace_enabled = True
        profiler.trace_log_path = os.path.join(folder, "trace_")
        profiler.trace_log_count = 1
        profiler.histogram_interval_size_usec = 1
        profiler.num_histogram_intervals = _LONGEST_US
        graph = calculator_graph.CalculatorGraph(graph_config=config)
        graph.start_run({name: packet_creator.create_bool(value) if isinstance(value, bool)
                         else packet_creator.create_int(value) for name, value in side.items()})
        for i in range(runs):
            packet = packet_creator.create_image_frame(
                image_format=mediapipe.ImageFormat.SRGB, data=image)
            graph.add_packet_to_input_stream("image", packet.at(i * 33_333))
            graph.wait_until_idle()
        graph.close()
        del graph
        times: dict[str, list[int]] = defaultdict(list)
        for path in glob.glob(os.path.join(folder, "trace_*.binarypb")):
            profile = calculator_profile_pb2.GraphProfile()
            try:
                with open(path, "rb") as file:
                    profile.ParseFromString(file.read())
            except DecodeError:
                continue  # the part that was being written at the end
            for calculator in profile.calculator_profiles:
                counts = calculator.process_runtime.count
                times[calculator.name] += [us for us, count in enumerate(counts)
                                           for _ in range(count)]
    return dict(times)


def main() -> None:
    os.chdir(_PACKAGES)
    for line in sys.stdin:
        graph, picture, runs = line.rstrip("\n").split("\t")
        print(json.dumps(run(graph, picture, int(runs))), flush=True)


if __name__ == "__main__":
    main()
