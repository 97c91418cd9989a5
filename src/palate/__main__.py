"""`python -m palate`: the command line where the script is not on the path."""

from palate.cli import main

main()
