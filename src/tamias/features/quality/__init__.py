"""Quality of descriptions and deliveries: Portal Watch's metrics and the European MQA points.

Pure functions of what was claimed (`claims`) and what was got; `rows` joins them with the database.
"""

from tamias.plugins import Feature

FEATURE = Feature(
    name="quality",
    about="measures the quality of what portals describe and deliver",
    module=__name__,
    requires=("dcat",),
    chores={"quality": f"{__name__}.metrics:measure"},
    claims={"quality": f"{__name__}.metrics:note_claims"},
)
