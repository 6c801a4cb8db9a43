"""A bank at a glance: what it shows is true, harmless and changes nothing, in every state."""

import io
import re
import sys
import threading
from functools import reduce
from html import unescape
from operator import add
from xml.etree import ElementTree

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.description import describe
from kernelbank.bank.naming import kernel_name, method_name, short_name
from kernelbank.utils.rendering import (
    CELLS,
    number,
    one_line,
    render_html,
    render_text,
    shortened,
)

K = kb.kernels
Norma = kb.learners.Norma
SCRIPT = "<script>alert('x')</script>"
quiet = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def parsed(page):
    """The tree of the HTML; it holds nothing that runs, nothing from elsewhere, nothing too wide."""
    tree = ElementTree.fromstring(page)
    for element in tree.iter():
        assert element.tag in ["div", "table", "tbody", "tr", "th", "td", "details", "summary"]
        assert set(element.attrib) <= {"class", "style", "scope", "aria-hidden"}
        style = element.get("style", "")
        assert all(int(pixels) <= 700 for pixels in re.findall(r"(\d+)px", style))
        assert "url" not in style
        assert not re.search(r"#[0-9a-f]{3}|rgb|white;|black", style)
    return tree


def seen(bank):
    """Lines of the text, facts by label, and bars; the page shows the same facts and bars."""
    text = repr(bank)
    lines = text.split("\n")
    assert all(line.isprintable() for line in lines)
    tree = parsed(bank._repr_html_())
    assert tree[0].text == lines[0]
    glance = bank.status()
    assert text == str(bank) == glance.text()
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]
    for label, value in glance.facts:
        assert any(line.strip().startswith(label) and value in line for line in lines[1:])
        assert [label, value] in rows
    for name, share in glance.bars:
        assert any(number(share) in line and line.endswith(name) for line in lines[1:])
        assert [number(share), "", name] in rows
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


def small(task="regression", **settings):
    return kb.AutoBank(task, size="small", **settings)


# --- the drawing ------------------------------------------------------------------------------------


def test_bars_are_as_long_as_their_shares():
    bars = (("all", 0.8), ("half", 0.4), ("a little", 1e-9), ("nothing", 0.0), ("less", -0.2))
    lines = render_text("title", (), "weights", bars).split("\n")
    found = [re.fullmatch(r"    +(\S+) (.{20}) (.*)", line).groups() for line in lines[2:]]
    assert [name for *_, name in found] == [name for name, _ in bars]
    drawn = [bar.rstrip() for _, bar, _ in found]
    assert drawn == ["█" * CELLS, "█" * 10, "▏", "", "░" * 5]
    widths = re.findall(r"width:([0-9.]+)%", render_html("title", bars=bars))
    assert widths == ["100.0", "50.0", "0.0", "0.0", "25.0"]


def test_eighths_of_a_cell():
    for eighths in range(1, 160):
        line = render_text("", bars=(("", 1.0), ("", eighths / 160))).split("\n")[-1]
        bar = line[10:].rstrip()
        ends = " ▏▎▍▌▋▊▉"
        last = ends.index(bar[-1]) if bar[-1] in ends else 0
        assert 8 * bar.count("█") + last == eighths


