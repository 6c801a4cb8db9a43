"""Which kernels and losses a learner takes, and whether it says so."""

from __future__ import annotations

from ..bank.layout import Slot
from ..errors import CheckFailed, InvalidArgument
from ..kernels import Gaussian, Kernel, Linear, NoKernel, TreeKernel
from ..learners import Learner
from ..losses import BUILT_IN as LOSSES
from ..losses import Loss, as_loss
from .game import Game
from .subject import Subject, shown

_WINDOWS, _RIDGES = (4, 2, 1), (0.05, 0.001, 0.0)
_WIDTHS = (2, 1, 3, 5, 16, 64, 256, 1024)
RAISES = "See the exception above this one for the line; a small bank raises it too."


def check_offers(
    subject: Subject, learner: Learner, kernel: Kernel | None, loss: Loss | str | None
) -> Game:
    """Offer kernels and losses; the first game that is taken."""
    kernels = [Gaussian(0.6), Linear(0.5), TreeKernel(), NoKernel()] if kernel is None else [kernel]
    names = sorted(LOSSES, key=lambda name: name != "squared")
    losses = [as_loss(name) for name in names] if loss is None else [as_loss(loss)]
    taken: list[Game] = []
    refusals: list[InvalidArgument] = []
    for some_kernel in kernels:
        width = _width(some_kernel)
        for some_loss in losses if not taken else losses[:1]:
            offered = _offer(subject, learner, some_kernel, some_loss, width)
            if isinstance(offered, Game):
                _check_start(subject, offered)
                taken.append(offered)
            else:
                refusals.append(offered)
    if not taken:
        raise subject.fails(
            "willing to learn",
            f"every kernel and loss offered was refused; the last time with: {refusals[-1]}",
            "A bank asks the learner's check_kernel and check before it makes a slot.",
            "Give check_learner the kernel and the loss that it is made for.",
        )
    return taken[0]


def _width(kernel: Kernel) -> int:
    for width in _WIDTHS:
        try:
            kernel.check_width(width, "X")
        except InvalidArgument:
            continue
        return width
    return _WIDTHS[0]


def _offer(
    subject: Subject, learner: Learner, kernel: Kernel, loss: Loss, width: int
) -> Game | InvalidArgument:
    refusal: InvalidArgument | None = None
    for window in _WINDOWS:
        for ridge in _RIDGES:
            game = Game(Slot(kernel, learner), loss, window, ridge, width)
            try:
                game.bank()
                return game
            except InvalidArgument as error:
                refusal = refusal or error
            except Exception as error:
                raise _unclear(subject, game, error) from error
    assert refusal is not None
    if not any(word in str(refusal) for word in ("kernel", "loss", "window", "regularization")):
        raise _unclear(subject, game, refusal) from refusal
    return refusal


def _unclear(subject: Subject, game: Game, error: Exception) -> CheckFailed:
    return subject.fails(
        "clear about what it does not take",
        f"with {game.slot.kernel!r} and {game.loss!r} a bank was refused by "
        f"{type(error).__name__}: {error}",
        "Whoever makes the bank must learn which of its arguments is wrong.",
        "In check_kernel(kernel) or check(objective), raise kb.errors.InvalidArgument(\"'loss' must "
        'be ...; got .... Use ..."): the argument, the rule, the value, the remedy.',
    )


def _check_start(subject: Subject, game: Game) -> None:
    X, y = game.stream(12)
    doing = f"while learning with {game.slot.kernel!r} and {game.loss!r}"
    with subject.works(doing, RAISES + " Refuse what it cannot take in check or check_kernel."):
        trace = game.bank().run(X, y)
    first = float(trace.slot_predictions[0, game.place])
    if first != 0:
        raise subject.fails(
            "0 before the first sample",
            f"the first prediction, at x = {shown(X[0])}, is {first!r}.",
            "A bank without samples predicts 0 and does not ask; its first round must agree.",
            "Let the function start at 0; learn an offset from the first target on.",
        )
