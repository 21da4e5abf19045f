"""evaluate_model from command line to report, with a program in run_model's place that says what a
file tells it to: so that every answer, and every way to go wrong, is known beforehand."""

from __future__ import annotations

import json
import math
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, run_command
from PIL import Image

from run_model_tools.evaluating import evaluate_model
from run_model_tools.evaluating.comparison import mcnemar
from run_model_tools.evaluating.run_lengths import mask_of
from run_model_tools.progress import Counted
from run_model_tools.zoo.reference_pixels import coco_counts

# Answers as run_model does: says.json has what it says of each picture's name.
STAND_IN = """#!{python}
import json, os, shutil, sys, time
here = os.path.dirname(os.path.abspath(__file__))
says = json.load(open(os.path.join(here, "says.json")))
if "--inspect" in sys.argv:
    if "inspect" in says:
        print(json.dumps(says["inspect"])); sys.exit(3)
    print(json.dumps({{"artifact": {{"library": here + "/model.so", "graph": None, "params": None,
                                    "metadata": here + "/metadata.json",
                                    "target": "native"}}}}))
    sys.exit(0)
if "start" in says:
    sys.stderr.write("run_model: " + says["start"] + "\\n"); sys.exit(6)
for line in sys.stdin:
    path = line.rstrip("\\n")
    with open(os.path.join(here, "asked"), "a") as file:
        file.write(os.path.basename(path) + "\\n")
    answer = says[os.path.basename(path)]
    if answer == "die":
        os.kill(os.getpid(), 11)
    if answer == "hang":
        time.sleep(60)
    time.sleep(says.get("delay", 0))
    for flag, member, ending in (("--save-map", "map", ".npy"), ("--draw", "drawn", ".png")):
        if flag in sys.argv and "copy" in answer:
            written = sys.argv[sys.argv.index(flag) + 1] + "/" + answer["copy"]
            shutil.copy(os.path.join(here, answer["copy"]), written)
            answer[member] = {{"path": written}} if member == "map" else written
    print(json.dumps({{"image": {{"path": path}}, **answer}}), flush=True)
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with pictures a.png to f.png, an artifact, and run_model's stand-in."""
    monkeypatch.setattr(evaluate_model, "BUILD_DIR", tmp_path)
    for name in "abcdef":
        Image.new("RGB", (8, 6), (ord(name), 0, 0)).save(tmp_path / f"{name}.png")
    (tmp_path / "model.so").write_bytes(b"library")
    (tmp_path / "metadata.json").write_text(json.dumps(
        {"tasks": [{"kind": "detection"}, {"kind": "segmentation"}]}))
    program = tmp_path / "run_model"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    return tmp_path


def say(world: Path, **answers: Any) -> None:
    pictures = {f"{name}.png" if len(name) == 1 else name: answer
                for name, answer in answers.items()}
    (world / "says.json").write_text(json.dumps(pictures))


def classes(*indices: int) -> dict[str, Any]:
    return {"top": [{"index": i, "label": f"l{i}", "probability": 0.5 / (k + 1)}
                    for k, i in enumerate(indices)]}


def arguments(world: Path, dataset: str, *flags: object) -> list[str]:
    return ["evaluate_model", "net", str(world), "--dataset", dataset, "--program",
            str(world / "run_model"), *map(str, flags)]


def evaluate(world: Path, dataset: str, *flags: object) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments(world, dataset, *flags))


def report(world: Path, dataset: str, *flags: object, code: int = 0) -> dict[str, Any]:
    done = evaluate(world, dataset, "--json", "--resume", world / "run.sqlite", *flags)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def write_csv(world: Path, *lines: str) -> str:
    (world / "list.csv").write_text("\n".join(lines) + "\n")
    return f"csv:{world / 'list.csv'}"


@pytest.fixture
def classified(world: Path) -> str:
    """Of six pictures three are right at once, one is the second best, one is not among the best,
    and one is the fifth."""
    say(world, a=classes(0, 1), b=classes(1, 0), c=classes(2, 9), d=classes(0, 3), e=classes(7, 8),
        f=classes(9, 8, 7, 6, 5))
    return write_csv(world, "picture,class", *(f"{n}.png,{i}" for i, n in enumerate("abcdef")))


