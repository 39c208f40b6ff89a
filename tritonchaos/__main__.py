"""`python -m tritonchaos`."""

from tritonchaos.cli.app import main

main()