@pytest.mark.parametrize("share", [np.nan, np.inf, -np.inf, 1e308, 5e-324, -1e-300])
def test_shares_of_any_size(share):
    for bars in ((("one", share), ("two", 0.5)), (("one", share),)):
        assert number(share) in render_text("title", bars=bars)
        parsed(render_html("title", bars=bars))


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "no such"])
def test_an_output_without_blocks_gets_plain_signs(monkeypatch, encoding):
    class Output(io.StringIO):
        pass

    Output.encoding = encoding
    monkeypatch.setattr(sys, "stdout", Output())
    text = render_text("title", bars=(("a", 1.0), ("b", -0.5)))
    assert text.encode("ascii")
    assert "#" * CELLS in text
    assert "-" * (CELLS // 2) in text
    monkeypatch.setattr(sys, "stdout", None)
    assert "█" in render_text("title", bars=(("a", 1.0),))


def test_nothing_that_is_given_gets_through_as_more_than_text():
    bad = f"{SCRIPT}\"'&amp;\n\x1b[31m\x00\u202e\ud800\tend"
    pairs = ((bad, bad),)
    drawn = (bad, pairs, bad, ((bad, 0.5),), bad)
    text, page = render_text(*drawn), render_html(*drawn, pairs)
    assert len(text.split("\n")) == 5
    assert text.replace("\n", "").isprintable()
    assert "<script" not in page
    words = list(parsed(page).itertext())
    assert words.count(one_line(bad)) == 8
    assert page.encode("utf-8")
    assert unescape(page).count(SCRIPT) == 8


def test_shortened():
    assert shortened("abcdefgh", 8) == "abcdefgh"
    assert shortened("abcdefghi", 8) == "abcde..."


# --- names ------------------------------------------------------------------------------------------


def test_kernels_as_formulas():
    g, p = K.Gaussian(1 / 3), K.Periodic(24.0)
    assert kernel_name(g) == "Gaussian(width=0.3333)"
    assert kernel_name(g + p) == "Gaussian(width=0.3333) + Periodic(period=24, width=1)"
    assert kernel_name((g + p) * g).startswith("(Gaussian(width=0.3333) + Per")
    assert (
        kernel_name(0.5 * (g + K.Linear())) == "0.5 * (Gaussian(width=0.3333) + Linear(offset=1))"
    )
    assert kernel_name(K.ActiveDims(g, [0, 2])) == "Gaussian(width=0.3333) on [0, 2]"
    assert (
        kernel_name(K.ActiveDims(g, range(9))) == "Gaussian(width=0.3333) on [0, 1, 2, 3, ... (9)]"
    )
    many = reduce(add, [K.Gaussian(float(w)) for w in range(1, 31)])
    assert kernel_name(many) == "Gaussian(width=1) + Gaussian(width=2) + 28 more"
    right = reduce(lambda total, k: k + total, [K.Gaussian(float(w)) for w in range(30, 0, -1)])
    assert kernel_name(right) == kernel_name(many)
    assert kernel_name(K.Custom(lambda X, Z: X @ Z.T, name=SCRIPT)) == f'Custom(name="{SCRIPT}")'


def test_learners_with_what_is_unusual_of_them():
    assert short_name(Norma()) == "Norma()"
    assert short_name(Norma(learning_rate=0.02)) == "Norma(learning_rate=0.02)"
    tree = kb.learners.PartitionTree(nodes=63)
    slot = kb.Slot(K.TreeKernel(), tree, loss="huber", residual_of=0)
    assert method_name(slot) == "PartitionTree(nodes=63), loss Huber(), residual of [0]"


def test_slots_are_told_apart_by_their_learners_if_these_differ():
    many = reduce(add, [K.Gaussian(float(w)) for w in range(1, 31)])
    slots = [kb.Slot(many, Norma(0.001)), kb.Slot(many, Norma(0.002))]
    bank = kb.KernelBank(slots=slots, combiner=kb.combiners.Uniform())
    bank.run(*sine(20))
    lines, facts, bars = seen(bank)
    assert bars[1][0].startswith("[1] Gaussian(width=1) + ")
    assert bars[1][0].endswith("28 more, Norma(learning_rate=0.002)")
    assert "learner" not in facts
    assert max(map(len, lines[1:])) <= 140
    own = small(slots=slots[:1])
    own.run(*numbers(20))
    assert seen(own)[2] == (("[0] Gaussian(width=1) + Gaussian(width=2) + 28 more", 1.0),)


# --- what is shown is true --------------------------------------------------------------------------


@pytest.mark.parametrize("combiner", [None, kb.combiners.OMKR(), kb.combiners.Uniform()])
def test_a_kernel_bank(combiner):
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 20), Norma(0.02), combiner, window=4)
    bank.run(*sine())
    lines, facts, bars = seen(bank)
    title = f"KernelBank(20 slots, {bank.combiner!r}, Squared(), window=4, regularization=0.01, "
    assert lines[0] == title + "200 samples)"
    assert facts["inputs"] == "1 column"
    assert facts["learner"] == "Norma(learning_rate=0.02)"
    assert "engine" not in facts
    assert "quarantined" not in facts
    ledger, weights = bank.ledger, bank.weights
    assert facts["mean loss"].startswith(f"{ledger.mean_loss:.4g}  (best slot alone, ")
    best = int(np.argmin(ledger.slot_loss))
    assert f"[{best}] Gaussian" in facts["mean loss"]
    assert facts["mean loss"].endswith(f": {ledger.slot_loss[best] / 200:.4g})")
    assert facts["cumulative cost"].startswith(f"{ledger.cumulative_cost:.4g}  (best")
    least = ledger.slot_cumulative_cost.min()
    assert f"[{ledger.best_slot}] Gaussian" in facts["cumulative cost"]
    assert facts["cumulative cost"].endswith(f": {least:.4g})")
    order = np.argsort(-np.abs(weights), kind="stable")
    count = min(5, int((weights != 0).sum()))
    assert [share for _, share in bars] == weights[order[:count]].tolist()
    for place, (name, _) in zip(order[:count], bars, strict=True):
        assert name == f"[{place}] Gaussian(width={bank.slots[place].kernel.width:.4g})"
    others = int((weights != 0).sum()) - count
    if others:
        share = weights[order[count : count + others]].sum()
        assert f"{number(share)} on {others} other" in lines[-1]
    if (weights == 0).any():
        assert lines[-1].endswith(f"{(weights == 0).sum()} without weight")


