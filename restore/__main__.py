"""`python -m restore` is the `restore` command; torchrun starts it in several processes this way."""

from restore.cli import main

if __name__ == "__main__":  # what only looks at the package's modules does not run the command
    main()
