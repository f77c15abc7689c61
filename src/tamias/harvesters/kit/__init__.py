"""What harvesters of portals share: paging, records and their DCAT, ways that are tried in turn."""
