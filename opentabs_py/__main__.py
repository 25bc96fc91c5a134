"""`python -m opentabs_py` is `opentabs`."""

from opentabs_py.cli import main

main()
