"""Profiles of content: types, tables with their columns, structure, places, members, figures of RDF.

`profile` makes one of a body, `small_profile` one of a small table in memory; `joins` finds columns that
contain each other.
"""

from tamias.analyse.profile.body import document_profile, profile, small_profile
from tamias.analyse.profile.kinds import TABULAR
from tamias.analyse.profile.limits import ProfileLimits

__all__ = ["TABULAR", "ProfileLimits", "document_profile", "profile", "small_profile"]