@pytest.mark.parametrize("jobs", [1, 3])
def test_classes(world: Path, classified: str, jobs: int) -> None:
    result = report(world, classified, "--jobs", jobs)
    assert result["schema_version"] == 1 and result["kind"] == "classification"
    assert result["figures"] == {"pictures": 6, "top1": 3 / 6, "top5": 5 / 6}
    assert result["judged"] == 6 and result["failed"] == []


def test_text_for_people_and_a_quiet_pipe(world: Path, classified: str) -> None:
    done = evaluate(world, classified, "--resume", world / "run.sqlite")
    assert done.returncode == 0 and done.stderr == ""
    assert "top-1" in done.stdout and "50.00 %" in done.stdout and "83.33 %" in done.stdout


def test_resume_asks_for_nothing_twice(world: Path, classified: str) -> None:
    report(world, classified, "--jobs", 1)
    before = (world / "asked").read_text()
    assert report(world, classified)["timing"]["pictures_now"] == 0
    assert (world / "asked").read_text() == before


def test_what_was_done_before_a_kill_is_kept(world: Path, classified: str) -> None:
    says = json.loads((world / "says.json").read_text())
    (world / "says.json").write_text(json.dumps({**says, "delay": 0.25}))
    file = world / "run.sqlite"
    program, *given = arguments(world, classified, "--resume", file, "--jobs", 1)
    with subprocess.Popen([ROOT / "scripts" / program, *given], start_new_session=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 30
        while time.monotonic() < end and rows(file) < 2:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    done = rows(file)
    assert 2 <= done < 6
    result = report(world, classified)
    assert result["timing"]["pictures_now"] == 6 - done
    assert result["figures"] == {"pictures": 6, "top1": 3 / 6, "top5": 5 / 6}


@pytest.mark.parametrize("room", [8192, 40000])
def test_a_full_disk(world: Path, classified: str, room: int) -> None:
    """Nothing can be kept from the beginning, or from some picture on."""
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    given = arguments(world, classified, "--resume", world / "run.sqlite")
    done = subprocess.run([ROOT / "scripts" / given[0], *given[1:]], preexec_fn=limit, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 8, done.stderr
    assert "make room and go on with --resume" in done.stderr
    again = evaluate(world, classified, "--resume", world / "run.sqlite")
    assert again.returncode == 0 and "6 of 6 pictures" in again.stdout, again.stderr


def rows(file: Path) -> int:
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT count(*) FROM results").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def detections(*rows: tuple) -> dict[str, Any]:
    return {"results": [{"kind": "detection", "detections": [
        {"box": list(box), "class": index, "label": label, "score": score}
        for label, index, score, *box in rows]}]}


def test_boxes_of_a_csv_file(world: Path) -> None:
    """Found by name whatever the order of the network's classes; what is called otherwise is
    counted and left out."""
    say(world, a=detections(("ball", 1, 0.9, 0, 0, 4, 4), ("tree", 5, 0.9, 0, 0, 1, 1)),
        b=detections(), c=detections(("robot", 0, 0.8, 1, 1, 3, 5)))
    data = write_csv(world, "picture,class,x0,y0,x1,y1", "a.png,ball,0,0,4,4", "b.png,,,,,",
                     "c.png,robot,1,1,3,5", "c.png,ball,4,1,6,3")
    result = report(world, data)
    assert {one["name"]: one["ap"] for one in result["figures"]["categories"]} == {
        "ball": pytest.approx(51 / 101), "robot": pytest.approx(1)}
    assert result["figures"]["detections_of_other_classes"] == 1


@pytest.mark.parametrize("marked, code", [((8, 6), 0), ((16, 12), 7), ((6, 8), 7), (None, 0)])
def test_pictures_of_another_size_than_the_data_sets(world: Path, marked: tuple[int, int] | None,
                                                     code: int) -> None:
    """Scaled copies of a data set's pictures would only lower the figures."""
    say(world, a={"width": 8, "height": 6, **detections(("ball", 0, 0.9, 0, 0, 4, 4))})
    sides = {} if marked is None else {"width": marked[0], "height": marked[1]}
    (world / "coco.json").write_text(json.dumps({
        "images": [{"id": 1, "file_name": "a.png", **sides}],
        "categories": [{"id": 7, "name": "ball"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 7, "bbox": [0, 0, 4, 4]}]}))
    done = evaluate(world, f"coco:{world / 'coco.json'}:{world}")
    assert done.returncode == code, done.stderr
    if code:
        assert marked and f"8 x 6 pixels, and {marked[0]} x {marked[1]} by the" in done.stderr
    else:
        assert "mAP of boxes, 0.50 to 0.95       100.00 %" in done.stdout


def run_lengths(mask: np.ndarray) -> dict[str, Any]:
    flat = mask.T.ravel()
    changes = np.flatnonzero(np.diff(flat)) + 1
    lengths = np.diff(np.concatenate([[0], changes, [flat.size]])).tolist()
    return {"size": list(mask.shape), "counts": ([0] if flat[0] else []) + lengths}


def test_areas(world: Path) -> None:
    truth = np.zeros((6, 8), np.uint8)
    truth[:, 4:], truth[0, 0] = 1, 255
    Image.fromarray(truth).save(world / "a_mask.png")
    found = np.zeros((6, 8), np.uint8)
    found[:, 6:] = 1
    say(world, a={"results": [{"kind": "segmentation", "height": 6, "width": 8, "classes": [
        {"class": k, "rle": run_lengths(found == k)} for k in (0, 1)]}]})
    result = report(world, write_csv(world, "picture,mask", "a.png,a_mask.png"))
    assert result["figures"]["iou"] == [23 / 35, 12 / 24]
    assert result["figures"]["pixel_accuracy"] == 35 / 47
    for task, name in (({"form": "scores", "labels": ["field", "line"]}, "line"),
                       ({"form": "mask", "labels": ["hand"]}, "hand"), ({}, None)):
        (world / "metadata.json").write_text(json.dumps(
            {"tasks": [{"kind": "segmentation", **task}]}))
        text = evaluate(world, f"csv:{world / 'list.csv'}").stdout
        assert f"IoU of 1{f', {name}' if name else ''}  " in text


def pairs_of(world: Path, kind: str, truths: dict[str, np.ndarray]) -> str:
    """--dataset of the pictures of these names."""
    for folder in ("pictures", "truths"):
        (world / folder).mkdir(exist_ok=True)
    for name, truth in truths.items():
        (world / f"{name}.png").rename(world / "pictures" / f"{name}.png")
        Image.fromarray(truth).save(world / "truths" / f"{name}.png")
    return f"{kind}:{world / 'pictures'}:{world / 'truths'}"


def test_depth(world: Path) -> None:
    """One picture is right once it is aligned; of the other half the pixels are twice as far."""
    truth = np.full((6, 8), 2000, np.uint16)
    truth[:, 4:] = 4000
    data = pairs_of(world, "maps", {"a": truth, "b": truth})
    task = {"kind": "map", "output": 0, "quantity": "depth", "unit": "m"}
    (world / "metadata.json").write_text(json.dumps({"tasks": task}))
    np.save(world / "right.npy", truth.astype(np.float32) / 500)
    np.save(world / "wrong.npy", np.full(truth.shape, 4, np.float32))
    answer = {"results": [{"kind": "map"}]}
    say(world, a={**answer, "copy": "right.npy"}, b={**answer, "copy": "wrong.npy"})
    result = report(world, data)
    assert result["kind"] == "map" and result["rules"]["depth"]["alignment"] == "none"
    figures = result["figures"]
    assert figures["abs_rel"] == pytest.approx((1 + 0.5) / 2) and figures["delta1"] == 0.25
    aligned = evaluate(world, data, "--align", "median", "--resume", world / "aligned.sqlite")
    assert "each picture aligned first: median" in aligned.stdout, aligned.stderr
    assert re.search(r"AbsRel.* 18\.75 %", aligned.stdout)  # of 3 instead of 2 and 4
    done = evaluate(world, data, "--align", "median", "--resume", world / "run.sqlite")
    assert done.returncode == 6 and "its rules is" in done.stderr
    task["quantity"] = "other"
    (world / "metadata.json").write_text(json.dumps({"tasks": task}))
    done = evaluate(world, data, "--align", "median")
    assert done.returncode == 2 and "--align has no meaning for the task's quantity other" in \
        done.stderr


def test_images(world: Path) -> None:
    truth = np.random.default_rng(1).integers(0, 250, (12, 14, 3), np.uint8)
    data = pairs_of(world, "images", {"a": truth, "b": truth, "c": truth})
    (world / "metadata.json").write_text(json.dumps({"tasks": {"kind": "image"}}))
    Image.fromarray(truth).save(world / "same.png")
    Image.fromarray(truth + np.uint8(5)).save(world / "lighter.png")
    Image.fromarray(truth[:, 1:]).save(world / "narrow.png")
    answer = {"results": [{"kind": "image", "unseen": 0}]}
    say(world, a={**answer, "copy": "same.png"}, b={**answer, "copy": "lighter.png"},
        c={**answer, "copy": "narrow.png"})
    result = report(world, data, code=7)
    assert result["figures"]["equal"] == 1
    assert result["figures"]["psnr"] == pytest.approx(10 * math.log10(255 ** 2 / 25))
    assert 0.99 < result["figures"]["ssim"] < 1
    assert "14 x 12 pixels, and the network gives 13 x 12" in result["failed"][0]["error"]


def test_pictures_without_a_result_are_named_and_the_rest_is_done(world: Path,
                                                                  classified: str) -> None:
    says = json.loads((world / "says.json").read_text())
    says |= {"b.png": {"error": {"code": 7, "name": "picture", "message": "b.png is broken"}},
             "d.png": "die"}
    (world / "says.json").write_text(json.dumps(says))
    done = evaluate(world, classified, "--json", "--jobs", 1, "--resume", world / "run.sqlite")
    assert done.returncode == 7
    assert "2 of 6 pictures gave no result" in done.stderr and "b.png is broken" in done.stderr
    result = json.loads(done.stdout)
    assert [one["picture"] for one in result["failed"]] == ["b.png", "d.png"]
    assert result["figures"] == {"pictures": 4, "top1": 2 / 4, "top5": 3 / 4}


def test_a_picture_that_takes_too_long(world: Path, classified: str) -> None:
    says = json.loads((world / "says.json").read_text())
    (world / "says.json").write_text(json.dumps({**says, "a.png": "hang"}))
    result = report(world, classified, "--timeout", 2, "--jobs", 1, code=7)
    assert [one["picture"] for one in result["failed"]] == ["a.png"]


def test_comparing_two_runs(world: Path, classified: str) -> None:
    report(world, classified)
    says = json.loads((world / "says.json").read_text())
    says |= {"a.png": classes(5), "b.png": classes(5), "d.png": classes(3)}
    (world / "says.json").write_text(json.dumps(says))
    done = evaluate(world, classified, "--resume", world / "after.sqlite")
    assert done.returncode == 0
    compared = run_command("evaluate_model", "--compare", world / "run.sqlite",
                           world / "after.sqlite", "--json")
    assert compared.returncode == 0, compared.stderr
    result = json.loads(compared.stdout)
    assert result["lost"] == ["a.png", "b.png"] and result["won"] == ["d.png"]
    assert result["changed"] == 3 and result["right"] == {"before": 3, "after": 2}
    # Of three changes, 0 or 1 (or 2 or 3) in one direction: certain.
    assert result["mcnemar_p"] == 1.0 and not result["significant"]


def cases() -> list[tuple[str, Callable[[Path], str], int, str]]:
    def csv_of(*lines: str) -> Callable[[Path], str]:
        return lambda world: write_csv(world, *lines)

    def coco_of(root: Any) -> Callable[[Path], str]:
        def write(world: Path) -> str:
            (world / "a.json").write_text(root if isinstance(root, str) else json.dumps(root))
            return f"coco:{world / 'a.json'}:{world}"
        return write

    image, category = {"id": 1, "file_name": "a.png"}, {"id": 1, "name": "ball"}
    thing = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 2, 2]}
    whole = {"images": [image], "categories": [category], "annotations": [thing]}
    return [
        ("form", lambda _: "photos", 2, "is not of the form"),
        ("no file", lambda w: f"csv:{w}/none.csv", 3, "none.csv cannot be read"),
        ("columns", csv_of("file,label", "a.png,1"), 4, "has the columns file, label"),
        ("twice", csv_of("picture,class", "a.png,1", "a.png,2"), 4, "in lines 2 and 3"),
        ("two names", csv_of("picture,class", "a.png,1", "./a.png,1"), 4, "twice"),
        ("name", csv_of("picture,class", "a.png,cat"), 4, "'cat' is neither"),
        ("missing", csv_of("picture,class", "a.png,1", "z.png,1"), 3, "1 of the 2 pictures"),
        ("box", csv_of("picture,class,x0,y0,x1,y1", "a.png,ball,5,0,1,1"), 4, "line 2"),
        ("json", coco_of("{"), 4, "is not JSON"),
        ("no object", coco_of([]), 4, "no JSON object"),
        ("images", coco_of({**whole, "images": [image, {**image, "id": 2}]}), 4, "same file"),
        ("image ids", coco_of({**whole, "images": [image, {**image, "file_name": "b.png"}]}), 4,
         "two images have the id 1"),
        ("stray", coco_of({**whole, "annotations": [{**thing, "image_id": 9}]}), 4, "image 9"),
        ("category", coco_of({**whole, "annotations": [{**thing, "category_id": 9}]}), 4,
         "category 9"),
        ("bbox", coco_of({**whole, "annotations": [{**thing, "bbox": [0, 0, -1, 2]}]}), 4,
         "-1 x 2"),
        ("imagenet", lambda w: f"imagenet:{w}", 4, "neither folders of classes"),
        ("masks", lambda w: f"voc-masks:{w}", 3, "JPEGImages is no folder"),
        ("pairs", lambda w: f"maps:{w}", 2, "is not of the form"),
        ("truths", lambda w: f"maps:{w}:{w}/none", 3, "none is no folder"),
        ("alone", lambda w: pairs_of(w, "maps", {"a": np.ones((6, 8), np.uint8)}).replace(
            "pictures", ""), 3, "truths has no file for"),
        ("suffixes", lambda w: f"images:{w}:{(w / 'a.jpg').write_bytes(b'') and w or w}", 4,
         "differ in their suffix only")]


