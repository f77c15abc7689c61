-- Functions that data of commit 42aa7390 has, and that nothing calls any more.

CREATE FUNCTION put_few(
    in_bucket int2, in_now int8, in_delay_ms int4, in_durable bool, in_hkey text[],
    in_qid int8[], in_crawl int4[], in_lane int4[], in_uid int8[], in_due int8[], in_class int2[], in_score float8[],
    in_depth int2[], in_cut int2[], in_url text[], in_spelling text[], in_metadata text[], in_tags text[]
) RETURNS int8[] LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    places int8[];
    is_complete bool;
    is_held bool;
BEGIN
    IF NOT in_durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF in_hkey IS NOT NULL THEN
        IF in_delay_ms IS NULL THEN  -- not in the next statement: workers may not read it
            SELECT service.delay_ms INTO in_delay_ms FROM service;
        END IF;
        INSERT INTO host (bucket, qid, hkey, delay_ms, ready_at)
        SELECT in_bucket, new.qid, min(new.hkey), in_delay_ms, 9223372036854775807
        FROM unnest(in_qid, in_hkey) AS new (qid, hkey)
        GROUP BY new.qid ORDER BY new.qid
        ON CONFLICT DO NOTHING;
        INSERT INTO queue (bucket, qid, crawl, lane, next_due, active, paused)
        SELECT DISTINCT in_bucket, new.qid, new.crawl, new.lane, 9223372036854775807,
               crawl.state IS DISTINCT FROM 'paused', crawl.state IS NOT DISTINCT FROM 'paused'
        FROM unnest(in_qid, in_crawl, in_lane) AS new (qid, crawl, lane)
        LEFT JOIN crawl ON crawl.crawl = new.crawl
        ORDER BY new.qid, new.crawl, new.lane
        ON CONFLICT DO NOTHING;
    END IF;
    WITH inserted AS (
        INSERT INTO url (bucket, qid, crawl, lane, uid, due, first_seen, score, depth, cut, url, spelling, metadata,
                         tags)
        SELECT in_bucket, new.qid, new.crawl, new.lane, new.uid, new.due, in_now, new.score, new.depth, new.cut,
               new.url, new.spelling, new.metadata::jsonb, string_to_array(new.tags, E'\t')
        FROM unnest(in_qid, in_crawl, in_lane, in_uid, in_due, in_score, in_depth, in_cut, in_url, in_spelling,
                    in_metadata, in_tags)
             AS new (qid, crawl, lane, uid, due, score, depth, cut, url, spelling, metadata, tags)
        JOIN queue ON queue.bucket = in_bucket AND queue.qid = new.qid AND queue.crawl = new.crawl
                  AND queue.lane = new.lane
        ORDER BY new.qid, new.crawl, new.uid
        ON CONFLICT DO NOTHING
        RETURNING url.qid, url.crawl, url.uid
    )
    SELECT coalesce(array_agg(new.place), '{}') INTO places
    FROM unnest(in_qid, in_crawl, in_uid) WITH ORDINALITY AS new (qid, crawl, uid, place)
    JOIN inserted ON inserted.qid = new.qid AND inserted.crawl = new.crawl AND inserted.uid = new.uid;
    IF places = '{}' THEN
        RETURN places;
    END IF;
    PERFORM FROM host WHERE host.bucket = in_bucket AND host.qid = ANY(in_qid)
    ORDER BY host.qid FOR NO KEY UPDATE;
    WITH news AS (
        SELECT new.qid, new.crawl, new.lane, min(new.due) AS due, max(new.class) AS class, count(*) AS urls,
               count(*) FILTER (WHERE new.due < 9223372036854775807) AS open
        FROM unnest(in_qid, in_crawl, in_lane, in_due, in_class) WITH ORDINALITY
             AS new (qid, crawl, lane, due, class, place)
        WHERE new.place = ANY(places)
        GROUP BY new.qid, new.crawl, new.lane
    ), woken AS (
        UPDATE queue
        SET next_due = least(queue.next_due, news.due),
            class = CASE WHEN news.due > in_now THEN queue.class
                         WHEN queue.next_due <= in_now THEN greatest(queue.class, news.class)
                         ELSE news.class END,
            known = queue.known + news.urls,
            open = queue.open + news.open
        FROM news
        WHERE queue.bucket = in_bucket AND queue.qid = news.qid AND queue.crawl = news.crawl
          AND queue.lane = news.lane
        RETURNING queue.qid, queue.active, news.due, news.class,
                  coalesce(queue.held_until > in_now AND queue.held_to >= news.due, false) AS is_held
    ), roused AS (
        UPDATE host
        SET ready_at = least(host.ready_at, greatest(host.not_before, host.blocked_until, new.due)),
            class = CASE WHEN new.due > in_now THEN host.class
                         WHEN host.ready_at <= greatest(host.not_before, host.blocked_until, in_now)
                         THEN greatest(host.class, new.class) ELSE new.class END
        FROM (SELECT woken.qid, min(woken.due) AS due, max(woken.class) AS class
              FROM woken WHERE woken.active GROUP BY woken.qid) AS new
        WHERE host.bucket = in_bucket AND host.qid = new.qid AND host.token IS NULL
          AND (host.ready_at > greatest(host.not_before, host.blocked_until, new.due) OR host.class < new.class)
    )
    SELECT (SELECT count(*) FROM woken) = (SELECT count(*) FROM news), (SELECT bool_or(woken.is_held) FROM woken)
    INTO is_complete, is_held;
    IF NOT is_complete THEN
        RAISE no_data_found USING MESSAGE = 'a queue was removed while URLs were put into it';
    END IF;
    IF is_held THEN
        UPDATE url SET due = queue.held_to + 1
        FROM unnest(in_qid, in_crawl, in_lane, in_uid) WITH ORDINALITY AS new (qid, crawl, lane, uid, place)
        JOIN queue ON queue.bucket = in_bucket AND queue.qid = new.qid AND queue.crawl = new.crawl
                  AND queue.lane = new.lane
        WHERE new.place = ANY(places) AND url.bucket = in_bucket AND url.qid = new.qid AND url.crawl = new.crawl
          AND url.uid = new.uid AND url.due <= queue.held_to AND queue.held_until > in_now;
    END IF;
    RETURN places;
