"""States of objects of the core, changed by hand."""


def put(part, **arrays):
    """Let an object go on from its state with some other arrays; it refuses impossible ones."""
    part.restore(part.state() | arrays)


def put_entry(part, name, index, value):
    """The same with another number in one of its arrays."""
    array = part[name]
    array[index] = value
    put(part, **{name: array})