@pytest.mark.parametrize("dataset, code, part", [case[1:] for case in cases()],
                         ids=[case[0] for case in cases()])
def test_data_sets_that_cannot_be_used(world: Path, dataset: Callable[[Path], str], code: int,
                                       part: str) -> None:
    say(world, a=classes(1))
    done = evaluate(world, dataset(world), "--resume", world / "run.sqlite")
    assert done.returncode == code and part in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and not (world / "run.sqlite").exists()


def test_missing_files_may_be_left_out(world: Path) -> None:
    say(world, a=classes(1))
    data = write_csv(world, "picture,class", "a.png,1", "z.png,1")
    result = report(world, data, "--allow-missing")
    assert result["missing_files_left_out"] == 1 and result["figures"]["top1"] == 1


def test_a_run_of_something_else_is_not_gone_on_with(world: Path, classified: str) -> None:
    report(world, classified)
    (world / "model.so").write_bytes(b"another library")
    done = evaluate(world, classified, "--resume", world / "run.sqlite")
    assert done.returncode == 6 and "holds another run: its artifact is" in done.stderr
    other = write_csv(world, "picture,class", "a.png,1")
    done = evaluate(world, other, "--resume", world / "run.sqlite")
    assert done.returncode == 6 and "dataset fingerprint" in done.stderr


