-- Pages with structured data first: what looks like data by its address, and what pages with data link to.
-- Needs strategy.links = true. The rule of order is our own: the better of the two, and the shallower of equals.

CREATE FUNCTION score_url(page known_url) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN page.url ~* '\.(ttl|nt|nq|trig|rdf|jsonld|owl|hdt)(\.gz)?([?#]|$)' THEN 0.9
                WHEN page.tags && ARRAY['kind=sparql', 'kind=ckan'] THEN 0.9
                WHEN page.url ~* '/(data|dataset|catalog|ontology|vocab|id|resource)s?/' THEN 0.5
                ELSE 0.1 END
$$;

CREATE FUNCTION score_link(link seen_link) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN link.from_quads > 0 THEN 0.5 ELSE 0.0 END
         + CASE WHEN lower(link.anchor) ~ '\m(dataset|rdf|turtle|sparql|linked data|download)' THEN 0.3 ELSE 0.0 END
$$;

CREATE FUNCTION order_url(url_score float8, link_score float8, page known_url) RETURNS float8
LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(url_score, link_score) + 0.1 * least(url_score, link_score) + 0.02 / (1 + page.depth)
$$;
