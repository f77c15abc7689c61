"""Terms: a response that asks for a payment (402) is refused, with what it asks for."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="terms",
    about="refuses responses that ask for a payment (402), with their terms",
    module=__name__,
    responses={"terms": f"{__name__}.payment:refuse"},
)