@pytest.mark.parametrize("contents", [b"not a database at all, but a text of some length" * 30,
                                      None])
def test_other_files_are_no_results(world: Path, classified: str, contents: bytes | None) -> None:
    file = world / "run.sqlite"
    if contents is None:
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE results (key TEXT)")
    else:
        file.write_bytes(contents)
    before = file.read_bytes()
    done = evaluate(world, classified, "--resume", file)
    assert done.returncode == 4 and "no SQLite file of evaluate_model" in done.stderr
    assert file.read_bytes() == before


def test_what_run_model_refuses_is_said_in_its_words(world: Path, classified: str) -> None:
    say(world, start="the artifact is for another CPU", a=0)
    done = evaluate(world, classified)
    assert done.returncode == 6 and "the artifact is for another CPU" in done.stderr
    say(world, inspect={"error": {"code": 3, "name": "missing", "message": "there is no net"}})
    done = evaluate(world, classified)
    assert done.returncode == 3 and "there is no net" in done.stderr


def test_kinds_that_the_network_does_not_have(world: Path) -> None:
    say(world, a=classes(1))
    data = write_csv(world, "picture,class,x0,y0,x1,y1", "a.png,ball,0,0,1,1")
    (world / "metadata.json").write_text(json.dumps({"tasks": {"kind": "segmentation"}}))
    done = evaluate(world, data)
    assert done.returncode == 6 and done.stderr.count("\n") == 1
    assert "a task of the kind detection, and net has segmentation" in done.stderr
    (world / "metadata.json").write_text(json.dumps({"tasks": {"kind": "detection"}}))
    done = evaluate(world, data)
    assert done.returncode == 6 and "the network finds no things" in done.stderr
    data = write_csv(world, "picture,class," + ",".join(f"x{k},y{k}" for k in range(4)),
                     "a.png,ball,0,0,1,0,1,1,0,1")
    done = evaluate(world, data)
    assert done.returncode == 6 and done.stderr.count("\n") == 1
    assert "is for turned boxes, and net gives none: its detection has no member 'angle'" in \
        done.stderr


