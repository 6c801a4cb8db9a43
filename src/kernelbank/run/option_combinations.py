"""Which options of a run exclude or need one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import RunRefused
from .option_spec import flag, option_text

if TYPE_CHECKING:
    from .options import RunOptions

REDIS_SCHEMES = ("redis://", "rediss://")


def check_combinations(options: RunOptions) -> None:
    """Refuse options that do not go together."""
    if options.ray_address is not None and options.engine != "ray":
        raise RunRefused("--ray-address needs --engine ray.")
    if options.ray_allow_unauthenticated and options.engine != "ray":
        raise RunRefused("--ray-allow-unauthenticated needs --engine ray.")
    if options.shards is not None and options.engine == "serial":
        raise RunRefused("--shards needs --engine threads or --engine ray.")
    if options.complete and options.follow:
        raise RunRefused(
            "--complete is for a source that does not grow, --follow for one that does. Give "
            "one of them."
        )
    if options.allow_gaps and not (options.is_broker or options.follow):
        raise RunRefused("--allow-gaps needs a source in Redis or Kafka, or --follow.")
    if len(options.targets) > 1:
        _check_several_targets(options)
    _check_bounds(options)
    _check_classes(options)
    _check_predictions(options)


def _check_several_targets(options: RunOptions) -> None:
    what = f"--target names {len(options.targets)} columns"
    if options.task == "classification":
        raise RunRefused(f"{what}, which must be numbers; with --task classification name one.")
    if options.seasons:
        raise RunRefused(f"{what}; with --seasons name one, and run the others by themselves.")
    if options.preset != "auto":
        raise RunRefused(f"{what}; with --preset {options.preset} name one.")


def _check_bounds(options: RunOptions) -> None:
    lower, upper = options.lower, options.upper
    for name, bound in (("lower", lower), ("upper", upper)):
        if bound is not None and options.task == "classification":
            raise RunRefused(
                f"{flag(name)} is for numbers; with --task classification leave it out."
            )
    if lower is not None and upper is not None and not lower < upper:
        raise RunRefused(f"--lower must be less than --upper; got {lower:g} and {upper:g}.")


def _check_classes(options: RunOptions) -> None:
    for name in ("classes", "max_classes"):
        if getattr(options, name) is not None and options.task != "classification":
            raise RunRefused(f"{flag(name)} needs --task classification.")
    if options.classes is None:
        return
    if options.max_classes is not None:
        raise RunRefused(
            "--max-classes is for labels that are found in the stream; with --classes leave it out."
        )
    labels = options.labels or ()
    if len(labels) < 2 or len(set(labels)) < len(labels):
        given = option_text(options.classes)
        raise RunRefused(f"--classes must name at least two labels, none twice; got {given}.")


def _check_predictions(options: RunOptions) -> None:
    address = options.predictions
    to_redis = address is not None and address.startswith(REDIS_SCHEMES)
    if options.redis_wait and not to_redis:
        raise RunRefused("--redis-wait needs --predictions redis://host:port/stream.")
    if options.redis_password_file and not (to_redis or options.source.startswith(REDIS_SCHEMES)):
        raise RunRefused("--redis-password-file needs a source or --predictions in Redis.")
    if address is None or to_redis:
        return
    if "://" in address or not address.endswith((".csv", ".parquet")):
        from ..io.brokers import without_password  # which the help must not import

        raise RunRefused(
            "--predictions must end with .csv or .parquet, or be redis://host:port/stream; "
            f"got {without_password(address)}."
        )
