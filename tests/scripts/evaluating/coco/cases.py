"""Annotations and detections as COCO writes them, of a seed: crowds, people without points, things
of all sizes, doubles, misses, equal scores, and categories that nothing is of."""

from __future__ import annotations

import numpy as np

#: name: (seed, what is judged)
CASES = {"boxes": (1, "bbox"), "few_boxes": (2, "bbox"), "crowded": (3, "bbox"),
         "people": (4, "keypoints"), "few_people": (5, "keypoints")}
_PICTURES = {1: 40, 2: 4, 3: 15, 4: 30, 5: 3}
_CROWDS = {1: 0.1, 2: 0.0, 3: 0.5, 4: 0.1, 5: 0.0}
CATEGORIES = [{"id": 3, "name": "ball"}, {"id": 7, "name": "robot"}, {"id": 11, "name": "nothing"}]
PERSON = [{"id": 1, "name": "person", "keypoints": [f"point{k}" for k in range(17)],
           "skeleton": []}]


def make_case(seed: int, kind: str) -> tuple[dict, list[dict]]:
    """(annotations, detections)."""
    random = np.random.default_rng(seed)
    people = kind == "keypoints"
    annotations, detections = [], []
    images = [{"id": number, "file_name": f"{number}.png", "width": 640, "height": 480}
              for number in range(1, _PICTURES[seed] + 1)]
    for image in images:
        for _ in range(int(random.integers(0, 9))):
            category = 1 if people else int(random.choice([3, 7]))
            side = np.exp(random.uniform(np.log(8), np.log(300), 2))
            box = [*random.uniform(0, 400, 2), *side]
            area = side.prod() * random.uniform(0.5, 1.0)
            points = _points(random, box)
            annotation = {"id": len(annotations) + 1, "image_id": image["id"],
                          "category_id": category, "bbox": _rounded(box),
                          "area": round(float(area), 2),
                          "iscrowd": int(random.random() < _CROWDS[seed])}
            if people:
                annotation["keypoints"] = points
                annotation["num_keypoints"] = sum(v > 0 for v in points[2::3])
            annotations.append(annotation)
            for _ in range(int(random.choice([0, 1, 2], p=[0.2, 0.6, 0.2]))):
                detections.append(_detection(random, annotation, people))
        for _ in range(int(random.integers(0, 4))):
            box = [*random.uniform(0, 500, 2), *random.uniform(5, 200, 2)]
            invented = {"image_id": image["id"], "category_id": 1 if people
                        else int(random.choice([3, 7, 11])), "bbox": box,
                        "keypoints": _points(random, box)}
            detections.append(_detection(random, invented, people))
    return {"info": {}, "images": images, "annotations": annotations,
            "categories": PERSON if people else CATEGORIES}, detections


def _rounded(values: list) -> list[float]:
    return [round(float(value), 2) for value in values]


def _points(random: np.random.Generator, box: list) -> list[float]:
    places = random.uniform(0, 1, (17, 2)) * box[2:] + box[:2]
    seen = random.choice([0, 1, 2], 17) if random.random() > 0.2 else np.zeros(17, int)
    return [value for (x, y), v in zip(places, seen)
            for value in (round(float(x), 2), round(float(y), 2), int(v))]


def _detection(random: np.random.Generator, of: dict, people: bool) -> dict:
    x, y, width, height = of["bbox"]
    spread = random.choice([0.02, 0.08, 0.25])
    # Two digits, so that some scores are equal.
    result = {"image_id": of["image_id"], "category_id": of["category_id"],
              "score": round(float(random.beta(3, 2) - spread / 2), 2),
              "bbox": _rounded([x + random.normal(0, spread) * width,
                                y + random.normal(0, spread) * height,
                                width * np.exp(random.normal(0, spread)),
                                height * np.exp(random.normal(0, spread))])}
    if people:
        size = (width * height) ** 0.5
        points = np.array(of["keypoints"], float).reshape(17, 3)
        points[:, :2] += random.normal(0, spread / 3, (17, 2)) * size
        points[:, 2] = 1
        result["keypoints"] = _rounded(points.ravel().tolist())
    return result
