-- Why links of a visit were not followed, or the URL itself was not asked for: bits of tamias.model.cut.
ALTER TABLE url ADD COLUMN cut int2 NOT NULL DEFAULT 0;
-- How many URLs were opened again after their visit, since a shorter way or a wider option was found.
ALTER TABLE queue ADD COLUMN again int8 NOT NULL DEFAULT 0;
-- How deep the URL was that opened the place, and what its sitemaps have brought: files and addresses.
ALTER TABLE site ADD COLUMN depth int2 NOT NULL DEFAULT 0,
                 ADD COLUMN sitemaps int8 NOT NULL DEFAULT 0,
                 ADD COLUMN sitemap_urls int8 NOT NULL DEFAULT 0;
-- What the scores of a strategy are divided by, so that they keep their order between 0 and 1.
ALTER TABLE strategy ADD COLUMN scale float8 NOT NULL DEFAULT 1;
-- For strategies: the last part of a URL's host name, such as 'fr'.
CREATE FUNCTION url_top(url text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT lower((regexp_match(url, '^[^:/?#]+://(?:[^/?#]*@)?(?:[^/?#:]*\.)?([^./?#:]+)\.?(?::\d*)?(?:[/?#]|$)'))[1])
$$;
