"""`python -m covey.cli`, the same as `covey`."""

import sys

from covey.cli.run import main

sys.exit(main())
