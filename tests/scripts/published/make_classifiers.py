"""Makes data/*.tflite: small classifiers with metadata, written with MediaPipe's own schema.

  python make_classifiers.py FOLDER

FOLDER: of the unpacked wheel of mediapipe 0.10.14, whose mediapipe/tasks/metadata/ is used; needs
numpy, flatbuffers and tflite, with tests/ in PYTHONPATH.
"""

from __future__ import annotations

import importlib.util
import io
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import flatbuffers

from tflite_networks import TfliteNetwork

DATA = Path(__file__).parent / "data"
LABELS = "cat\ndog\nowl\n"


def module(folder: Path, name: str) -> Any:
    path = folder / "mediapipe" / "tasks" / "metadata" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def network(dtype: str) -> bytes:
    net = TfliteNetwork()
    scales = {"float32": {}, "uint8": {"scale": 1 / 128, "zero": 128},
              "int8": {"scale": 1 / 128, "zero": 0}}
    out = (None, 0) if dtype == "float32" else (0.05, 3)
    x = net.tensor((1, 8, 8, 3), dtype, **scales[dtype])
    net.inputs = [x]
    net.outputs = [net.dense(net.mean(net.conv(x, 4, out=out), out=out), 3, out=out)]
    with tempfile.NamedTemporaryFile(suffix=".tflite") as file:
        net.save(Path(file.name))
        return Path(file.name).read_bytes()


def metadata(schema: Any, mean: list[float], std: list[float]) -> bytes:
    unit, options = schema.ProcessUnitT(), schema.NormalizationOptionsT()
    options.mean, options.std = mean, std
    unit.optionsType, unit.options = schema.ProcessUnitOptions.NormalizationOptions, options
    given, made, file = schema.TensorMetadataT(), schema.TensorMetadataT(), (
        schema.AssociatedFileT())
    file.name, file.type = "labels.txt", schema.AssociatedFileType.TENSOR_AXIS_LABELS
    given.name, given.processUnits = "image", [unit]
    made.name, made.associatedFiles = "score", [file]
    graph, model = schema.SubGraphMetadataT(), schema.ModelMetadataT()
    graph.inputTensorMetadata, graph.outputTensorMetadata = [given], [made]
    model.name, model.subgraphMetadata = "three animals", [graph]
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"M001")
    return bytes(builder.Output())


def with_metadata(schema: Any, data: bytes, added: bytes) -> bytes:
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    buffer, entry = schema.BufferT(), schema.MetadataT()
    buffer.data = list(added)
    entry.name, entry.buffer = "TFLITE_METADATA", len(model.buffers)
    model.buffers.append(buffer)
    model.metadata = [entry]
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    made = io.BytesIO(bytes(builder.Output()))
    with zipfile.ZipFile(made, "a") as archive:
        archive.writestr(zipfile.ZipInfo("labels.txt"), LABELS)
    return made.getvalue()


def main() -> None:
    folder = Path(sys.argv[1])
    of_metadata, of_models = (module(folder, name) for name in (
        "metadata_schema_py_generated", "schema_py_generated"))
    for dtype, mean, std in (("float32", [127.5], [127.5]), ("uint8", [127.5], [127.5]),
                             ("int8", [100.0, 110.0, 120.0], [50.0, 60.0, 70.0])):
        (DATA / f"classifier_{dtype}.tflite").write_bytes(with_metadata(
            of_models, network(dtype), metadata(of_metadata, mean, std)))


if __name__ == "__main__":
    main()
