"""Pictures as a model wants them: decoding, and the normalisation that MNIST's digits went through.

A digit is brought into MNIST's form as its authors describe it: grey, light ink on a dark ground,
the ink scaled to fit a box of 20x20 pixels with its proportions kept, its centre of mass at the
centre of 28x28.
"""

from __future__ import annotations

import colorsys
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

Plane = NDArray[np.float64]

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
_MOST_PIXELS = 100_000_000
MOST_CLASSES = 256
"""Numbers of classes that a mask of bytes can hold."""
NO_CLASS = 255
"""The last of them: what a mask leaves open; grey."""
_GROUND = 255  # grey value behind transparent pixels of colour pictures
_LEAST_CONTRAST = 16.0
_BITS_PER_SAMPLE, _SAMPLE_FORMAT, _SIGNED = 258, 339, 2  # of TIFF
_FAINT = 0.1  # of the darkest ink: what is fainter does not make the digit larger
_WORK_SIZE = 200  # longest side of the ink while strokes are looked at


@dataclass(frozen=True)
class Picture:
    """The array for the model, uint8 [channels, height, width], and what was done that a user
    should know."""

    array: NDArray[np.uint8]
    notes: tuple[str, ...]


def load(data: bytes, source: str, reduce_to: int | None = None) -> Image.Image:
    """A decoded picture, turned upright as its EXIF entry says; `info["frames"]` is how many the
    file holds, of which this is the first, `info["white"]` the value that is white.

    Args:
        data: bytes of the file.
        source: its name, for errors.
        reduce_to: decode JPEG at a half, a quarter or an eighth of its size, the smallest of them that
            leaves both sides so many pixels.

    Raises:
        DataError: foreign, damaged, cut off, or absurdly large; names the source.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    if not data:
        raise DataError(f"{source}: the file is empty")
    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
        if image.width * image.height > _MOST_PIXELS:
            raise DataError(
                f"{source}: {image.width}x{image.height} pixels are too many "
                f"(at most {_MOST_PIXELS})"
            )
        if reduce_to is not None:
            image.draft(None, (reduce_to, reduce_to))  # does nothing to other formats
        image.load()
        if image.mode == "F":
            _check_floats(image, source)
        white = _white(image)
        turned = ImageOps.exif_transpose(image)
        turned.info["white"] = white
        turned.info["frames"] = getattr(image, "n_frames", 1)
        return turned
    except UnidentifiedImageError:
        raise DataError(f"{source}: not a picture (it begins with {data[:8].hex(' ')})") from None
    except Image.DecompressionBombError:
        raise DataError(f"{source}: more than {_MOST_PIXELS} pixels are too many") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(f"{source}: the picture is damaged: {error}") from None


def _check_floats(image: Image.Image, source: str) -> None:
    """No depth is declared: what is neither from 0 to 1 nor to 255 cannot be understood."""
    values = np.asarray(image)
    if not np.isfinite(values).all():
        raise DataError(f"{source}: holds pixels that are no finite numbers")
    low, high = float(values.min()), float(values.max())
    if low < 0 or high > 255:
        raise DataError(
            f"{source}: pixels are floats from {low:g} to {high:g}",
            hint="floats go from 0, black, to 1 or to 255, white: scale them, or save 8 or 16 bits",
        )


def _white(image: Image.Image) -> float:
    """The largest value that the file's declared depth can hold; what it does hold says nothing, but
    of floats, which declare none: they go to 1, or to 255 where one is above."""
    if image.mode == "F":
        return 1.0 if np.asarray(image).max(initial=0.0) <= 1.0 else 255.0
    if image.mode != "I" and not image.mode.startswith("I;16"):
        return 255.0
    tags = getattr(image, "tag_v2", {})
    bits = tags.get(_BITS_PER_SAMPLE, (16,))[0]
    signed = tags.get(_SAMPLE_FORMAT, (1,))[0] == _SIGNED
    return float(2 ** (bits - signed) - 1)


def picture(
    data: bytes,
    source: str,
    shape: tuple[int, int, int],
    ink: str | None = None,
    box: int | None = None,
) -> Picture:
    """A picture as the model's input.

    Args:
        data: bytes of the file.
        source: its name, for errors.
        shape: channels (1 or 3), height, width of the input.
        ink: `light` or `dark`: which of the two the model's pictures have; None leaves brightness
            as it is.
        box: side of the square that the ink is scaled into; None scales the whole picture to the
            input's size.

    Raises:
        DataError: see `load`; also a picture without ink.
    """
    image = load(data, source)
    channels, height, width = shape
    frames = image.info["frames"]
    notes = [f"the first of {frames} pictures in the file"] if frames > 1 else []
    if channels == 3:
        from PIL import Image as Pillow

        whole = Pillow.fromarray(flat_colour(image, _GROUND))
        array = np.asarray(whole.resize((width, height)), np.uint8)
        return Picture(np.ascontiguousarray(array.transpose(2, 0, 1)), tuple(notes))
    plane = grey(image)
    if ink is not None:
        plane = _light_ink(plane, source, notes)
    plane = (
        _resize(plane, height, width) if box is None else _digit(plane, (height, width), box, notes)
    )
    if ink == "dark":
        plane = 255.0 - plane
    return Picture(np.rint(np.clip(plane, 0, 255)).astype(np.uint8)[None], tuple(notes))


def grey(image: Image.Image) -> Plane:
    """Grey values 0..255. Sixteen and more bits and floats are scaled by the value that is white;
    transparent pixels get the ground that the ink stands out from."""
    if _is_deep(image):
        return np.asarray(image, np.float64) * (255.0 / float(image.info["white"]))
    if "A" not in image.getbands() and "transparency" not in image.info:
        return np.asarray(image.convert("L"), np.float64)
    both = np.asarray(image.convert("RGBA").convert("LA"), np.float64)
    values, alpha = both[..., 0], both[..., 1] / 255.0
    seen = float((values * alpha).sum() / max(alpha.sum(), 1e-9))
    ground = 0.0 if seen > 127.5 else 255.0
    return np.asarray(values * alpha + ground * (1.0 - alpha))


def _is_deep(image: Image.Image) -> bool:
    """Whether a value has more than eight bits."""
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


def flat_grey(image: Image.Image, ground: int) -> Plane:
    """Grey values 0..255; sixteen bits are scaled, transparent pixels lie on `ground`."""
    if "A" in image.getbands() or "transparency" in image.info:
        from PIL import Image

        image = Image.fromarray(flat_colour(image, ground))
    return grey(image)


def flat_colour(image: Image.Image, ground: int) -> NDArray[np.uint8]:
    """uint8 [height, width, 3]; sixteen bits are scaled, transparent pixels lie on `ground`."""
    from PIL import Image

    if _is_deep(image):
        plane = np.rint(np.clip(grey(image), 0, 255)).astype(np.uint8)
        return np.repeat(plane[:, :, None], 3, axis=2)
    if "A" in image.getbands() or "transparency" in image.info:
        behind = Image.new("RGBA", image.size, (ground, ground, ground, 255))
        image = Image.alpha_composite(behind, image.convert("RGBA"))
    return np.asarray(image.convert("RGB"), np.uint8)


def _light_ink(plane: Plane, source: str, notes: list[str]) -> Plane:
    """Ink 0..255 on a ground of 0, whichever of the two is lighter in the picture.

    The ground is what the picture's border mostly is; what differs from it no more than the border
    does is noise.
    """
    border = np.concatenate([plane[0], plane[-1], plane[1:-1, 0], plane[1:-1, -1]])
    ground = float(np.median(border))
    low, high = float(plane.min()), float(plane.max())
    if high - low < _LEAST_CONTRAST:
        raise DataError(f"{source}: no ink found: all pixels lie between {low:.0f} and {high:.0f}")
    if ground > (low + high) / 2:
        notes.append("the ground is light: inverted")
        ink, full = ground - plane, ground
    else:
        ink, full = plane - ground, 255.0 - ground
    noise = 4.0 * float(np.median(np.abs(border - ground)))
    ink = np.where(ink > noise, ink, 0.0)
    if not ink.any():
        raise DataError(f"{source}: no ink found: nothing stands out from the picture's border")
    return np.clip(ink * (255.0 / full), 0.0, 255.0)


def _digit(ink: Plane, size: tuple[int, int], box: int, notes: list[str]) -> Plane:
    """The ink scaled into the box and centred by mass; left alone if it is in that form already."""
    if ink.shape == size and _in_form(ink, box):
        return ink
    top, bottom, left, right = _bounds(ink, _FAINT * float(ink.max()))
    cut = _work_size(ink[top:bottom, left:right])
    cut = _thicken(cut, box, notes)
    factor = box / max(cut.shape)
    small = _resize(cut, max(1, round(cut.shape[0] * factor)), max(1, round(cut.shape[1] * factor)))
    small = np.clip(small * (255.0 / float(small.max())), 0.0, 255.0)
    return _centre(small, size)


def _in_form(ink: Plane, box: int) -> bool:
    """True for MNIST's own digits: the longest side fills the box, the mass is at the centre."""
    top, bottom, left, right = _bounds(ink, _FAINT * float(ink.max()))
    if not box - 2 <= max(bottom - top, right - left) <= box:
        return False
    centre = np.asarray(ink.shape) / 2
    return bool((np.abs(np.asarray(_mass(ink)) - centre) <= 0.75).all())


