"""The growth verdict: does post-unload memory grow without bound, and by how much per cycle?"""

from tritonchaos.growth.judged import JudgedSeries, quantum
from tritonchaos.growth.sequential import Growth, GrowthState, GrowthTest

__all__ = ["Growth", "GrowthState", "GrowthTest", "JudgedSeries", "quantum"]
