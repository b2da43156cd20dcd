"""The tests, a package of modules that share generators and references."""

import os
import sys

# Child processes import jaxte, and each worker collects four hundred modules: where Python is told to keep no bytecode, compiling the modules
# is a second for each child, and half of the time of collecting.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