def test_mcnemar_is_the_binomial_test() -> None:
    """Against the sums of binomial coefficients in whole numbers."""
    for lost, won in ((0, 0), (1, 0), (0, 6), (3, 12), (40, 70), (900, 1100)):
        n, few = lost + won, min(lost, won)
        exact = min(1.0, 2 * sum(math.comb(n, k) for k in range(few + 1)) / 2 ** n)
        assert mcnemar(lost, won) == pytest.approx(exact, rel=1e-9)


def test_run_lengths_are_cocos() -> None:
    """A mask by hand, and others back and forth through the zoo's own writer."""
    mask = np.array([[0, 1, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0]], bool)
    np.testing.assert_array_equal(
        mask_of({"size": [4, 3], "counts": [2, 1, 1, 3, 1, 1, 3]}), mask)
    random = np.random.default_rng(4)
    for size, share in (((4, 3), 0.5), ((480, 640), 0.001), ((300, 200), 0.5), ((70, 5), 1.0)):
        mask = random.random(size) < share
        np.testing.assert_array_equal(
            mask_of({"size": list(size), "counts": coco_counts(mask)}), mask)
    for wrong in ({"size": [2, 2], "counts": "?"}, {"size": [2, 2], "counts": [1, 1]},
                  {"size": [2, 2], "counts": [-1, 5]}, {"size": 4, "counts": []}, {}):
        with pytest.raises(ValueError):
            mask_of(wrong)


def test_the_line_of_progress():
    counted = Counted(200, "pictures")
    for _ in range(50):
        counted.one_more()
    assert counted.line(25) == "50 of 200 pictures, 2 a second, 75 s left"
    assert counted.line(5000).endswith("4.2 hours left")
