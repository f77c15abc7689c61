"""`python -m tamias` is the same as `tamias`."""

from tamias.cli.main import main

main()
