"""Files of tuning records: what is a record, which stays, what a cut line does."""

import base64
import json
import zlib

import pytest

from run_model_tools.tuning import records as tuning_records

LAYER = [["TENSOR", [1, 3, 8, 8], "float32"], ["TENSOR", [4, 3, 3, 3], "float32"], [1, 1],
         [1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32"]


def line(seconds, channels=4, target="llvm -keys=cpu", error=0, block=4):
    layer = json.loads(json.dumps(LAYER))
    layer[1][1][0] = channels
    return json.dumps({
        "input": [target, "conv2d_NCHWc.x86", layer, {}],
        "config": {"index": 1, "code_hash": None, "entity": [["tile_oc", "sp", [-1, block]]]},
        "result": [seconds, error, 0.5, 1.0], "version": 0.2, "tvm_version": "0.18.0"})


def test_a_line_of_autotvm():
    record = tuning_records.parse(line([0.003, 0.002]))
    assert (record.kind, record.template, record.target) == (
        "autotvm", "conv2d_NCHWc.x86", "llvm -keys=cpu")
    assert record.seconds == 0.002
    assert record.key == tuning_records.workload_key("conv2d_NCHWc.x86", LAYER)


def test_a_line_of_the_auto_scheduler():
    text = json.dumps({"i": [["[\"abc\", [1, 3]]", "llvm -keys=cpu", [1], "", 1, []], [[], []]],
                       "r": [[0.5, 0.25], 0, 1.0, 2], "v": "v0.6"})
    record = tuning_records.parse(text)
    assert (record.kind, record.key, record.seconds) == ("auto_scheduler", "[\"abc\", [1, 3]]",
                                                         0.25)


@pytest.mark.parametrize("text", [
    "", "{", "[]", "7", "null", "{}", line([0.001])[:-20], line([1e9], error=4), line([1e9]),
    line([0.0]), line([]), line(["x"]), line([0.001]).replace('"version": 0.2', '"version": 0.1'),
    '{"i": [], "r": []}', '{"workload": 3}',
])
def test_what_is_no_record_of_a_run_that_succeeded(text):
    assert tuning_records.parse(text) is None


def test_reading_counts_what_it_cannot_read(tmp_path):
    path = tmp_path / "log"
    path.write_text("# {\"threads\": 2}\n" + line([0.1]) + "\n\n# a remark\n"
                    + line([0.1])[:40] + "\n\xff\n" + line([0.2], 8))
    header, records, unreadable = tuning_records.read(path)
    assert header == {"threads": 2} and len(records) == 2 and unreadable == 2


def test_the_faster_one_stays(tmp_path):
    path = tmp_path / "net.x86_64_v4.autotvm"
    first = [tuning_records.parse(text)
             for text in (line([0.3], 4), line([0.2], 8), line([0.1], 4))]
    assert tuning_records.merge(path, {"threads": 2}, first) == (2, 0, 0)
    again = [tuning_records.parse(text)
             for text in (line([0.05], 4, block=2), line([0.9], 8), line([0.7], 16))]
    assert tuning_records.merge(path, {"threads": 2}, again) == (1, 1, 1)
    header, records, unreadable = tuning_records.read(path)
    assert unreadable == 0 and header == {"schema_version": 1, "threads": 2}
    kept = {json.loads(r.key)[1][1][1][0]: r for r in records}
    assert {channels: r.seconds for channels, r in kept.items()} == {4: 0.05, 8: 0.2, 16: 0.7}
    assert kept[4].text == line([0.05], 4, block=2)
    before = path.read_bytes(), path.stat().st_ino
    assert tuning_records.merge(path, {"threads": 2}, again) == (0, 0, 3)
    assert (path.read_bytes(), path.stat().st_ino) == before


def test_merging_leaves_no_half_written_file(tmp_path, monkeypatch):
    path = tmp_path / "net.x86_64_v4.autotvm"
    tuning_records.merge(path, {}, [tuning_records.parse(line([0.3]))])
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(tuning_records.os, "replace", fail)
    with pytest.raises(OSError):
        tuning_records.merge(path, {}, [tuning_records.parse(line([0.1]))])
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_cut_line_is_ended_once(tmp_path):
    path = tmp_path / "log"
    tuning_records.mend(path)
    assert not path.exists()
    path.write_text(line([0.1]) + "\n" + line([0.2])[:30])
    tuning_records.mend(path)
    tuning_records.mend(path)
    with open(path, "a", encoding="utf-8") as file:
        file.write(line([0.05]) + "\n")
    _, records, unreadable = tuning_records.read(path)
    assert [r.seconds for r in records] == [0.1, 0.05] and unreadable == 1


def test_lines_that_tvm_would_stumble_over_are_left_out(tmp_path):
    path = tmp_path / "log"
    path.write_text('[1, 2]\n[3]\n7\n{"cut\n[4, 5]\n[6, 7]')
    assert tuning_records.drop_broken_lines(str(path), lambda value: len(value) == 2) == 2
    assert path.read_text() == "[1, 2]\n[4, 5]\n"
    assert tuning_records.drop_broken_lines(str(tmp_path / "none"), bool) == 0


def test_metaschedules_tables_come_back_as_they_were(tmp_path):
    modules = [base64.b64encode(json.dumps({"module": n, "pad": "x" * 500}).encode()).decode()
               for n in range(2)]
    workloads = [json.dumps([f"hash{n}", module]) for n, module in enumerate(modules)]
    table = [json.dumps([index, [[["trace"], []], [seconds], {"kind": "llvm"}, [["TENSOR"]]]])
             for index, seconds in ((0, 0.3), (0, 0.2), (1, 0.4))]
    joined = tuning_records.join_metaschedule(workloads, [*table, '[0, [["cut"', "[7, []]"])
    records = [tuning_records.parse(text) for text in joined]
    assert [r.kind for r in records] == ["metaschedule"] * 3
    best = list(tuning_records.best(records).values())
    assert sorted(r.seconds for r in best) == [0.2, 0.4]
    assert all(len(json.loads(r.text)["workload"][1]) < len(modules[0]) for r in records)
    tuning_records.split_metaschedule(best, tmp_path)
    written = [json.loads(text) for text in
               (tmp_path / "database_workload.json").read_text().splitlines()]
    assert written == [json.loads(text) for text in workloads]
    assert [json.loads(text) for text in
            (tmp_path / "database_tuning_record.json").read_text().splitlines()] == [
                json.loads(table[1]), json.loads(table[2])]
    packed = json.loads(records[0].text)["workload"][1]
    assert zlib.decompress(base64.b64decode(packed)) == base64.b64decode(modules[0])


@pytest.mark.parametrize("text, device, machine, model", [
    ("llvm -mcpu=x86-64-v4", None, "x86_64", None),
    ("llvm -keys=cpu -mcpu=skylake", None, "x86_64", None),
    ("llvm -device=arm_cpu -model=bcm2837 -mtriple=armv7l-linux-gnueabihf -mattr=+neon", "arm_cpu",
     "arm", "bcm2837"),
    ("llvm -keys=arm_cpu,cpu -mtriple=arm64-linux-android", "arm_cpu", "aarch64", None),
    ("llvm -device=arm_cpu", "arm_cpu", None, None),
])
def test_words_of_a_target(text, device, machine, model):
    assert tuning_records.target_words(text) == {
        "kind": "llvm", "device": device, "machine": machine, "model": model}
