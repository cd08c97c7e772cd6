"""Pictures whose content is as small as dirt: accents, Arabic points, leaders, Braille, dots of maps and printers.

True is ink. Fonts are those of `families_for_tests`, or for tuning those that priors learn from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from training.data.pages import Family

HEIGHT, WIDTH = 420, 700

LATIN = (
    "Über öde Äcker fährt jäh ein Güterzug; im Süden blühen Bäume, während müde Jäger schöne Füchse jagen: à côté, "
    "déjà, çà et là, naïve façon, señor, piñata, žluťoučký kůň úpěl ďábelské ódy."
)
ARABIC = "إنه لمن الحقائق المعترف بها أن الرجل الأعزب الذي يملك ثروة طيبة لا بد أن يكون في حاجة إلى زوجة وشيخ ثبت"
HEADS = ("Introduction", "1. Fixed points", "2. Priors of pages", "3.1 Dots and lines", "4. Filling", "Index: i to z")

Sheet = tuple[Image.Image, ImageDraw.ImageDraw]
Fonts = Sequence[Family]


def _sheet() -> Sheet:
    image = Image.new("L", (WIDTH, HEIGHT), 255)
    return image, ImageDraw.Draw(image)


def _ink(image: Image.Image, below: int = 128) -> np.ndarray:
    return np.asarray(image) < below


def _font(fonts: Fonts, dice: np.random.Generator, size: int, glyph: str = "e") -> ImageFont.FreeTypeFont:
    """A font of some size that has a glyph."""
    for place in dice.permutation(len(fonts)):
        font = ImageFont.truetype(fonts[place][0], size)
        missing, own = (bytes(font.getmask(sign)) for sign in ("\uffff", glyph))
        if own != missing:
            return font
    raise LookupError(f"no font has {glyph}")


def _text(text: str, glyph: str, fonts: Fonts, dice: np.random.Generator, below: int = 128) -> np.ndarray:
    words = text.split()
    image, draw = _sheet()
    font, place, top = _font(fonts, dice, int(dice.integers(17, 26)), glyph), int(dice.integers(20)), 22
    while top < HEIGHT - 50:
        line = words[place % len(words)]
        while draw.textlength(longer := f"{line} {words[(place + 1) % len(words)]}", font) < WIDTH - 60:
            line, place = longer, place + 1
        place += 1
        draw.text((30, top), line, 0, font)
        top += int(1.5 * font.size)
    return _ink(image, below)


def accents(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    return _text(LATIN, "ů", fonts, dice)


def arabic(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    return _text(ARABIC, "ش", fonts, dice)


def thin_arabic(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    """Of which most letters are no larger than specks."""
    return _text(ARABIC, "ش", fonts, dice, below=60)


def leaders(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    image, draw = _sheet()
    font = _font(fonts, dice, int(dice.integers(16, 23)))
    for number, head in enumerate(HEADS):
        top, left = 30 + 60 * number, 38 + draw.textlength(head, font)
        draw.text((30, top), head, 0, font)
        draw.text((left, top), "." * int((615 - left) / draw.textlength(".", font)), 0, font)
        draw.text((630, top), str(dice.integers(7, 300)), 0, font)
    return _ink(image)


def braille(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    image, draw = _sheet()
    for top in range(30, HEIGHT - 60, 48):
        for left in range(30, WIDTH - 40, 30):
            for dot in np.flatnonzero(dice.random(6) < 0.5 * (dice.random() > 0.15)):
                x, y = left + 11 * (dot % 2), top + 11 * (dot // 2)
                draw.ellipse((x, y, x + 4, y + 4), 0)
    return _ink(image)


def dotted_map(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    image, draw = _sheet()
    font = _font(fonts, dice, 13)
    for _ in range(6):
        walk = dice.normal(0, 9, (90, 2)).cumsum(0) + dice.integers((50, 40), (650, 380))
        draw.line([tuple(place) for place in walk], 0, 2)
    for number in range(40):
        x, y = dice.integers((20, 20), (660, 390))
        draw.ellipse((x, y, x + 4, y + 4), 0)
        if number % 2:
            draw.text((x + 7, y - 6), str(dice.choice(("Ulm", "Lindau", "Vils", "Rhein"))), 0, font)
    for x, y in dice.integers((350, 200), (550, 380), (250, 2)):
        draw.rectangle((x, y, x + 1, y + 1), 0)
    return _ink(image)


def punched_card(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    image, draw = _sheet()
    font = _font(fonts, dice, 9)
    draw.rectangle((20, 20, 680, 400), outline=0, width=2)
    for row in range(10):
        for column in range(60):
            x, y = 40 + 10.4 * column, 45 + 34 * row
            if dice.random() < 0.2:
                draw.rectangle((x, y, x + 4, y + 14), 0)
            else:
                draw.text((x, y + 3), str(row), 0, font)
    return _ink(image)


def dot_matrix(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    """Print of a needle printer, each dot apart."""
    image = Image.new("L", (136, 80), 255)
    draw, font = ImageDraw.Draw(image), _font(fonts, dice, 11)
    for line in range(5):
        draw.text((3, 1 + 15 * line), f"NO: {dice.integers(10**6)} TOTAL: {dice.uniform(0, 999):.2f}", 0, font)
    found = np.zeros((HEIGHT, WIDTH), bool)
    for row, column in 5 * np.argwhere(np.asarray(image) < 110) + 10:
        found[row : row + 3, column : column + 3] = True
    return found


def form(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    """Boxes to tick, and dotted rules to write on."""
    image, draw = _sheet()
    font = _font(fonts, dice, 17)
    for row in range(8):
        top = 30 + 46 * row
        draw.rectangle((30, top, 46, top + 16), outline=0, width=2)
        draw.text((60, top - 3), f"Name of item {row + 1}:", 0, font)
        for x in range(250, 660, 5):
            draw.rectangle((x, top + 16, x + 1, top + 17), 0)
    return _ink(image)


def screened_plan(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    """A plan with a room of dots, and dashed lines."""
    image, draw = _sheet()
    draw.rectangle((60, 60, 260, 260), outline=0, width=3)
    draw.rectangle((300, 60, 640, 360), outline=0, width=4)
    draw.line((300, 200, 640, 200), 0, 4)
    for x in range(310, 636, 12):
        for y in range(210, 355, 12):
            draw.rectangle((x, y, x + 1, y + 1), 0)
    for x in range(60, 260, 14):
        draw.line((x, 300, x + 7, 300), 0, 2)
    draw.text((340, 100), f"Room {dice.integers(9)}.02: 14.5 m²", 0, _font(fonts, dice, 16))
    return _ink(image)


def birds(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    """A silhouette of hills below birds."""
    image, draw = _sheet()
    draw.ellipse((80, 120, 360, 330), 0)
    draw.polygon(((400, 350), (520, 120), (660, 360)), 0)
    for x, y in dice.integers((30, 15), (660, 90), (14, 2)):
        draw.polygon(((x, y), (x + 5, y + 3), (x + 10, y), (x + 5, y + 6)), 0)
    return _ink(image)


def chart(fonts: Fonts, dice: np.random.Generator) -> np.ndarray:
    """Stars of 1 to 6 pixels a side on a page of print."""
    page = np.concatenate([_text(LATIN, "ů", fonts, dice), np.zeros((HEIGHT, WIDTH), bool)])
    for _ in range(dice.integers(40, 140)):
        (top, left), side = dice.integers((HEIGHT + 20, 120), (2 * HEIGHT - 60, WIDTH - 120)), dice.integers(1, 7)
        page[top : top + side, left : left + side] = True
    return np.concatenate([page, _text(LATIN, "ů", fonts, dice)])


CONTENT: dict[str, Callable[[Fonts, np.random.Generator], np.ndarray]] = {
    "accents": accents,
    "Arabic": arabic,
    "Arabic, thin": thin_arabic,
    "leaders": leaders,
    "Braille": braille,
    "dotted map": dotted_map,
    "punched card": punched_card,
    "dot matrix": dot_matrix,
    "form": form,
    "screened plan": screened_plan,
    "birds": birds,
    "chart in print": chart,
}
