"""FTP and FTPS: a fetcher, and an analyser of directories."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="ftp",
    about="fetches ftp: and ftps: addresses",
    module=__name__,
    fetchers={"ftp": "tamias.features.ftp.fetcher:FtpFetcher"},
    formats={
        "application/x-ftp-listing+json": {
            "analyser": "tamias.features.ftp.listing_analyser:FtpListingAnalyser"
        }
    },
)