def test_settings_that_are_unusual_are_said():
    bank = kb.KernelBank(engine=kb.engines.Threads(2), dtype="float32")
    bank.run(*sine(5))
    _, facts, _ = seen(bank)
    assert facts["engine"].startswith("Threads(threads=2")
    assert facts["dtype"] == "float32"
    auto = small(engine=kb.engines.Threads(2), combiner=kb.combiners.Hedge(), lags=2)
    auto.run(*numbers(40))
    lines, facts, _ = seen(auto)
    assert lines[0] == "AutoBank('regression', lags=2, size='small'; 18 slots; 40 samples)"
    assert facts["engine"].startswith("Threads(threads=2")
    assert facts["combiner"] == "Hedge()"
    assert facts["inputs"] == "3 columns and 2 lagged targets"


def test_an_auto_bank():
    X, y = numbers(300)
    y[200:] = -4 * X[200:, 0]
    bank = small()
    bank.run(X, y)
    lines, facts, bars = seen(bank)
    assert lines[0] == "AutoBank('regression', size='small'; 18 slots; 300 samples)"
    mean, naive = bank.ledger.mean_loss, bank.ledger.baseline_loss
    assert facts["RMSE"] == (
        f"{mean**0.5:.4g} over 299 predictions  (baseline (last value): {naive**0.5:.4g})"
    )
    last, count = bank.ledger.changes[-1], len(bank.ledger.changes)
    assert facts["last change"].startswith(f"{last.what} after row {last.row} of 300 (the ")
    assert facts["last change"].endswith("only one)" if count == 1 else f"last of {count})")
    weights = bank.bank.weights
    order = np.argsort(-weights, kind="stable")[: min(5, (weights != 0).sum())]
    assert bars == tuple((bank.names[p], weights[p]) for p in order)
    assert "  weights" in lines


def test_a_level_of_a_column():
    X, y = numbers(200)
    X[150:, 1] += 1e6
    bank = small()
    bank.run(X, y)
    bank._model.changes = [c for c in bank._model.changes if c.what == "input level"]
    assert len(bank.ledger.changes) == 1
    expected = (
        f"input level of column 1 after row {bank.ledger.changes[0].row} of 200 (the only one)"
    )
    assert seen(bank)[1]["last change"] == expected


