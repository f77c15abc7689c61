"""Guesses of what the values of a column mean."""

import pytest

DBPEDIA = "http://dbpedia.org/ontology/"
CASES = {
    "dates": ("x", ["2013-01-31", "2012-12-01", "2013-02-02"], "date", None),
    "years by name": ("Jahr", ["2010", "2011", "2012"], "year", None),
    "countries by name": ("x", ["Österreich", "Deutschland", "Schweiz"], "country", DBPEDIA + "Country"),
    "countries in French": ("x", ["Autriche", "Allemagne", "Suisse"], "country", DBPEDIA + "Country"),
    "three-letter codes": ("x", ["AUT", "DEU", "CHE"], "country", DBPEDIA + "Country"),
    "two-letter codes by name": ("Staat", ["AT", "DE", "CH"], "country", DBPEDIA + "Country"),
    "latitude": ("LAT", ["48.2081", "47.0707", "48.3069"], "latitude", None),
    "longitude": ("Längengrad", ["16,3713", "15,4395", "14,2858"], "longitude", None),
    "points": ("x", ["POINT (16.37 48.2)", "POINT (15.4 47.1)"], "coordinate",
               "http://www.opengis.net/ont/geosparql#Geometry"),
    "pairs": ("x", ["48.2081 16.3713", "47.0707 15.4395"], "coordinate",
              "http://www.opengis.net/ont/geosparql#Geometry"),
    "email": ("x", ["a@example.org", "b.c@example.org"], "email", "http://www.w3.org/2006/vcard/ns#Email"),
    "urls": ("x", ["https://example.org/a", "http://example.org/b?c=d"], "url", "http://xmlns.com/foaf/0.1/Document"),
    "uuids": ("x",
              ["0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"], "uuid", None),
    "ISBN": ("x", ["978-3-16-148410-0", "0-306-40615-2"], "isbn", "http://purl.org/ontology/bibo/Book"),
    "ISSN": ("x", ["0378-5955", "2049-3630"], "issn", "http://purl.org/ontology/bibo/Periodical"),
    "DOI": ("x", ["10.1000/182", "https://doi.org/10.1038/nphys1170"], "doi", "http://purl.org/ontology/bibo/Document"),
    "serial numbers": ("OBJECTID", ["1", "2", "3"], "identifier", None),
    "codes": ("Gemeindekennzahl", ["60101", "60305", "61057"], "identifier", None),
    "postcodes": ("PLZ", ["1010", "8020", "4020"], "postcode", DBPEDIA + "Place"),
    "postcodes with zeros": ("code postal", ["01000", "75001", "13001"], "postcode", DBPEDIA + "Place"),
    "places": ("Gemeindename", ["Graz", "Wien", "Linz"], "place", DBPEDIA + "Place"),
    "places in Polish": ("województwo", ["mazowieckie", "śląskie", "opolskie"], "place", DBPEDIA + "Place"),
    "regions": ("NUTS3", ["AT221", "AT225", "AT130"], "region", DBPEDIA + "AdministrativeRegion"),
    "telephones": ("Telefon", ["+43 1 58801", "0316/872-0", "+49 30 9012345"], "phone", None),
    "percent": ("x", ["12 %", "13,5 %", "7 %"], "percent", None),
    "money": ("x", ["€ 12,00", "€ 13,50", "€ 7,00"], "money", "http://schema.org/MonetaryAmount"),
    "languages": ("Sprache", ["de", "en", "fr"], "language", "http://purl.org/dc/terms/LinguisticSystem"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_meaning_and_its_class_are_guessed(columns, case):
    name, values, meaning, range_ = CASES[case]
    found = columns(f"n\t{name}\n" + "".join(f"word\t{value}\n" for value in values))[name].meaning
    assert (found.type, found.range) == (meaning, range_)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Anzahl", ["10", "17", "2"]),
        ("Bemerkung", ["gut", "schlecht", "mittel"]),
        ("Total_number_of_cases", ["15", "99", "3"]),
        ("Status", ["AT", "DE", "CH"]),
        ("isbn", ["978-3-16-148410-1", "0-306-40615-3"]),
    ],
)
def test_nothing_is_guessed_where_nothing_speaks_for_it(columns, name, values):
    found = columns(f"n\t{name}\n" + "".join(f"word\t{value}\n" for value in values * 2))[name].meaning
    assert found is None


def test_a_guess_is_less_sure_where_some_values_do_not_fit(columns):
    good = [f"a{n}@example.org" for n in range(8)]
    found = columns("n\tx\n" + "".join(f"word\t{value}\n" for value in [*good, "none yet", "ask him"]))["x"]
    assert found.meaning.confidence == 0.8


def test_a_date_that_could_be_american_is_less_sure(columns):
    found = columns("n\tx\n" + "".join(f"word\t{value}\n" for value in ["01/02/2013", "03/04/2013"]))["x"]
    assert (found.format, found.meaning.confidence) == ("dd/MM/yyyy", 0.7)
