"""A bundle in a container of the CPU image, without network: it reproduces, and its clean twin does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorded_runs import TEMPLATE_SCENARIO, hanging_events, write_run
from tritonchaos.native import missing_compiler
from tritonchaos.plugins import load_plugins
from tritonchaos.reproducing import BundleOptions, Where, verify_bundle, write_bundle
from tritonchaos.templates import find_template

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(missing_compiler() is not None, reason="the planted backend needs a C compiler"),
]


def test_a_hang_in_a_container(tmp_path: Path, cpu_image: str) -> None:
    load_plugins()
    served = find_template("identity").serve("ident", {"plant": [{"what": "hang", "when": "failed"}]}, "planted")
    scenario = TEMPLATE_SCENARIO.replace("flags: {", "flags: {exit-timeout-secs: 1, ")
    run = write_run(tmp_path / "run", hanging_events(deadline_s=2.0), model=served.files, scenario=scenario)
    archive = write_bundle(run, tmp_path / "bundle", BundleOptions()).archive
    where = Where(image=cpu_image)
    found = verify_bundle(archive, where, clean_twin=False, deadline_s=200.0)
    assert found.exit_code == 1, found.text
    assert "/opt/tritonserver/bin/tritonserver" in found.text
    twin = verify_bundle(archive, where, clean_twin=True, deadline_s=200.0)
    assert twin.exit_code == 0, twin.text
