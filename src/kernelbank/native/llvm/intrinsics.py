"""Functions inside compiled code whose LLVM is written by hand."""

from numba.extending import intrinsic


def make_intrinsic(count, accepted, operand, result, emit):
    """An intrinsic of `count` arguments of the accepted types, each cast to the type `operand`.

    `emit(builder, ...)` writes its LLVM and returns a value of the type `result`.
    """

    def typed(typingctx, *arguments):
        if not all(isinstance(argument, accepted) for argument in arguments):
            return None

        def codegen(context, builder, sig, args):
            pairs = zip(args, sig.args, strict=True)
            return emit(builder, *[context.cast(builder, v, t, operand) for v, t in pairs])

        return result(*arguments), codegen

    # Numba counts the parameters of an intrinsic, so each count needs its own function.
    makers = {
        1: lambda typingctx, x: typed(typingctx, x),
        2: lambda typingctx, x, y: typed(typingctx, x, y),
        3: lambda typingctx, x, y, z: typed(typingctx, x, y, z),
        4: lambda typingctx, w, x, y, z: typed(typingctx, w, x, y, z),
    }
    return intrinsic(makers[count])
