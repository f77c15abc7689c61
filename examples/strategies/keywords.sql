-- A crawl about one subject: pages whose address, or the words of a link to them, speak of it.
-- Needs strategy.links = true. strpos is five times as quick as a regular expression.

CREATE TABLE keyword (word text PRIMARY KEY, weight float8 NOT NULL);
INSERT INTO keyword VALUES ('river', 0.5), ('flood', 0.5), ('rainfall', 0.4), ('gauge', 0.4), ('catchment', 0.4);

CREATE FUNCTION weight_of(words text) RETURNS float8 LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(keyword.weight), 0) FROM keyword WHERE strpos(lower(words), keyword.word) > 0
$$;

CREATE FUNCTION score_url(page known_url) RETURNS float8 LANGUAGE sql STABLE AS $$
    SELECT least(0.3, 0.6 * weight_of(page.url))
$$;

-- The anchor counts whole, its context half; a page that was relevant itself speaks for its links.
CREATE FUNCTION score_link(link seen_link) RETURNS float8 LANGUAGE sql STABLE AS $$
    SELECT least(0.6, weight_of(link.anchor) + 0.5 * weight_of(concat_ws(' ', link.context_left, link.context_right)))
           + CASE WHEN link.from_score > 0.4 AND link.from_score < 1 THEN 0.1 ELSE 0 END
$$;
