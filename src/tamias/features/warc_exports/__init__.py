"""WARC exports: responses and versions as WARC and WACZ files."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="warc_exports",
    about="exports responses and versions as WARC and WACZ files",
    module=__name__,
    requires=("warc", "exports"),
    exports={"warc": f"{__name__}.export:write_warc", "wacz": f"{__name__}.export:write_wacz"},
)
