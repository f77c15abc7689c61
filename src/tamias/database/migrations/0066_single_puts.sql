-- Puts of single URLs over the frontier's API without arrays.

-- Puts one URL into a queue that is there, as put_few does with several. Returns whether it is new. Raises
-- no_data_found where the queue was removed meanwhile.
CREATE FUNCTION put_one(
    in_bucket int2, in_now int8, in_durable bool, in_qid int8, in_crawl int4, in_lane int4, in_uid int8, in_due int8,
    in_class int2, in_score float8, in_depth int2, in_cut int2, in_url text, in_spelling text, in_metadata text,
    in_tags text
) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    is_active bool;
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
    RETURNING queue.active INTO is_active;
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
    RETURN true;
END
$$;