def _bounds(ink: Plane, level: float) -> tuple[int, int, int, int]:
    rows = np.flatnonzero((ink > level).any(axis=1))
    columns = np.flatnonzero((ink > level).any(axis=0))
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def _mass(ink: Plane) -> tuple[float, float]:
    """Row and column of the centre of mass, in pixel numbers."""
    total = float(ink.sum())
    return (
        float((ink.sum(axis=1) * np.arange(ink.shape[0])).sum()) / total,
        float((ink.sum(axis=0) * np.arange(ink.shape[1])).sum()) / total,
    )


def _work_size(ink: Plane) -> Plane:
    longest = max(ink.shape)
    if longest <= _WORK_SIZE:
        return ink
    factor = _WORK_SIZE / longest
    return _resize(ink, max(1, round(ink.shape[0] * factor)), max(1, round(ink.shape[1] * factor)))


def _thicken(ink: Plane, box: int, notes: list[str]) -> Plane:
    """Widens the strokes of a fine pen: scaled down as they are, they would be too faint to be
    seen.

    A stroke of width w and length l has about w l pixels, 2 l of them on its edge.
    """
    from PIL import Image, ImageFilter

    mask = np.pad(ink > 0.5 * float(ink.max()), 1)
    core = mask[1:-1, 1:-1]
    inner = core & mask[:-2, 1:-1] & mask[2:, 1:-1] & mask[1:-1, :-2] & mask[1:-1, 2:]
    edge = int(core.sum() - inner.sum())
    width = 2.0 * float(core.sum()) / max(edge, 1)
    wanted = 2.0 * max(ink.shape) / box
    reach = round((wanted - width) / 2)
    if width >= 0.5 * wanted or reach < 1:
        return ink
    notes.append("the strokes are thin: widened")
    image = Image.fromarray(np.pad(ink, reach).astype(np.uint8))
    return np.asarray(image.filter(ImageFilter.MaxFilter(2 * reach + 1)), np.float64)