def test_more_than_two_classes_show_the_mean_over_their_banks():
    bank = small("classification")
    bank.run(*three(200))
    lines, facts, bars = seen(bank)
    shown = ", ".join(map(repr, bank.classes))
    assert facts["classes"] == f"3: {shown}"
    wrong, naive = bank.ledger.mean_loss, bank.ledger.baseline_loss
    count = bank.samples - 1
    own = f"{wrong:.2%} over {count} predictions"
    assert facts["error rate"] == f"{own}  (baseline (last value): {naive:.2%})"
    assert "  weights, mean of 3 banks (one per class)" in lines
    mean = np.mean([one.weights for one in bank.banks], axis=0)
    assert len({one.weights.tobytes() for one in bank.banks}) == 3
    for name, share in bars:
        assert share == mean[bank.names.index(name)]
    assert bars[0][1] == mean.max()
    two = small("classification")
    two.run(*three(60, ("a", "a", "b")))
    assert "  weights" in seen(two)[0]


def test_many_classes_are_not_all_named():
    X, _ = numbers(60)
    bank = small("classification")
    bank.run(X[:4], ["a" * 100, "b", "c", "d"])
    assert seen(bank)[1]["classes"] == "4: 'aaaaaaaaaaaaaaaa..., 'b', 'c', 'd'"
    named = small("classification", classes=range(50))
    named.run(X, np.arange(60) % 50)
    assert seen(named)[1]["classes"] == "50: 0, 1, 2, 3, 4, 5, ..."


def test_labels_cannot_write_html_or_to_the_terminal():
    bank = small("classification")
    bank.run(*three(40, (SCRIPT, "\x1b[2J\n", "\ud800&")))
    seen(bank)
    assert "<script" not in bank._repr_html_()
    assert "alert" in bank._repr_html_()


# --- before the first sample ------------------------------------------------------------------------


def test_one_line_before_anything_is_learned(tmp_path):
    bank = kb.KernelBank()
    line = (
        "KernelBank(20 slots, Simplex(evidence='window', horizon=100), Squared(), window=10, "
        "regularization=0.01, 0 samples)"
    )
    assert repr(bank) == line
    bank.predict_one(1.0)
    assert repr(bank) == line
    bank.learn_one(1.0, 1.0)
    assert "\n" in repr(bank)
    bank.reset()
    assert repr(bank) == repr(bank.fresh()) == line
    auto = kb.AutoBank(lags=1)
    assert repr(auto) == "AutoBank('regression', lags=1; 0 samples)"
    auto.predict_one([1.0, 2.0])
    assert repr(auto) == "AutoBank('regression', lags=1; 39 slots; 0 samples)"
    auto.save(tmp_path / "auto.kb")
    assert repr(kb.load(tmp_path / "auto.kb")) == repr(auto)
    auto.learn_one([1.0, 2.0], 3.0)
    assert "\n" in repr(auto)
    for one in (kb.KernelBank(), kb.AutoBank()):
        assert [element.tag for element in parsed(one._repr_html_())] == ["div", "details"]


def test_before_there_are_weights():
    bank = small()
    bank.run(*numbers(1))
    lines, facts, _ = seen(bank)
    assert "baseline" not in facts["RMSE"]
    assert lines[-1].strip() == "none yet: the slots start after 5 rows"
    bank.run(*numbers(3))
    assert "baseline" in seen(bank)[1]["RMSE"]
    one = small("classification")
    one.run(numbers(50)[0], ["on"] * 50)
    assert seen(one)[0][-1].strip() == "none yet: there is only one class"


# --- odd states -------------------------------------------------------------------------------------


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


class Wordless(kb.combiners.Combiner):
    def __repr__(self):
        raise RuntimeError("no words")

    def combine(self, objective, evidence, state, weights):
        return np.repeat(weights[None], len(evidence.slot_cost), axis=0)


def all_out():
    bank = kb.KernelBank([K.Linear(1.0), K.Polynomial(3), K.Gaussian(1.0)], Norma(20.0, 20))
    bank.run(*sine(300))
    assert len(bank.quarantined) == 3
    return bank


