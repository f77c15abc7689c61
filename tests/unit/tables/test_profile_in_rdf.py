"""Profiles as CSVW and VoID."""

import pytest
from pyoxigraph import NamedNode, Store

from tamias.features.dcat.profiles import describe_profile
from tamias.features.dcat.terms import PREFIXES, GraphBuilder

VERSION = "https://archive.example/api/v1/get/file/id/abc_1"
GRAPH = NamedNode("urn:tamias:catalogue:abc")
TABLE = "Liste;;\nGemeinde;Einwohner;Stand\n" + "".join(f"Ort {n};{n};0{n}.01.2013\n" for n in range(1, 8))


@pytest.fixture
def ask(profiled):
    """`ask(query, *body)` are the rows of a SPARQL query on the description of a body."""

    def answer(query, *body):
        store = Store()
        builder = GraphBuilder(GRAPH)
        describe_profile(builder, NamedNode(VERSION), profiled(*body))
        store.extend(builder.quads)
        found = store.query(query, prefixes=PREFIXES, use_default_graph_as_union=True)
        return [[term.value for term in row] for row in found]

    return answer


def test_a_table_has_rows_and_columns_in_the_terms_of_the_open_dataset_archive(ask):
    query = f"SELECT ?r ?c {{ ?t a csvw:Table ; csvw:url <{VERSION}> ; arc:rows ?r ; arc:columns ?c }}"
    assert ask(query, TABLE) == [["7", "3"]]


def test_a_table_has_a_dialect(ask):
    query = """SELECT ?e ?d ?h ?s { ?t csvw:dialect [
        csvw:encoding ?e ; csvw:delimiter ?d ; csvw:header ?h ; csvw:skipRows ?s ] }"""
    assert ask(query, TABLE) == [["utf-8", ";", "true", "1"]]


def test_columns_have_names_and_datatypes(ask):
    query = """SELECT ?c ?n ?d { ?t csvw:tableSchema/csvw:column ?c . ?c csvw:name ?n ; csvw:datatype ?d
        FILTER STRSTARTS(STR(?d), "http:") FILTER NOT EXISTS { ?d a csvw:Datatype } } ORDER BY ?c"""
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert ask(query, TABLE) == [
        [VERSION + "#1", "Gemeinde", xsd + "string"],
        [VERSION + "#2", "Einwohner", xsd + "integer"],
        [VERSION + "#3", "Stand", xsd + "date"],
    ]


def test_a_format_belongs_to_a_datatype_of_the_column(ask):
    query = """SELECT ?n ?b ?f { ?c csvw:title ?n ; csvw:datatype [
        a csvw:Datatype ; csvw:base ?b ; csvw:format ?f ] }"""
    assert ask(query, TABLE) == [["Stand", "date", "dd.MM.yyyy"]]


def test_a_number_has_its_signs_and_a_missing_value_its_words(ask):
    table = "a b;c\n" + "".join(f"1.00{n},5;{n}\n" for n in range(1, 9)) + "k.A.;\n"
    query = """SELECT ?n ?d ?g { ?c csvw:name ?n ; csvw:datatype/csvw:format [
        a csvw:NumericFormat ; csvw:decimalChar ?d ; csvw:groupChar ?g ] }"""
    assert ask(query, table) == [["a%20b", ",", "."]]
    assert ask('SELECT ?w { [] csvw:title "a b" ; csvw:null ?w } ORDER BY ?w', table) == [[""], ["k.A."]]


def test_the_datatype_is_there_by_its_short_name_too(ask):
    assert ask('SELECT ?n { ?c csvw:datatype "date" ; csvw:name ?n }', TABLE) == [["Stand"]]


def test_a_column_of_places_has_the_class_of_places(ask):
    assert ask("SELECT ?n ?r { ?c rdfs:range ?r ; csvw:name ?n }", TABLE) == [
        ["Gemeinde", "http://dbpedia.org/ontology/Place"]
    ]


def test_rdf_is_described_in_void(ask):
    body = ("<http://e/a> a <http://e/C> ; <http://e/p> 1, 2 .", "x.ttl", "text/turtle")
    query = f"""SELECT ?n ?s ?c ?k {{ <{VERSION}> a void:Dataset ; void:triples ?n ;
        void:distinctSubjects ?s ; void:classPartition [ void:class ?c ; void:entities ?k ] }}"""
    assert ask(query, *body) == [["3", "1", "http://e/C", "1"]]


def test_what_is_mapped_has_a_box(ask):
    body = ('{"type": "Point", "coordinates": [16.4, 48.2]}', "x.geojson", "application/geo+json")
    assert ask(f"SELECT ?b {{ <{VERSION}> dct:spatial/dcat:bbox ?b }}", *body) == [
        ["POLYGON((16.4 48.2, 16.4 48.2, 16.4 48.2, 16.4 48.2, 16.4 48.2))"]
    ]


def test_several_tables_are_a_group(ask, workbooks):
    rows = [["a", "b"], [1, 2], [3, 4]]
    body = (workbooks.xlsx({"eins": rows, "zwei": rows}), "x.xlsx", "application/zip")
    assert ask("SELECT (count(?t) AS ?n) { ?g a csvw:TableGroup ; csvw:table ?t }", *body) == [["2"]]
