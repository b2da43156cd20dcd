"""The scalar functions of the language.

Each function takes scalar expressions, index expressions, Python numbers and whole Tensors (elementwise, with
broadcasting). Its name is the one in ``jax.numpy``, ``jax.nn`` or ``jax.scipy.special``, whose values, dtypes and
derivatives it has.
"""

from __future__ import annotations

from jaxte.lang.functions import choices, composed, elementwise, numbers, special
from jaxte.lang.functions.choices import *  # noqa: F403
from jaxte.lang.functions.composed import *  # noqa: F403
from jaxte.lang.functions.elementwise import *  # noqa: F403
from jaxte.lang.functions.numbers import *  # noqa: F403
from jaxte.lang.functions.special import *  # noqa: F403
from jaxte.lang.scalars.rows import Form, Function
from jaxte.lang.scalars.table import TABLE

__all__ = ["TABLE", "Form", "Function"]
__all__ += numbers.__all__ + choices.__all__ + elementwise.__all__ + special.__all__ + composed.__all__
