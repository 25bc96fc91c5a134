"""`python -m opentabs_py` runs `opentabs`."""

from opentabs_py.cli import main

main()
