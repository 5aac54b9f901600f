"""`python -m paddlecli` is the command `paddlecli`."""

import sys

from paddlecli.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
