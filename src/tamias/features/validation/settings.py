"""The settings of validation."""

from typing import Annotated

from tamias.settings import FeatureSettings, about


class ValidationSettings(FeatureSettings, frozen=True, kw_only=True):
    """Settings of validation: where schemas come from."""

    look: Annotated[
        bool, about("look for schemas next to watched tables, and watch those that are there")
    ] = False
