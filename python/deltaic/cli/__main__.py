"""`python -m deltaic.cli`: the command where no script is on the path."""

from deltaic.cli import main

main()
