"""``python -m heddle worker module:store``"""
import sys


def main() -> int:
    if sys.argv[1:2] == ["worker"]:
        from .worker import main as worker

        return worker(sys.argv[2:])
    print("usage: python -m heddle worker module:store [--processes N]", file=sys.stderr)
    return 2


raise SystemExit(main())
