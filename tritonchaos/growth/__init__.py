"""The growth verdict: does post-unload memory grow without bound, and by how much per cycle?"""

from tritonchaos.growth.judged import JudgedSeries, quantum
from tritonchaos.growth.sequential import GrowthTest
from tritonchaos.growth.state import Growth, GrowthEvent, GrowthState

__all__ = ["Growth", "GrowthEvent", "GrowthState", "GrowthTest", "JudgedSeries", "quantum"]
