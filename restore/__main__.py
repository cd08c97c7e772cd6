"""`python -m restore` is `restore`; so that torchrun can start it in several processes."""

from restore.cli import main

main()
