"""What a test needs of the machine, with the reason that is printed where it is not there."""

import pytest

from covary.pipeline.reading_process import CAN_MEASURE

measured = pytest.mark.skipif(not CAN_MEASURE, reason="memory can be measured only where there is a /proc")
