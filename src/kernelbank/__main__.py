"""`python -m kernelbank` is `kernelbank`."""

from .cli import main

main()
