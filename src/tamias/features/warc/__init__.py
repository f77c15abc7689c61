"""WARC: responses written to WARC files, their index, seeds from such files, and the check of both."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="warc",
    about="writes responses to WARC files, and reads them",
    module=__name__,
    seeds={"warc": f"{__name__}.seeds:WarcSeeds"},
    crawl_sinks={"warc": f"{__name__}.hook:WarcHook"},
    recoveries={"warc": f"{__name__}.folder:complete_warcs"},
    recordings={"warc": f"{__name__}.index:latest_records"},
    files={"warc": f"{__name__}.folder:warcs_to_save"},
    tasks={"warc": f"{__name__}.folder:index_at_start"},
    check={"warc": f"{__name__}.check:check_warcs"},
)
