"""What a CSW answers: records in ISO 19139 as GeoNetwork writes them, in Dublin Core, pages, capabilities."""

GMD = "http://www.isotc211.org/2005/gmd"
CSW = "http://www.opengis.net/cat/csw/2.0.2"
_SPACES = (
    f'xmlns:gmd="{GMD}" xmlns:gco="http://www.isotc211.org/2005/gco"'
    ' xmlns:gmx="http://www.isotc211.org/2005/gmx" xmlns:gml="http://www.opengis.net/gml"'
    ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    f' xsi:schemaLocation="{GMD} gmd.xsd"'
)
RECORD = f"""<csw:Record xmlns:csw="{CSW}" xmlns:ows="http://www.opengis.net/ows"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dct="http://purl.org/dc/terms/">
<dc:identifier>urn:x:1</dc:identifier><dc:title>Trees</dc:title>
<dc:type>dataset</dc:type><dc:subject>trees</dc:subject><dct:abstract>Every tree.</dct:abstract>
<dct:modified>2024-01-02</dct:modified><dc:format>CSV</dc:format><dc:creator>Survey</dc:creator>
<dc:publisher>Parks Office</dc:publisher><dc:language>de</dc:language>
<dc:rights>https://creativecommons.org/licenses/by/4.0/</dc:rights>
<dct:references scheme="WWW:DOWNLOAD-1.0-http--download">https://files.example.org/1.csv</dct:references>
<dct:references scheme="OGC:WFS">https://maps.example.org/wfs</dct:references>
<ows:BoundingBox crs="urn:x-ogc:def:crs:EPSG:6.11:4326"><ows:LowerCorner>47 8</ows:LowerCorner>
<ows:UpperCorner>48 9</ows:UpperCorner></ows:BoundingBox></csw:Record>"""


def gmd(name, *inside):
    return f"<gmd:{name}>{''.join(inside)}</gmd:{name}>"


def text(name, value, *more):
    return gmd(name, f"<gco:CharacterString>{value}</gco:CharacterString>", *more)


def code(name, kind, value):
    listed = f'<gmd:{kind} codeList="https://codes.example.org/{kind}" codeListValue="{value}"/>'
    return gmd(name, listed)


def party(name, role, email):
    contact = gmd("CI_Contact", gmd("address", gmd("CI_Address", text("electronicMailAddress", email))))
    said = (text("individualName", "A. Person"), text("organisationName", name))
    return gmd("CI_ResponsibleParty", *said, gmd("contactInfo", contact), code("role", "CI_RoleCode", role))


def date(day, kind):
    said = gmd("date", f"<gco:Date>{day}</gco:Date>")
    return gmd("date", gmd("CI_Date", said, code("dateType", "CI_DateTypeCode", kind)))


def online(url, protocol, name):
    linkage = gmd("linkage", gmd("URL", url))
    return gmd("onLine", gmd("CI_OnlineResource", linkage, text("protocol", protocol), text("name", name)))


def extent():
    sides = {"west": 8, "east": 9, "south": 47, "north": 48}
    names = {side: "Longitude" if side in ("west", "east") else "Latitude" for side in sides}
    box = [gmd(f"{side}Bound{names[side]}", f"<gco:Decimal>{number}</gco:Decimal>")
           for side, number in sides.items()]  # fmt: skip
    period = (
        '<gml:TimePeriod gml:id="t1"><gml:beginPosition>2010-01-01</gml:beginPosition>'
        "<gml:endPosition>2019-12-31</gml:endPosition></gml:TimePeriod>"
    )
    place = gmd("geographicElement", gmd("EX_GeographicBoundingBox", *box))
    time = gmd("temporalElement", gmd("EX_TemporalExtent", gmd("extent", period)))
    return gmd("extent", gmd("EX_Extent", place, time))