def _resize(plane: Plane, height: int, width: int) -> Plane:
    """Scaled with antialiasing."""
    from PIL import Image

    if plane.shape == (height, width):
        return plane
    image = Image.fromarray(plane.astype(np.float32))
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC), np.float64)


def _centre(ink: Plane, size: tuple[int, int]) -> Plane:
    """The ink on an empty plane, its centre of mass as near the middle as whole pixels and the
    edges allow."""
    mass = _mass(ink)
    out = np.zeros(size)
    starts = [
        min(max(round(side / 2 - m), 0), side - length)
        for side, m, length in zip(size, mass, ink.shape, strict=True)
    ]
    out[starts[0] : starts[0] + ink.shape[0], starts[1] : starts[1] + ink.shape[1]] = ink
    return out


def png(array: NDArray[Any]) -> bytes:
    """A uint8 array as a PNG file: [channels, height, width] with 1 or 3 channels, or class numbers
    [height, width], which the file keeps, each with a colour of its own."""
    from PIL import Image

    plane = array
    if array.ndim == 3:
        plane = array[0] if array.shape[0] == 1 else array.transpose(1, 2, 0)
    image = Image.fromarray(np.ascontiguousarray(plane))
    if array.ndim == 2:
        image.putpalette([round(255 * c) for i in range(MOST_CLASSES) for c in _colour(i)])
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _colour(number: int) -> tuple[float, float, float]:
    """Black for class 0; neighbours have hues far from each other."""
    if number == NO_CLASS:
        return (0.375, 0.375, 0.375)
    return colorsys.hsv_to_rgb(0.62 * number % 1.0, 0.75, 1.0 if number else 0.0)
