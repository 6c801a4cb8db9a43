"""The machine code of one compiled function, for a level of processors, as an object file."""

from __future__ import annotations

import hashlib
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba

from ..library import LEVELS
from .fingerprint import fingerprint


def object_name(function: Any, level: str) -> str:
    """The name of a function's object file: it changes with the code behind the function."""
    arguments = getattr(function, "arguments", None)
    fields = "" if arguments is None else repr((arguments.name, arguments.fields))
    parts = [fingerprint(function.function), fields, repr(getattr(function, "start", ""))]
    parts += [type(function).__name__, numba.__version__, llvmlite.__version__]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
    return f"{function.symbol}-{level}-{digest}.o"


def emit(function: Any, level: str) -> bytes:
    """The object file of a function, with one symbol."""
    compiled = function.compile()
    library = compiled._library
    native = library.get_function(compiled.native_name.removeprefix("cfunc.")).name
    module = llvm.parse_assembly(library.get_llvm_str())
    # The parameters of the native function are: result, exception, then the C function's own.
    count = len(list(module.get_function(native).arguments)) - 2
    kinds = [str(a.type) for a in module.get_function(native).arguments][2:]
    declared = ", ".join(["ptr", "ptr", *kinds])
    own = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(kinds))
    wrapper = llvm.parse_assembly(f"""
        declare i32 @"{native}"({declared})
        define void @"{function.symbol}"({own}) {{
          %result = alloca ptr
          %error = alloca ptr
          %status = call i32 @"{native}"(ptr %result, ptr %error{", " if count else ""}{own})
          ret void
        }}""")
    module.link_in(wrapper)
    for item in [*module.functions, *module.global_variables]:
        if not item.is_declaration and item.name != function.symbol:
            item.linkage = "internal"
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(cpu=level, features=LEVELS[level], opt=3, reloc="pic")
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return bytes(machine.emit_object(module))