def iso_record(name, title, abstract, stamp):
    """A record with most of what there is."""
    french = '<gmd:LocalisedCharacterString locale="#FR">Arbres</gmd:LocalisedCharacterString>'
    anchor = '<gmx:Anchor xlink:href="https://creativecommons.org/licenses/by/4.0/">CC BY</gmx:Anchor>'
    citation = gmd(
        "CI_Citation",
        text("title", title, gmd("PT_FreeText", gmd("textGroup", french))),
        date("2019-05-04", "publication"),
        date("2021-06-05", "revision"),
        text("edition", "2.1"),
        gmd("identifier", gmd("MD_Identifier", text("code", f"urn:x:{name}"))),
    )
    distance = '<gco:Distance uom="m">25</gco:Distance>'
    how_often = code("maintenanceAndUpdateFrequency", "MD_MaintenanceFrequencyCode", "annually")
    about = gmd(
        "MD_DataIdentification",
        gmd("citation", citation),
        text("abstract", abstract),
        gmd("pointOfContact", party("Parks Office", "publisher", "parks@example.org")),
        gmd("resourceMaintenance", gmd("MD_MaintenanceInformation", how_often)),
        gmd("descriptiveKeywords", gmd("MD_Keywords", text("keyword", "trees"), text("keyword", "parks"))),
        gmd("resourceConstraints", gmd("MD_LegalConstraints", gmd("otherConstraints", anchor))),
        gmd("spatialResolution", gmd("MD_Resolution", gmd("distance", distance))),
        code("language", "LanguageCode", "ger"),
        gmd("topicCategory", gmd("MD_TopicCategoryCode", "environment")),
        extent(),
    )
    links = gmd(
        "MD_DigitalTransferOptions",
        online(f"https://files.example.org/{name}.csv", "WWW:DOWNLOAD-1.0-http--download", "Table"),
        online("https://maps.example.org/wms", "OGC:WMS", "Map"),
    )
    lineage = gmd("LI_Lineage", text("statement", "Counted on foot."))
    encoding = code("characterEncoding", "MD_CharacterSetCode", "utf8")
    french_code = code("languageCode", "LanguageCode", "fre")
    locale = f'<gmd:PT_Locale id="FR">{french_code}{encoding}</gmd:PT_Locale>'
    inside = (
        text("fileIdentifier", name),
        code("language", "LanguageCode", "ger"),
        code("hierarchyLevel", "MD_ScopeCode", "dataset"),
        gmd("contact", party("Survey", "pointOfContact", "survey@example.org")),
        gmd("dateStamp", f"<gco:DateTime>{stamp}</gco:DateTime>"),
        text("metadataStandardName", "ISO 19115"),
        gmd("locale", locale),
        gmd("identificationInfo", about),
        gmd("distributionInfo", gmd("MD_Distribution", gmd("transferOptions", links))),
        gmd("dataQualityInfo", gmd("DQ_DataQuality", gmd("lineage", lineage))),
    )
    return f"<gmd:MD_Metadata {_SPACES}>{''.join(inside)}</gmd:MD_Metadata>"


BARE = f"<gmd:MD_Metadata {_SPACES}>{text('fileIdentifier', 'bare')}</gmd:MD_Metadata>"


def xml(body, status=200):
    return status, {"Content-Type": "application/xml"}, body.encode()


def page(records, matched, following=0):
    """An answer to GetRecords."""
    counts = f'numberOfRecordsMatched="{matched}" numberOfRecordsReturned="{len(records)}"'
    results = f'<csw:SearchResults {counts} nextRecord="{following}">{"".join(records)}</csw:SearchResults>'
    return xml(f'<csw:GetRecordsResponse xmlns:csw="{CSW}">{results}</csw:GetRecordsResponse>')


def capabilities(*schemas):
    """Of a service that gives records in these forms."""
    values = "".join(f"<ows:Value>{schema}</ows:Value>" for schema in schemas)
    return xml(
        f'<csw:Capabilities xmlns:csw="{CSW}" xmlns:ows="http://www.opengis.net/ows">'
        "<ows:ServiceIdentification><ows:Title>Town</ows:Title></ows:ServiceIdentification>"
        "<ows:ServiceProvider><ows:ProviderName>City</ows:ProviderName></ows:ServiceProvider>"
        f'<ows:Parameter name="outputSchema">{values}</ows:Parameter></csw:Capabilities>'
    )


def exception(words, status=200):
    """What a service says that cannot answer."""
    inside = f"<ows:Exception><ows:ExceptionText>{words}</ows:ExceptionText></ows:Exception>"
    report = f'<ows:ExceptionReport xmlns:ows="http://www.opengis.net/ows">{inside}</ows:ExceptionReport>'
    return xml(report, status)
