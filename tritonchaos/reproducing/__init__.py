"""Makes a bundle that shows a finding again without tritonchaos, and runs such bundles."""

from tritonchaos.reproducing.bundle import BundleOptions, Written, write_bundle
from tritonchaos.reproducing.verifying import Verified, Where, read_way, verify_bundle

__all__ = ["BundleOptions", "Verified", "Where", "Written", "read_way", "verify_bundle", "write_bundle"]
