"""Found by every Python process that has this folder on its path, before anything else runs."""

from benchmarks.faults.inside import begin

begin()
