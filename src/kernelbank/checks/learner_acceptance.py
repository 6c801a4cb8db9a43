"""Which kernels and losses a learner accepts, and whether it refuses the others clearly."""

from __future__ import annotations

from ..bank.layout import Slot
from ..errors import CheckFailed, InvalidArgument
from ..kernels import Gaussian, Kernel, Linear, NoKernel, TreeKernel
from ..learners import Learner
from ..losses import BUILT_IN as LOSSES
from ..losses import Loss, as_loss
from .bank_fixture import BankFixture
from .context import CheckContext, shown

_WINDOWS, _RIDGES = (4, 2, 1), (0.05, 0.001, 0.0)
_WIDTHS = (2, 1, 3, 5, 16, 64, 256, 1024)
RAISES = "See the exception above this one for the line; a small bank raises it too."


def check_acceptance(
    context: CheckContext, learner: Learner, kernel: Kernel | None, loss: Loss | str | None
) -> BankFixture:
    """Offer kernels and losses; the first fixture that is accepted."""
    kernels = [Gaussian(0.6), Linear(0.5), TreeKernel(), NoKernel()] if kernel is None else [kernel]
    names = sorted(LOSSES, key=lambda name: name != "squared")
    losses = [as_loss(name) for name in names] if loss is None else [as_loss(loss)]
    accepted: list[BankFixture] = []
    refusals: list[InvalidArgument] = []
    for some_kernel in kernels:
        width = _width(some_kernel)
        for some_loss in losses if not accepted else losses[:1]:
            tried = _try(context, learner, some_kernel, some_loss, width)
            if isinstance(tried, BankFixture):
                _check_start(context, tried)
                accepted.append(tried)
            else:
                refusals.append(tried)
    if not accepted:
        raise context.fails(
            "accepting some kernel and loss",
            f"every kernel and loss was refused; the last one with: {refusals[-1]}",
            "A bank asks the learner's check_kernel and check before it makes a slot.",
            "Give check_learner the kernel and the loss that it is made for.",
        )
    return accepted[0]


def _width(kernel: Kernel) -> int:
    for width in _WIDTHS:
        try:
            kernel.check_width(width, "X")
        except InvalidArgument:
            continue
        return width
    return _WIDTHS[0]


def _try(
    context: CheckContext, learner: Learner, kernel: Kernel, loss: Loss, width: int
) -> BankFixture | InvalidArgument:
    refusal: InvalidArgument | None = None
    for window in _WINDOWS:
        for ridge in _RIDGES:
            fixture = BankFixture(Slot(kernel, learner), loss, window, ridge, width)
            try:
                fixture.bank()
                return fixture
            except InvalidArgument as error:
                refusal = refusal or error
            except Exception as error:
                raise _unclear(context, fixture, error) from error
    assert refusal is not None
    if not any(word in str(refusal) for word in ("kernel", "loss", "window", "regularization")):
        raise _unclear(context, fixture, refusal) from refusal
    return refusal


def _unclear(context: CheckContext, fixture: BankFixture, error: Exception) -> CheckFailed:
    return context.fails(
        "clear about what it refuses",
        f"with {fixture.slot.kernel!r} and {fixture.loss!r} a bank was refused by "
        f"{type(error).__name__}: {error}",
        "The user must be told which argument of the bank is wrong.",
        "In check_kernel(kernel) or check(objective), raise kb.errors.InvalidArgument(\"'loss' "
        'must be ...; got .... Use ..."): the argument, the rule, the value, the remedy.',
    )


def _check_start(context: CheckContext, fixture: BankFixture) -> None:
    X, y = fixture.stream(12)
    doing = f"while learning with {fixture.slot.kernel!r} and {fixture.loss!r}"
    with context.works(doing, RAISES + " Refuse in check or check_kernel what it cannot use."):
        trace = fixture.bank().run(X, y)
    first = float(trace.slot_predictions[0, fixture.index])
    if first != 0:
        raise context.fails(
            "0 before the first sample",
            f"the first prediction, at x = {shown(X[0])}, is {first!r}.",
            "A bank without samples predicts 0 without asking its slots; they must agree.",
            "Let the function start at 0; learn an offset from the first target on.",
        )
