"""Pictures: MNIST's own digits come back unchanged, others are brought into their form."""

from __future__ import annotations

import gzip
import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from paddlecli.data.formats.images import Picture, picture, png
from paddlecli.errors import DataError

SHAPE = (1, 28, 28)


@pytest.fixture(scope="module")
def digits(shared_data: Path) -> np.ndarray:
    raw = gzip.decompress((shared_data / "mnist" / "t10k-images-idx3-ubyte.gz").read_bytes())
    count = struct.unpack(">4I", raw[:16])[1]
    return np.frombuffer(raw, np.uint8, offset=16).reshape(count, 28, 28)


def encoded(image: Image.Image, format: str = "PNG", **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def digit(data: bytes) -> Picture:
    return picture(data, "test", SHAPE, "light", 20)


def seven(size: int = 200, ink: int = 0, ground: int = 255, pen: int = 20) -> Image.Image:
    image = Image.new("L", (size, size), ground)
    draw = ImageDraw.Draw(image)
    a, b, c = 0.3 * size, 0.7 * size, 0.8 * size
    draw.line([(a, 0.2 * size), (b, 0.2 * size), (0.45 * size, c)], ink, pen, joint="curve")
    return image


def box_of(array: np.ndarray, level: int = 25) -> tuple[int, int]:
    rows = np.flatnonzero((array > level).any(1))
    columns = np.flatnonzero((array > level).any(0))
    return int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1


def mass_of(array: np.ndarray) -> np.ndarray:
    weight = array.astype(float) / array.sum()
    grid = np.indices(array.shape)
    return (grid * weight).sum(axis=(1, 2))


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a.astype(float).ravel(), b.astype(float).ravel())[0, 1])


def likeness_of(made: np.ndarray, original: np.ndarray) -> float:
    """The best correlation over shifts by a pixel: where a centre of mass lies just between two
    pixels, a trace of noise decides which one is taken."""
    shifts = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    return max(correlation(np.roll(made, shift, (0, 1)), original) for shift in shifts)


@pytest.mark.parametrize("white", [False, True])
def test_mnist_digits_come_back_bit_for_bit(digits: np.ndarray, white: bool) -> None:
    for original in digits[::10]:
        made = digit(png((255 - original if white else original)[None]))
        np.testing.assert_array_equal(made.array[0], original)
        assert bool(made.notes) == white


@pytest.mark.parametrize("white", [False, True])
def test_mnist_digits_moved_and_enlarged_come_back_alike(digits: np.ndarray, white: bool) -> None:
    """What the original authors' procedure undoes: place, size, margin, polarity."""
    likeness = []
    for original in digits[:60]:
        big = Image.fromarray(original).resize((224, 224), Image.Resampling.BICUBIC)
        canvas = Image.new("L", (500, 400), 0)
        canvas.paste(big, (260, 30))
        if white:
            canvas = canvas.point(lambda v: 255 - v)
        made = digit(encoded(canvas))
        likeness.append(likeness_of(made.array[0], original))
    assert np.mean(likeness) > 0.965 and min(likeness) > 0.85


def test_jpeg_digits_come_back_alike(digits: np.ndarray) -> None:
    for original in digits[:200]:
        made = digit(encoded(Image.fromarray(255 - original), "JPEG", quality=85))
        assert correlation(made.array[0], original) > 0.99


@pytest.mark.parametrize("ground", [255, 0])
@pytest.mark.parametrize("pen", [3, 20])
def test_a_drawn_digit_fits_the_box_and_is_centred(ground: int, pen: int) -> None:
    made = digit(encoded(seven(ink=255 - ground, ground=ground, pen=pen)))
    array = made.array[0]
    assert made.array.shape == SHAPE and made.array.dtype == np.uint8
    assert array.max() == 255 and np.median(array) == 0
    assert 18 <= max(box_of(array)) <= 21
    assert (np.abs(mass_of(array) - 14) <= 0.6).all()
    assert any("inverted" in n for n in made.notes) == (ground == 255)


def test_thin_strokes_are_widened() -> None:
    thin, thick = (digit(encoded(seven(400, pen=p))) for p in (3, 40))
    assert any("thin" in n for n in thin.notes) and not any("thin" in n for n in thick.notes)
    assert thin.array.sum() > 0.5 * thick.array.sum()


def test_paper_with_noise_and_grey_ground() -> None:
    rng = np.random.default_rng(3)
    plane = np.asarray(seven(ink=60, ground=190), np.float64) + rng.normal(0, 4, (200, 200))
    noisy = digit(encoded(Image.fromarray(np.clip(plane, 0, 255).astype(np.uint8)))).array[0]
    clean = digit(encoded(seven())).array[0]
    assert correlation(noisy, clean) > 0.97
    assert (noisy[:3] == 0).all() and (noisy[:, :3] == 0).all()


def variants() -> dict[str, bytes]:
    base = seven()
    ink = Image.new("RGBA", base.size, (0, 0, 0, 0))
    ink.putalpha(base.point(lambda v: 255 - v))
    white = Image.new("RGBA", base.size, (255, 255, 255, 0))
    white.putalpha(base.point(lambda v: 255 - v))
    sixteen = Image.fromarray(np.asarray(base, np.uint16) * 257)
    turned = base.rotate(90, expand=True)
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn by 270 degrees to see it upright"
    return {
        "rgb": encoded(base.convert("RGB")),
        "palette": encoded(base.convert("P")),
        "bits": encoded(base.convert("1")),
        "grey and alpha": encoded(base.convert("LA")),
        "black ink on nothing": encoded(ink),
        "white ink on nothing": encoded(white),
        "16 bits": encoded(sixteen),
        "gif": encoded(base, "GIF"),
        "bmp": encoded(base, "BMP"),
        "webp": encoded(base, "WEBP", lossless=True),
        "exif": encoded(turned, "JPEG", quality=95, exif=exif),
    }


