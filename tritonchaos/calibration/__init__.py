"""Shows what a set-up can see, by planted leaks of falling size and their clean twins on the user's own target."""

from tritonchaos.calibration.calibrating import Order, calibrate
from tritonchaos.calibration.document import Calibration, document
from tritonchaos.calibration.keeping import write_files
from tritonchaos.calibration.page import page

__all__ = ["Calibration", "Order", "calibrate", "document", "page", "write_files"]
