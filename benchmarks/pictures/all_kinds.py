"""Small pictures of some fifty kinds, drawn by code and by seed, that no published prior has learnt from.

Black and white ones are booleans (H, W), True for white; grey ones are float64 in [0, 1]. Nothing but numpy, Pillow and
Pillow's own font is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Draw = Callable[[np.random.Generator], np.ndarray]

TEXT = (
    "the river lay under a thin white mist and no sound came from either bank but the slow drip of water "
    "from the oars Mr Hale counted 27 boats at 6.30 on Friday and wrote them down by name and number"
)
WORDS = TEXT.split()


def sheet(width: int, height: int, ground: int = 1) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """A sheet of paper (1) or of ink (0), and what draws on it."""
    image = Image.new("1", (width, height), ground)
    return image, ImageDraw.Draw(image)


def white(image: Image.Image) -> np.ndarray:
    return np.asarray(image, bool)


def levels(grey: np.ndarray) -> np.ndarray:
    """Grey values in [0, 1] as levels of 0 to 255."""
    return np.rint(255 * grey.clip(0, 1)).astype(np.uint8)


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def smooth(dice: np.random.Generator, height: int, width: int, scale: float) -> np.ndarray:
    """Smooth random values between 0 and 1, of waves longer than about `scale` pixels."""
    down, right = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)
    waves = np.fft.rfft2(dice.standard_normal((height, width))) * np.exp(-2 * (scale**2) * (down**2 + right**2))
    values = np.fft.irfft2(waves, (height, width))
    return (values - values.min()) / (values.max() - values.min())


def scene(dice: np.random.Generator, height: int = 200, width: int = 240) -> np.ndarray:
    """A lit ball and its shadow before uneven ground; grey levels."""
    down, right = np.indices((height, width), float)
    grey = 0.55 + 0.3 * right / width - 0.25 * down / height + 0.2 * (smooth(dice, height, width, 40) - 0.5)
    middle, radius = (0.5 * height, 0.42 * width), 0.3 * height
    grey *= 1 - 0.6 * np.exp(-(((down - 1.6 * middle[0]) / 14) ** 2) - (((right - middle[1] - 18) / radius) ** 2))
    y, x = (down - middle[0]) / radius, (right - middle[1]) / radius
    ball = x**2 + y**2 < 1
    light = np.sqrt(np.clip(1 - x**2 - y**2, 0, 1)) * 0.6 - 0.5 * x - 0.5 * y
    return np.where(ball, 0.12 + 0.8 * np.clip(light, 0, 1), grey).clip(0, 1)


def graph_paper(spacing: int, dice: np.random.Generator) -> np.ndarray:
    """Lines of one pixel; a curve where they are ten pixels apart."""
    paper = np.ones((200, 240), bool)
    paper[spacing // 2 :: spacing], paper[:, spacing // 2 :: spacing] = False, False
    if spacing == 10:
        for x, y in enumerate(np.rint(100 + 60 * np.sin(np.arange(240) / 23)).astype(int)):
            paper[y - 1 : y + 2, x] = False
    return paper


def hatched(angles: tuple[float, ...], spacing: float, dice: np.random.Generator) -> np.ndarray:
    """Outlined shapes filled with parallel lines."""
    image, ink = sheet(220, 200)
    ink.polygon(((20, 180), (40, 30), (120, 60), (110, 170)), outline=0, fill=0)
    ink.ellipse((120, 20, 205, 130), outline=0, fill=0)
    ink.rectangle((135, 140, 210, 190), outline=0, fill=0)
    inside, edge = ~white(image), white(image)
    edge = inside & (np.roll(edge, 1, 0) | np.roll(edge, -1, 0) | np.roll(edge, 1, 1) | np.roll(edge, -1, 1))
    down, right = np.indices(inside.shape)
    lines = [(down * math.cos(a) + right * math.sin(a)) % spacing < 1.2 for a in angles]
    return ~((inside & np.any(lines, axis=0)) | edge)


def ordered_dither(side: int, dice: np.random.Generator) -> np.ndarray:
    matrix = np.zeros((1, 1))
    while len(matrix) < side:
        matrix = np.block([[4 * matrix, 4 * matrix + 2], [4 * matrix + 3, 4 * matrix + 1]])
    grey = scene(dice)
    rows, columns = (size // side + 1 for size in grey.shape)
    return grey > (np.tile((matrix + 0.5) / side**2, (rows, columns)))[: grey.shape[0], : grey.shape[1]]


def halftone(dice: np.random.Generator) -> np.ndarray:
    """Dots on a grid of 6 pixels at 45 degrees, larger where it is darker."""
    grey = scene(dice)
    down, right = np.indices(grey.shape)
    one, other = (down + right) / 6, (down - right) / 6
    return grey > 0.5 - 0.25 * (np.cos(np.pi * one) * np.cos(np.pi * other)) * 2


def code(modules: int, size: int, dice: np.random.Generator) -> np.ndarray:
    """What a QR code looks like: finders, timing, alignment squares and modules at random, in a quiet zone of four."""
    black = dice.random((modules, modules)) < 0.5
    black[6, ::2], black[6, 1::2], black[::2, 6], black[1::2, 6] = True, False, True, False
    ring = np.maximum(*np.abs(np.indices((9, 9)) - 4))
    finder = (ring != 2) & (ring < 4)
    black[:8, :8], black[:8, -8:], black[-8:, :8] = finder[1:, 1:], finder[1:, :-1], finder[:-1, 1:]
    for row in range(modules - 9, 8, -26):
        for column in range(modules - 9, 8, -26):
            black[row : row + 5, column : column + 5] = (ring != 1)[2:7, 2:7] & (ring != 1)[2:7, 2:7]
    return ~np.pad(black, 4).repeat(size, 0).repeat(size, 1)


def data_matrix(dice: np.random.Generator) -> np.ndarray:
    black = dice.random((40, 40)) < 0.5
    black[0, ::2], black[0, 1::2], black[1::2, -1], black[::2, -1] = True, False, True, False
    black[:, 0] = black[-1] = True
    return ~np.pad(black, 2).repeat(4, 0).repeat(4, 1)


def bar_code(dice: np.random.Generator) -> np.ndarray:
    image, ink = sheet(260, 130)
    left = 18
    while left < 236:
        bar, gap = 2 * int(dice.integers(1, 5)), 2 * int(dice.integers(1, 4))
        ink.rectangle((left, 12, left + bar - 1, 100), 0)
        left += bar + gap
    ink.text((40, 104), "4 006381 333931", 0, font(18))
    return white(image)


def dots(jitter: float, dice: np.random.Generator) -> np.ndarray:
    image, ink = sheet(200, 180)
    for y in range(8, 178, 10):
        for x in range(8, 198, 10):
            across, down = dice.normal(0, jitter, 2) if jitter else (0.0, 0.0)
            ink.ellipse((x + across - 1.5, y + down - 1.5, x + across + 1.5, y + down + 1.5), 0)
    return white(image)


def scatter_plot(dice: np.random.Generator) -> np.ndarray:
    image, ink = axes()
    for x in dice.uniform(45, 235, 120):
        y = 165 - 0.55 * (x - 40) + dice.normal(0, 16)
        ink.ellipse((x - 1, y - 1, x + 1, y + 1), 0)
    return white(image)


def axes() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image, ink = sheet(250, 200)
    ink.line((35, 10, 35, 175, 240, 175), 0)
    for tick in range(5):
        ink.line((31, 175 - 36 * tick, 35, 175 - 36 * tick), 0)
        ink.text((8, 168 - 36 * tick), str(20 * tick), 0, font(11))
        ink.line((35 + 45 * tick, 175, 35 + 45 * tick, 179), 0)
        ink.text((30 + 45 * tick, 180), str(tick), 0, font(11))
    return image, ink


def line_chart(dice: np.random.Generator) -> np.ndarray:
    image, ink = axes()
    for width in (1, 2, 3):
        heights = 60 + 30 * width - np.cumsum(dice.normal(1, 9, 20))
        ink.line([(38 + 10 * x, float(y)) for x, y in enumerate(heights.clip(12, 172))], 0, width)
    return white(image)


def bar_chart(dice: np.random.Generator) -> np.ndarray:
    image, ink = axes()
    for place in range(6):
        left, top = 44 + 32 * place, int(dice.integers(20, 150))
        ink.rectangle((left, top, left + 20, 175), outline=0, fill=0 if place % 3 == 0 else None)
        for down in range(0, 220, 5) if place % 3 else ():
            start, stop = (left, top + down), (left + 20, top + down - 20 * (place % 3 == 1))
            if start[1] <= 175 and stop[1] >= top:
                ink.line((start, stop), 0)
    return white(image)


def music(dice: np.random.Generator) -> np.ndarray:
    image, ink = sheet(320, 200)
    for top in (20, 82, 144):
        for line in range(5):
            ink.line((8, top + 8 * line, 312, top + 8 * line), 0)
        for bar in (8, 110, 212, 312):
            ink.line((bar, top, bar, top + 32), 0)
        for x in range(22, 300, 17):
            y = top + 4 * int(dice.integers(-1, 10))
            ink.ellipse((x - 5, y - 3, x + 4, y + 3), 0, 0 if dice.random() < 0.7 else 1)
            ink.line((x + 4, y, x + 4, y - 24) if y > top + 16 else (x - 5, y, x - 5, y + 24), 0)
    return white(image)


def table(dice: np.random.Generator) -> np.ndarray:
    image, ink = sheet(320, 220)
    ink.rectangle((8, 8, 311, 211), outline=0, width=2)
    for row in range(9):
        ink.line((8, 30 + 22 * row, 311, 30 + 22 * row), 0, 2 if row == 0 else 1)
        for column, left in enumerate((14, 92, 166, 240)):
            word = str(dice.choice(WORDS)) if column == 0 or row == 0 else f"{dice.uniform(0, 999):.2f}"
            ink.text((left, 12 + 22 * row), word, 0, font(13))
    for left in (86, 160, 234):
        ink.line((left, 8, left, 211), 0)
    return white(image)


def circuit(dice: np.random.Generator) -> np.ndarray:
    image, ink = sheet(280, 220)
    for y in (30, 110, 190):
        ink.line((20, y, 260, y), 0, 2)
        for x in range(50, 240, 60):
            kind = int(dice.integers(3))
            ink.rectangle((x - 18, y - 10, x + 18, y + 10), 1)
            if kind == 0:
                ink.rectangle((x - 17, y - 6, x + 17, y + 6), outline=0, width=2)
            elif kind == 1:
                ink.line([(x - 18 + 4 * k, y + (8 if k % 2 else -8) * (0 < k < 9)) for k in range(10)], 0, 2)
            else:
                ink.line((x - 18, y, x - 4, y), 0, 2)
                ink.line((x + 4, y, x + 18, y), 0, 2)
                ink.line((x - 4, y - 10, x - 4, y + 10), 0, 2)
                ink.line((x + 4, y - 10, x + 4, y + 10), 0, 2)
            ink.text((x - 10, y - 26), f"{'RLC'[kind]}{int(dice.integers(1, 30))}", 0, font(12))
    for x in (20, 80, 200, 260):
        ink.line((x, 30, x, 190), 0, 2)
        ink.ellipse((x - 3, 107, x + 3, 113), 0)
    return white(image)


def contours(dice: np.random.Generator) -> np.ndarray:
    level = np.floor(12 * smooth(dice, 220, 260, 60))
    edge = np.zeros(level.shape, bool)
    edge[:-1] |= level[1:] != level[:-1]
    edge[:, :-1] |= level[:, 1:] != level[:, :-1]
    return ~edge


def streets(dice: np.random.Generator) -> np.ndarray:
    """Blocks of houses between streets, and a river."""
    image, ink = sheet(280, 240)
    for x in range(10, 270, 52):
        for y in range(10, 230, 44):
            right, bottom = x + int(dice.integers(30, 46)), y + int(dice.integers(24, 38))
            ink.rectangle((x, y, right, bottom), outline=0)
            for house in range(x + 4, right - 8, 11):
                ink.rectangle((house, y + 4, house + 6, y + int(dice.integers(8, 14))), 0)
    river = [(x, 150 + 30 * math.sin(x / 40)) for x in range(0, 290, 10)]
    ink.line(river, 0, 15)
    ink.line(river, 1, 11)
    ink.text((60, 196), "Mill Lane", 0, font(14))
    return white(image)


def floor_plan(dice: np.random.Generator) -> np.ndarray:
    image, ink = sheet(260, 220)
    ink.rectangle((14, 14, 245, 205), outline=0, width=5)
    ink.line((14, 110, 245, 110), 0, 3)
    for near, far, across in ((14, 110, (95, 180)), (110, 205, (70, 150))):
        for x in across:
            ink.line((x, near, x, far), 0, 3)
            door = near + int(dice.integers(20, 50))
            ink.line((x, door, x, door + 24), 1, 5)
            ink.arc((x - 24, door, x + 24, door + 48), 270, 360, 0)
            ink.line((x, door, x, door + 24), 0)
    for step in range(190, 240, 6):
        ink.line((step, 150, step, 200), 0)
    ink.ellipse((30, 130, 56, 156), outline=0)
    ink.rectangle((110, 30, 150, 50), outline=0)
    return white(image)


def silhouette(dice: np.random.Generator) -> np.ndarray:
    """A pot plant: one shape with a rough edge."""
    image, ink = sheet(200, 240)
    ink.polygon(((60, 230), (140, 230), (152, 160), (48, 160)), 0)
    for angle in np.linspace(-1.2, 1.2, 9):
        x, y = 100 + 80 * math.sin(angle), 160 - 130 * math.cos(angle) + dice.uniform(0, 25)
        ink.polygon(((94, 164), (x - 12, (y + 160) / 2), (x, y), (x + 12, (y + 160) / 2), (106, 164)), 0)
    return white(image)


def page(size: int, dice: np.random.Generator, lines: int = 99, ground: int = 1) -> np.ndarray:
    """Lines of print in letters of `size` pixels."""
    image, ink = sheet(320, 300, ground)
    for line in range(min(lines, 280 // round(1.35 * size))):
        words: list[str] = []
        top = 10 + round(1.35 * size) * line
        while ink.textlength(" ".join(words), font(size)) < 270 and not (lines < 9 and len(words) > 2):
            words.append(str(dice.choice(WORDS)))
        ink.text((12, top), " ".join(words[:-1] or words), 1 - ground, font(size))
    return white(image)


def handwriting(dice: np.random.Generator) -> np.ndarray:
    image, ink = sheet(300, 180)
    for base in (40, 90, 140):
        along = np.arange(0, 240, 0.5)
        swing = 12 * smooth(dice, 1, along.size, 12)[0] + 3
        y = base - swing * np.sin(along / 3.3) - 10 * (smooth(dice, 1, along.size, 6)[0] > 0.8)
        x = 25 + along + 5 * np.cos(along / 3.3)
        written = (along % 70) < 58
        for piece in np.split(np.arange(along.size), np.flatnonzero(np.diff(written)) + 1):
            if written[piece[0]]:
                ink.line([(float(x[k]), float(y[k])) for k in piece], 0, 2)
    return white(image)


def icons(dice: np.random.Generator) -> np.ndarray:
    """A house, an envelope, a magnifier, a bell, a gear and a bin, 48 pixels each."""
    image, ink = sheet(200, 140)
    for angle in np.arange(8) * np.pi / 4:
        ink.line((101, 102, 101 + 24 * math.cos(angle), 102 + 24 * math.sin(angle)), 0, 9)
    for solid in ((20, 36, 56, 60), (16, 106, 60, 116)):
        ink.rectangle(solid, 0)
    for disc, fill in (((32, 118, 44, 128), 0), ((84, 85, 118, 119), 0), ((93, 94, 109, 110), 1)):
        ink.ellipse(disc, fill)
    for frame in ((76, 18, 126, 54), (146, 90, 182, 130)):
        ink.rectangle(frame, outline=0, width=3)
    for stroke in ((76, 18, 101, 40, 126, 18), (140, 86, 188, 86)):
        ink.line(stroke, 0, 3)
    for x in (156, 164, 172):
        ink.line((x, 96, x, 124), 0, 2)
    ink.polygon(((12, 36), (38, 10), (64, 36)), 0)
    ink.rectangle((33, 44, 43, 60), 1)
    ink.ellipse((140, 10, 174, 44), outline=0, width=5)
    ink.line((168, 38, 188, 58), 0, 7)
    ink.pieslice((16, 76, 60, 136), 180, 360, 0)
    return white(image)


def pixel_art(dice: np.random.Generator) -> np.ndarray:
    """Two figures of 12x12 squares, alike on the left and right, drawn ten times as large."""
    halves = [dice.random((12, 6)) < 0.5 for _ in range(2)]
    figures = [np.pad(np.hstack([half, half[:, ::-1]]), 2) for half in halves]
    return ~np.hstack(figures).repeat(10, 0).repeat(10, 1)


def chessboard(square: int, dice: np.random.Generator) -> np.ndarray:
    down, right = np.indices((160, 192)) // square
    return (down + right) % 2 == 0


def maze(corridor: int, dice: np.random.Generator) -> np.ndarray:
    """A perfect maze, its walls as thick as its corridors are wide."""
    size = 71 if corridor == 1 else 19
    grid = np.zeros((2 * size + 1, 2 * size + 1), bool)
    path = [(1, 1)]
    grid[1, 1] = True
    while path:
        row, column = path[-1]
        steps = [(row + 2 * a, column + 2 * b) for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0))]
        free = [(a, b) for a, b in steps if 0 < a < 2 * size and 0 < b < 2 * size and not grid[a, b]]
        if not free:
            path.pop()
            continue
        there = free[int(dice.integers(len(free)))]
        grid[there] = grid[(row + there[0]) // 2, (column + there[1]) // 2] = True
        path.append(there)
    return grid.repeat(corridor, 0).repeat(corridor, 1)


def stars(dice: np.random.Generator) -> np.ndarray:
    sky = dice.random((200, 220)) < 0.012
    for row, column in dice.integers(3, 195, (25, 2)):
        sky[row - 1 : row + 2, column] = sky[row, column - 1 : column + 2] = True
    return sky


def moire(dice: np.random.Generator) -> np.ndarray:
    down, right = np.indices((200, 240))
    return ((right % 5) > 1) & ((right * math.cos(0.12) + down * math.sin(0.12)) % 5.3 > 1.6)


def cartoon(dice: np.random.Generator) -> np.ndarray:
    """A face with a bow tie."""
    image, ink = sheet(220, 220)
    for ring, width in (
        ((30, 40, 190, 200), 4),
        ((62, 80, 98, 126), 3),
        ((122, 80, 158, 126), 3),
        ((104, 122, 118, 138), 2),
    ):
        ink.ellipse(ring, outline=0, width=width)
    for pupil in ((76, 98, 88, 116), (136, 98, 148, 116)):
        ink.ellipse(pupil, 0)
    for x in range(60, 160, 14):
        ink.line((x, 56, x + int(dice.integers(-14, 15)), 14 + int(dice.integers(0, 14))), 0, 3)
    for side in (66, 154):
        ink.polygon(((side, 196), (110, 208), (side, 219)), 0)
    ink.arc((70, 100, 150, 175), 20, 160, 0, 5)
    return white(image)


def branches(dice: np.random.Generator) -> np.ndarray:
    image, ink = sheet(240, 240)

    def grow(x: float, y: float, angle: float, length: float) -> None:
        end = x + length * math.sin(angle), y - length * math.cos(angle)
        ink.line((x, y, *end), 0, max(1, round(length / 8)))
        if length > 7:
            for turn in (-0.45, 0.4):
                grow(*end, angle + turn + dice.normal(0, 0.15), length * dice.uniform(0.68, 0.82))

    grow(120, 236, 0, 56)
    return white(image)


def digit_sheet(dice: np.random.Generator) -> np.ndarray:
    image, ink = sheet(280, 168, 0)
    for place in range(60):
        left, top = 28 * (place % 10) + 6 + int(dice.integers(-2, 3)), 28 * (place // 10) + int(dice.integers(-2, 3))
        ink.text((left, top), str(int(dice.integers(10))), 1, font(24))
    return white(image)


def grey_map(dice: np.random.Generator) -> np.ndarray:
    """Land in six greys, with the borders and names of countries."""
    grey = np.array([0.95, 0.85, 0.75, 0.62, 0.5, 0.4])[(6 * smooth(dice, 200, 240, 60)).clip(0, 5).astype(int)]
    image = Image.fromarray(levels(np.where(contours(dice)[:200, :240], grey, 0.25)))
    for place, word in enumerate(("Norland", "Westmark", "Suvia")):
        ImageDraw.Draw(image).text((30 + 60 * place, 40 + 55 * place), word, 0, font(15))
    return np.asarray(image) / 255


def grey_icon(dice: np.random.Generator) -> np.ndarray:
    """The icons with soft edges, and one of them grey."""
    large = Image.fromarray(icons(dice)).convert("L").resize((300, 210), Image.Resampling.BICUBIC)
    grey = np.asarray(large).astype(float) / 255
    grey[:, 110:200] = 0.4 + 0.6 * grey[:, 110:200]
    return levels(grey) / 255


def parts(side: int, kinds: int, dice: np.random.Generator) -> np.ndarray:
    """Parts of black and white pictures of some kinds, side by side in a square."""
    plain = [name for name in PICTURES if not name.startswith(("parts", "grey", "print, inverted"))]
    chosen = dice.permutation(plain)[:kinds]
    cells = [np.asarray(PICTURES[str(name)](dice)) for name in chosen]
    every = [np.tile(cell, (-(-side // len(cell)), -(-side // len(cell.T))))[:side, :side] for cell in cells]
    across = math.isqrt(kinds)
    return np.block([every[start : start + across] for start in range(0, kinds, across)])


def print_around(dice: np.random.Generator) -> np.ndarray:
    """Print with one picture of another kind in it, as large as a ninth of it or less."""
    sheet = np.block([[page(14, dice) for _ in range(2)] for _ in range(2)])
    kind = str(
        dice.choice(("halftone", "ordered dither, 8x8", "error diffusion", "random dither", "silhouette", "icons"))
    )
    other = np.asarray(PICTURES[kind](dice))[:200, :200]
    top, left = (int(dice.integers(20, size - 220)) for size in sheet.shape)
    sheet[top : top + other.shape[0], left : left + other.shape[1]] = other
    return sheet


# What draws each picture, by its kind and, after a comma, its variant.
PICTURES: dict[str, Draw] = {
    **{f"graph paper, {spacing} pixels": partial(graph_paper, spacing) for spacing in (5, 8, 10, 16)},
    "hatching, 45 degrees": partial(hatched, (np.pi / 4,), 6),
    "hatching, 20 degrees": partial(hatched, (np.pi / 9,), 5),
    "cross hatching": partial(hatched, (np.pi / 4, -np.pi / 4), 8),
    "ordered dither, 4x4": partial(ordered_dither, 4),
    "ordered dither, 8x8": partial(ordered_dither, 8),
    "error diffusion": lambda dice: white(Image.fromarray(levels(scene(dice))).convert("1")),
    "random dither": lambda dice: scene(dice) > dice.random((200, 240)),
    "halftone": halftone,
    **{f"code, {size} a module": partial(code, n, size) for n, size in ((177, 1), (85, 2), (53, 3), (37, 5), (29, 8))},
    "data matrix": data_matrix,
    "bar code": bar_code,
    "dots, regular": partial(dots, 0.0),
    "dots, jittered": partial(dots, 1.6),
    "scatter plot": scatter_plot,
    "music": music,
    "table": table,
    "circuit": circuit,
    "map, contours": contours,
    "map, streets": streets,
    "floor plan": floor_plan,
    "mask": lambda dice: smooth(dice, 220, 280, 22) > 0.52,
    "silhouette": silhouette,
    "print, small": partial(page, 11),
    "print, large": partial(page, 26),
    "print, inverted": partial(page, 15, ground=0),
    "few words": partial(page, 15, lines=2),
    "blank": lambda dice: np.ones((200, 160), bool),
    "handwriting": handwriting,
    "icons": icons,
    "pixel art": pixel_art,
    **{f"chessboard, {square} pixels": partial(chessboard, square) for square in (2, 8, 16)},
    "maze, 1 pixel": partial(maze, 1),
    "maze, 5 pixels": partial(maze, 5),
    "line chart": line_chart,
    "bar chart": bar_chart,
    "stars": stars,
    "grain": lambda dice: smooth(dice, 200, 200, 0.5) > 0.5,
    "rings": lambda dice: np.hypot(*(np.indices((220, 220)) - 109.5)) % 9 > 2.2,
    "moire": moire,
    "cartoon": cartoon,
    "branches": branches,
    "digit sheet": digit_sheet,
    "grey map": grey_map,
    "grey gradient": lambda dice: (
        levels(0.5 + 0.5 * np.outer(np.cos(np.arange(160) / 55), np.sin(np.arange(200) / 40))) / 255
    ),
    "grey icons": grey_icon,
    "parts, four": partial(parts, 200, 4),
    "parts, sixteen": partial(parts, 140, 16),
    "parts, print around": print_around,
    "grey photograph": lambda dice: levels(scene(dice) + 0.15 * (smooth(dice, 200, 240, 1) - 0.5)) / 255,
}


def picture(name: str, seed: int = 0) -> np.ndarray:
    """The picture of a name, one of `PICTURES`."""
    return PICTURES[name](np.random.default_rng([7 + seed, *name.encode()]))