@pytest.mark.parametrize("kind", list(variants()))
def test_every_kind_of_file_gives_the_same_digit(kind: str) -> None:
    expected = digit(encoded(seven())).array[0]
    assert correlation(digit(variants()[kind]).array[0], expected) > 0.97


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "test: the file is empty"),
        (b"<html>no picture</html>", "test: not a picture .*3c 68"),
        (encoded(seven())[:200], "test: the picture is damaged"),
        (encoded(seven(), "JPEG")[:300], "test: the picture is damaged"),
        (encoded(Image.new("L", (50, 50), 90)), "test: no ink found"),
        (encoded(Image.new("1", (20000, 20000))), "test: .*too many"),
        (encoded(Image.effect_noise((60, 60), 120)), "test: no ink found: nothing stands out"),
        (encoded(seven()).replace(b"IDAT", b"IDAX"), "test: not a picture"),
    ],
)
def test_damaged_and_foreign_pictures(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        digit(data)


def test_the_first_of_an_animation() -> None:
    data = encoded(seven(), "GIF", save_all=True, append_images=[seven(pen=30)])
    assert "the first of 2 pictures in the file" in digit(data).notes
    assert (digit(data).array == digit(encoded(seven(), "GIF")).array).all()


def test_without_a_box_the_whole_picture_is_scaled() -> None:
    made = picture(encoded(seven(56)), "test", SHAPE)
    expected = np.asarray(seven(56).resize((28, 28), Image.Resampling.BICUBIC))
    assert correlation(made.array[0], expected) > 0.999 and made.notes == ()


def test_colour_pictures() -> None:
    image = Image.new("RGB", (64, 64), (250, 10, 30)).filter(ImageFilter.BLUR)
    made = picture(encoded(image), "test", (3, 32, 32))
    assert made.array.shape == (3, 32, 32)
    assert made.array[:, 16, 16].tolist() == [250, 10, 30]


@pytest.mark.parametrize("kind", ["palette", "alpha", "sixteen", "cmyk", "grey"])
def test_colour_networks_take_every_kind(kind: str) -> None:
    """Sixteen bits are scaled, what is transparent is white, the rest keeps its colours."""
    plain = Image.new("RGB", (8, 8), (200, 200, 200))
    made = {
        "palette": lambda: encoded(plain.quantize(2)),
        "alpha": lambda: encoded(Image.new("RGBA", (8, 8), (10, 20, 30, 0))),
        "sixteen": lambda: encoded(Image.fromarray(np.full((8, 8), 200 * 257, np.uint16))),
        "cmyk": lambda: encoded(Image.new("CMYK", (8, 8), (55, 55, 55, 0)), "TIFF"),
        "grey": lambda: encoded(plain.convert("L")),
    }
    found = picture(made[kind](), "test", (3, 4, 4)).array
    assert (found == (255 if kind == "alpha" else 200)).all()


def test_one_pixel_of_ink() -> None:
    image = Image.new("L", (28, 28), 255)
    image.putpixel((3, 4), 0)
    assert digit(encoded(image)).array.max() == 255


def test_floats_up_to_one_are_shares_of_white() -> None:
    bytes_ = np.arange(256, dtype=np.uint8).reshape(16, 16)
    shape = (3, 16, 16)
    want = picture(encoded(Image.fromarray(bytes_)), "test", shape).array
    for plane in (bytes_.astype(np.float32), bytes_.astype(np.float32) / np.float32(255)):
        found = picture(encoded(Image.fromarray(plane), "TIFF"), "test", shape).array
        assert (found == want).all()


def pgm16(plane: NDArray[np.uint16]) -> bytes:
    """A PGM file of sixteen bits."""
    return b"P5 %d %d 65535\n" % plane.shape[::-1] + plane.astype(">u2").tobytes()


@pytest.mark.parametrize(
    ("kind", "white", "format_"),
    [
        (np.uint16, 2**16 - 1, "PNG"),
        (np.uint16, 2**16 - 1, "PGM"),
        (np.uint16, 2**16 - 1, "TIFF"),
        (np.int32, 2**31 - 1, "TIFF"),
    ],
)
def test_depth_is_what_the_file_declares(kind: Any, white: int, format_: str) -> None:
    """A dark picture of many bits stays dark: values up to 255 are no eight bits."""
    for brightest in (200, white // 3):
        plane = np.full((4, 4), brightest, kind)
        data = pgm16(plane) if format_ == "PGM" else encoded(Image.fromarray(plane), format_)
        found = picture(data, "test", (1, 4, 4)).array
        assert (found == round(255 * brightest / white)).all()


def test_floats_of_an_unknown_scale_are_refused() -> None:
    plane = np.array([[0.0, 4000.0]], np.float32)
    with pytest.raises(DataError, match="test: pixels are floats from 0 to 4000"):
        picture(encoded(Image.fromarray(plane), "TIFF"), "test", (1, 4, 4))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_pixels_must_be_finite(value: float) -> None:
    plane = np.zeros((4, 4), np.float32)
    plane[1, 2] = value
    with pytest.raises(DataError, match="test: holds pixels that are no finite numbers"):
        picture(encoded(Image.fromarray(plane), "TIFF"), "test", (3, 4, 4))
