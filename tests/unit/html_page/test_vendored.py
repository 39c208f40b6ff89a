import hashlib
import re
from pathlib import Path

import tritonchaos.html_page

VENDOR = Path(tritonchaos.html_page.__file__).parent / "vendor"


def test_what_others_wrote_is_as_it_was_published_with_its_licence() -> None:
    noted = dict(re.findall(r"`([^`]+)` \| npm .*`([0-9a-f]{64})`", (VENDOR / "README.md").read_text()))
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in VENDOR.glob("*.*s")}
    assert len(found) == 2
    assert noted == found
    assert "MIT License" in (VENDOR / "uPlot.LICENSE").read_text()