def beyond_floats():
    bank = kb.KernelBank(
        [K.Polynomial(3), K.Linear()], Norma(1e-9), kb.combiners.OMKR(learning_rate=1e6)
    )
    bank.run(*sine(300))
    assert not np.isfinite(bank.ledger.mean_loss)
    return bank


def models():
    adapter = kb.learners.Adapter(Mute())
    slots = [kb.Slot(K.NoKernel(), adapter), kb.Slot(K.Gaussian(1.0), Norma())]
    bank = kb.KernelBank(slots=slots)
    bank.run(*sine(30))
    assert bank.quarantined == (0,)
    return bank


def auto_models():
    adapter = kb.learners.Adapter(Mute())
    slots = [kb.Slot(K.NoKernel(), adapter), kb.Slot(K.Gaussian(1.0), Norma())]
    bank = small("classification", slots=slots, classes=["low", "mid", "high"])
    bank.run(*three(60))
    assert [one.quarantined for one in bank.banks] == [(0,)] * 3
    return bank


def auto_all_out():
    bank = small(slots=[kb.Slot(K.NoKernel(), kb.learners.Adapter(Mute()))])
    bank.run(*numbers(60))
    assert bank.bank.quarantined == (0,)
    return bank


def wordless():
    bank = kb.KernelBank(combiner=Wordless())
    bank.run(*sine(30))
    return bank


def deep():
    many = reduce(add, [0.5 * K.Gaussian(1.0 + w / 300) for w in range(100)])
    bank = kb.KernelBank([many, K.Custom(lambda X, Z: np.exp(-((X - Z.T) ** 2)), SCRIPT)])
    bank.run(*sine(20))
    return bank


def far_targets():
    bank = small(lags=2)
    X, y = numbers(60)
    y[57:] = 1e140
    X[30:, 0] = np.nan
    bank.run(X, y)
    return bank


def labels_of_all_kinds():
    bank = small("classification")
    bank.run(numbers(60)[0], [True, "", 2.5, 10**5000, "\n", -3] * 10)
    return bank


def late():
    bank = small("classification", lags=1)
    X, y = three(40)
    bank.run(X, y, delay=7)
    bank.predict_one(X[0])
    return bank


def river():
    from river import linear_model, preprocessing

    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    bank = kb.KernelBank(slots=[kb.Slot(K.NoKernel(), kb.learners.Adapter(model))])
    bank.run(*sine(20))
    return bank


STATES = [all_out, beyond_floats, models, auto_models, auto_all_out, wordless, deep]
STATES += [far_targets, labels_of_all_kinds, late, river]


@quiet
@pytest.mark.parametrize("make", STATES, ids=lambda make: make.__name__)
def test_every_state_can_be_looked_at(make):
    bank = make()
    lines, facts, bars = seen(bank)
    assert f"{bank.samples} samples)" in lines[0]
    assert len(lines) < 20
    assert max(map(len, lines[1:])) <= 140
    assert "<script" not in bank._repr_html_()
    if make is all_out:
        assert facts["quarantined"].startswith("3 of 3: [0] Linear(offset=1), ")
        assert "best slot" not in facts["mean loss"] + facts["cumulative cost"]
        assert lines[-1].strip() == "no slot has any weight"
        assert not bars
    if make is models:
        assert facts["quarantined"] == "1 of 2: [0] NoKernel(), Adapter(model=Mute)"
        assert "[1] Gaussian" in facts["mean loss"]
    if make is auto_models:
        expected = "1 of 2: [0] NoKernel(), Adapter(model=Mute) (in 3 of 3 banks)"
        assert facts["quarantined"] == expected
    if make is labels_of_all_kinds:
        assert facts["classes"] == r"6: True, '', 2.5, int, '\n', -3"
    if make is river:
        assert facts["learner"] == "Adapter(model=Pipeline)"


