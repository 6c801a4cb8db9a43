"""`python -m kernelbank` is `kernelbank`."""

from .app.cli import main

main()
