"""Collections that can be told about blocks."""

import re
from typing import Optional

from mxnet.gluon import Block

from tornasole.core.collection import Collection as BaseCollection
from tornasole.exceptions import SMDebugTypeError


class Collection(BaseCollection):
    """A named group of tensors, which can be the inputs and outputs of blocks."""

    def add_block_tensors(
        self,
        block: Block,
        inputs: bool = False,
        outputs: bool = True,
        *,
        input: Optional[bool] = None,  # the older spellings
        output: Optional[bool] = None,
    ) -> None:
        """The inputs and outputs of this block belong to the collection. ``input``, ``output`` are older spellings."""
        if not isinstance(block, Block):
            raise SMDebugTypeError(f"add_block_tensors: {block!r} is not allowed; allowed: a block of Gluon")
        start = "^" + re.escape(block.name)
        if inputs if input is None else input:
            self.include(f"{start}_input_")
        if outputs if output is None else output:
            self.include(f"{start}_output_")
