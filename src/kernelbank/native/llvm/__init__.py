"""What turns compiled functions into machine code, by Numba and LLVM.

Imported only where functions are compiled: when the library is built, or just in time where there
is none. Users of a wheel never import it, and need no Numba.
"""