END
$$;

CREATE FUNCTION put_one(
    in_bucket int2, in_now int8, in_durable bool, in_qid int8, in_crawl int4, in_lane int4, in_uid int8, in_due int8,
    in_class int2, in_score float8, in_depth int2, in_cut int2, in_url text, in_spelling text, in_metadata text,
    in_tags text
) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    is_active bool;
    above int8;
BEGIN
    IF NOT in_durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    INSERT INTO url (bucket, qid, crawl, lane, uid, due, first_seen, score, depth, cut, url, spelling, metadata, tags)
    VALUES (in_bucket, in_qid, in_crawl, in_lane, in_uid, in_due, in_now, in_score, in_depth, in_cut, in_url,
            in_spelling, in_metadata::jsonb, string_to_array(in_tags, E'\t'))
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM FROM host WHERE host.bucket = in_bucket AND host.qid = in_qid FOR NO KEY UPDATE;
    UPDATE queue
    SET next_due = least(queue.next_due, in_due),
        class = CASE WHEN in_due > in_now THEN queue.class
                     WHEN queue.next_due <= in_now THEN greatest(queue.class, in_class)
                     ELSE in_class END,
        known = queue.known + 1,
        open = queue.open + (in_due < 9223372036854775807)::int
    WHERE queue.bucket = in_bucket AND queue.qid = in_qid AND queue.crawl = in_crawl AND queue.lane = in_lane
    RETURNING queue.active, CASE WHEN queue.held_until > in_now AND queue.held_to >= in_due THEN queue.held_to END
    INTO is_active, above;
    IF NOT FOUND THEN
        RAISE no_data_found USING MESSAGE = 'a queue was removed while URLs were put into it';
    END IF;
    IF is_active THEN
        UPDATE host
        SET ready_at = least(host.ready_at, greatest(host.not_before, host.blocked_until, in_due)),
            class = CASE WHEN in_due > in_now THEN host.class
                         WHEN host.ready_at <= greatest(host.not_before, host.blocked_until, in_now)
                         THEN greatest(host.class, in_class) ELSE in_class END
        WHERE host.bucket = in_bucket AND host.qid = in_qid AND host.token IS NULL
          AND (host.ready_at > greatest(host.not_before, host.blocked_until, in_due) OR host.class < in_class);
    END IF;
    IF above IS NOT NULL THEN
        UPDATE url SET due = above + 1
        WHERE url.bucket = in_bucket AND url.qid = in_qid AND url.crawl = in_crawl AND url.uid = in_uid;
    END IF;
    RETURN true;
END
$$;
