-- A crawl of pages in French: the language that a link or its page names, the country of the host, and the small
-- words around the link, which betray a language better than anything else. Needs strategy.links = true.

CREATE FUNCTION score_url(page known_url) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN page.host ~ '\.(fr|re|gp)$' THEN 0.3
                WHEN page.url ~ '/fr(-[a-z]+)?(/|$)' THEN 0.3
                ELSE 0 END
$$;

CREATE FUNCTION score_link(link seen_link) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    words text := concat(' ', lower(concat_ws(' ', link.context_left, link.anchor, link.context_right)), ' ');
    small text;
    met int := 0;
BEGIN
    FOREACH small IN ARRAY ARRAY['le', 'la', 'les', 'des', 'une', 'et', 'sur', 'dans', 'pour', 'est'] LOOP
        IF strpos(words, concat(' ', small, ' ')) > 0 THEN
            met := met + 1;
        END IF;
    END LOOP;
    RETURN least(0.6, 0.2 * met) + CASE WHEN link.language LIKE 'fr%' THEN 0.1 ELSE 0 END;
END
$$;
