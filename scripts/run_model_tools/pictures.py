"""The photographs in images/ and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

from run_model_tools.pypi import Package

# The options name one wheel on every machine; only its pictures are read.
PACKAGE = Package(
    requirement="scikit-image==0.24.0",
    file_name="scikit_image-0.24.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    sha256="fa27b3a0dbad807b966b8db2d78da734cb812ca4787f7fbb143764800ce2fa9c",
    pip_options=("--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.11",
                 "--abi", "cp311", "--platform", "manylinux2014_x86_64"),
)


@dataclass(frozen=True)
class Picture:
    """A picture of the wheel, taken over byte for byte; `licence` is the wheel's own statement."""

    file_name: str
    sha256: str
    title: str
    size: str
    author: str
    licence: str

    @property
    def member(self) -> str:
        """Its path in the wheel."""
        return f"skimage/data/{self.file_name}"


PICTURES = [
    Picture("chelsea.png", "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb",
            "Chelsea the cat", "451 × 300, colour PNG",
            "Stefan van der Walt", "CC0 by the photographer"),
    Picture("coffee.png", "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7",
            "A cup of espresso, courtesy of Pikolo Espresso Bar",
            "600 × 400, colour PNG", "Rachel Michetti", "CC0 by the photographer"),
    Picture("rocket.jpg", "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c",
            "Falcon 9 lifts off with DSCOVR, "
            "https://www.flickr.com/photos/spacexphotos/16511594820/", "640 × 427, colour JPEG",
            "SpaceX", "released into the public domain by SpaceX"),
    Picture("camera.png", "b0793d2adda0fa6ae899c03989482bff9a42d3d5690fc7e3648f2795d730c23a",
            "A photographer and his tripod", "512 × 512, grey PNG",
            "Lav Varshney", "CC0 by the photographer"),
]