def test_weights_of_any_sign_and_size():
    """Those of a rule off the simplex may be negative, and grow beyond all floats."""
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8))
    bank.run(*sine(5))
    bank._runtime.weights[:] = [0.1, -0.9, 0.3, 0.0, 0.0, -0.2, 0.05, 0.01]
    lines, _, bars = seen(bank)
    assert [share for _, share in bars] == [-0.9, 0.3, -0.2, 0.1, 0.05]
    assert "-0.900 ░░░░░░░░░░░░░░░░░░░░ [1] Gaussian" in "\n".join(lines)
    assert lines[-1].strip() == "0.010 on 1 other, 2 without weight"
    bank._runtime.weights[:] = 1e308
    assert seen(bank)[0][-1].strip() == "inf on 3 others"
    bank._runtime.weights[:] = [np.nan, np.inf, -np.inf, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert [share for _, share in seen(bank)[2]] == [1.0]
    auto = small("classification")
    auto.run(*three(40))
    for one in auto.banks:
        one._runtime.weights[:] = 1e308
    seen(auto)


# --- looking changes nothing ------------------------------------------------------------------------


def state_of(bank):
    header, arrays = bank._describe() if isinstance(bank, kb.KernelBank) else describe(bank)
    return header, {name: array.tobytes() for name, array in arrays.items()}


@quiet
@pytest.mark.parametrize("kind", ["kernel", "threads", "numbers", "labels"])
def test_looking_changes_no_bit(kind):
    X, y = numbers(150)
    if kind == "labels":
        X, y = three(150)
    makers = {
        "kernel": lambda: kb.KernelBank(kb.gaussian_grid(0.1, 10, 7)),
        "threads": lambda: kb.KernelBank(kb.gaussian_grid(0.1, 10, 7), engine="threads"),
        "numbers": lambda: small(lags=1),
        "labels": lambda: small("classification"),
    }
    looked, alone = makers[kind](), makers[kind]()
    for x, target in zip(X, y, strict=True):
        repr(looked)
        assert looked.predict_one(x) == alone.predict_one(x)
        looked._repr_html_()  # between question and answer, where a bank keeps kernel values
        looked.learn_one(x, target)
        alone.learn_one(x, target)
    before = state_of(looked)
    repr(looked), looked._repr_html_()
    assert state_of(looked) == before == state_of(alone)


def finishes(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    return not thread.is_alive()


@pytest.mark.parametrize("make", [kb.KernelBank, small], ids=["KernelBank", "AutoBank"])
def test_a_look_waits_for_its_turn(make):
    bank = make()
    bank.run(*numbers(10))
    looks = []
    thread = threading.Thread(target=lambda: looks.append(repr(bank)), daemon=True)
    with bank._turn:
        thread.start()
        thread.join(0.2)
        assert not looks
        bank.learn_one(np.zeros(3), 1.0)
    thread.join(20)
    assert "11 samples" in looks[0]


def test_a_function_that_the_bank_calls_may_look_at_it():
    """From another thread than the one that holds the lock, too: nobody waits for ever."""
    looks = set()

    def looking(f, y):
        looks.add((threading.get_ident(), bank._repr_html_(), repr(bank)))
        return (f - y) ** 2

    loss = kb.losses.Custom(looking, lambda f, y: 2 * (f - y))
    engine = kb.engines.Threads(2)
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 1, 400), loss=loss, engine=engine, window=2)
    assert finishes(lambda: bank.run(*sine(20)))
    assert bank.samples == 20
    assert len({thread for thread, *_ in looks}) == 2
    assert all("\n" not in text for *_, text in looks)

    def watched(X, Z):
        lines.append(repr(auto))
        return np.exp(-((X - Z.T) ** 2))

    lines = []
    auto = small(slots=[kb.Slot(K.Custom(watched), Norma())], engine=engine)
    assert finishes(lambda: auto.run(np.arange(12.0), np.arange(12.0)))
    assert auto.samples == 12
    assert lines
    assert all("\n" not in line for line in lines)


def test_an_error_message_shows_a_bank_in_one_line():
    bank = small()
    bank.run(*numbers(20))
    with pytest.raises(kb.errors.InvalidArgument, match="got AutoBank") as caught:
        kb.KernelBank(loss=bank)
    assert "\n" not in str(caught.value)
