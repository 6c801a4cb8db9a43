"""Streams, banks and parsers for the tests of what a bank shows."""

import threading
from xml.etree import ElementTree

import numpy as np

import kernelbank as kb
from kernelbank.utils.rendering import (
    number,
)

SCRIPT = "<script>alert('x')</script>"


def parsed_html(page):
    """The tree of the HTML; it holds nothing that runs, nothing from elsewhere, no colours."""
    tree = ElementTree.fromstring(page)
    for element in tree.iter():
        assert element.tag in ["div", "pre"]
        assert set(element.attrib) <= {"class", "style"}
        assert element.get("style") in (None, "overflow-x:auto")
    return tree


def shown(bank):
    """Lines of the text, facts by label, and bars; the page shows the same text."""
    text = repr(bank)
    lines = text.split("\n")
    assert all(line.isprintable() for line in lines)
    tree = parsed_html(bank._repr_html_())
    assert tree[0].text == text
    glance = bank.status()
    assert text == str(bank) == glance.text()
    for label, value in glance.facts:
        assert any(line.strip().startswith(label) and value in line for line in lines[1:])
    for name, share in glance.bars:
        assert any(number(share) in line and line.endswith(name) for line in lines[1:])
    if glance.rest:
        assert lines[-1].strip() == glance.rest
    return lines, dict(glance.facts), glance.bars


def sine(count=200):
    x = np.arange(float(count))
    return x, np.sin(x / 7) + 0.2 * np.random.default_rng(0).normal(size=count)


def numbers(count, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(count, 3))
    return X, 5 + 2 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * draw.normal(size=count)


def three(count, names=("low", "mid", "high")):
    X, y = numbers(count)
    return X, [names[k] for k in np.digitize(y, [4.0, 6.0])]


def small_auto(task="regression", **settings):
    return kb.AutoBank(task, size="small", **settings)


class Mute:
    """A model that fails after some rows and cannot say what it is."""

    seen = 0

    def __repr__(self):
        raise RuntimeError("no words")

    def predict_one(self, x):
        return 1.0

    def learn_one(self, x, y):
        self.seen += 1
        if self.seen > 8:
            raise RuntimeError("enough")


def finishes(work):
    """Whether the work is done in another thread within 20 seconds."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    return not thread.is_alive()
