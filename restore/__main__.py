"""`python -m restore` is the `restore` command; torchrun starts it in several processes this way."""

from restore.cli import main

main()
