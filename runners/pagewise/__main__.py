"""Lets `python -m pagewise` start the command line."""

from pagewise.cli import main

if __name__ == "__main__":
    main()
