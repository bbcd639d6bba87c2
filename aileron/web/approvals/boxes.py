"""A text in a box: it scrolls by itself where it is long, by keyboard too, and says whether one was at its end."""

from __future__ import annotations

from twisted.web.template import Tag, tags

from .reading import Reading


def box(found: Reading, name: str, label: str = "", *, code: bool = False) -> Tag:
    """C{found} in a box.

    :param name: its id in the page.
    :param label: what it is called where the page says that it was not read to its end; else nobody waits for that.
    :param code: each character as wide as the others.
    """
    long = found.must_read
    classes = ("text", "code" if code else "", "long" if long else "")
    waits = "yes" if long and label else "no"
    marks = {"class": " ".join(filter(None, classes)), "data-must-read": waits, "data-label": label}
    return tags.div(found.text, tags.span(**{"class": "end"}), id=name, tabindex="0" if long else "-1", **marks)
