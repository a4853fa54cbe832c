"""Lets `python -m pagewise` start the command line."""

import sys

from pagewise.core.errors import missing_package

if __name__ == "__main__":
    try:
        from pagewise.cli import main
    except ImportError as fault:
        missing = missing_package(fault)
        if missing is None:
            raise
        print(f"pagewise: error: {missing}", file=sys.stderr)
        sys.exit(missing.exit_code)
    main()
