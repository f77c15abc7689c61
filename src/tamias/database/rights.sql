-- name: take_rights
-- What was given before. On a Citus cluster one table after another: they refer to each other. Elsewhere the word
-- means nothing.
SET LOCAL citus.multi_shard_modify_mode = 'sequential';
REVOKE ALL ON ALL TABLES IN SCHEMA tamias FROM tamias_worker, tamias_frontier, tamias_service;
REVOKE ALL ON SCHEMA tamias FROM tamias_worker, tamias_frontier, tamias_service;

-- name: give_rights
-- What each role may do, given anew after every migration. Nobody but the owner makes, changes, empties or drops
-- tables. A table that is named for no role is the owner's alone (tests/integration/database/test_roles.py).

SET LOCAL citus.multi_shard_modify_mode = 'sequential';
GRANT USAGE ON SCHEMA tamias TO tamias_worker, tamias_frontier, tamias_service;
-- Whoever may add a row may have the next number for it; only Citus asks for that by itself.
GRANT USAGE ON ALL SEQUENCES IN SCHEMA tamias TO tamias_worker, tamias_frontier, tamias_service;
GRANT EXECUTE ON FUNCTION hold_shard(int8) TO tamias_worker, tamias_frontier, tamias_service;

-- Workers: the frontier, and what they find. Captures and versions are added, never changed; nothing
-- is deleted but the rows of packs whose bytes are gone.
GRANT SELECT
    ON meta, sink, catalogue, snapshot, forgotten, forgotten_body, kept_version, kept_resource, moved_captures,
       merged_frame
    TO tamias_worker, tamias_frontier;
GRANT SELECT, INSERT, UPDATE ON host, queue, url TO tamias_worker, tamias_frontier;
GRANT SELECT, INSERT ON lane TO tamias_worker, tamias_frontier;
GRANT SELECT, UPDATE (state, removals) ON crawl TO tamias_worker, tamias_frontier;
GRANT SELECT, INSERT
    ON capture, version, profile, suspect, source_record, site_claim, likeness, absence, resource_absence, warc_record,
       earlier_description
    TO tamias_worker, tamias_frontier;
GRANT SELECT, INSERT, UPDATE
    ON stored_file, robots, outbox, current_document, walk, context, site, portal, described, offered, site_dataset,
       blob, resource, source, shared_body, figure, hint_trust, link, host_link, blocked, findable, revisit, visit_budget,
       tagged
    TO tamias_worker, tamias_frontier;
GRANT SELECT, INSERT, UPDATE, DELETE ON pack, unreachable TO tamias_worker, tamias_frontier;
-- A strategy that fails in use is taken out by whoever notices; its text is not theirs to change.
GRANT SELECT, UPDATE (state, in_force_at, problem, slow, scale) ON strategy TO tamias_worker, tamias_frontier;
GRANT SELECT, INSERT, UPDATE ON rescoring, visit_share TO tamias_worker, tamias_frontier;
-- Triggers leave notes for others.
GRANT INSERT ON tally_news, catalogue_news, event_news, profile_due TO tamias_worker, tamias_frontier;

-- The frontier service: what far workers deliver, and what clients of the URLFrontier API steer.
GRANT INSERT ON crawl TO tamias_frontier;
GRANT DELETE ON queue, url TO tamias_frontier;
GRANT DELETE ON revisit, link, tagged TO tamias_frontier;
GRANT SELECT, UPDATE ON service TO tamias_frontier;
GRANT SELECT, INSERT, UPDATE, DELETE ON node TO tamias_frontier;
GRANT EXECUTE ON FUNCTION analyse_frontier(int4) TO tamias_frontier;

-- The web service: all that it shows, and what requests with the secret change. The keys of webhooks are written,
-- never read: deliveries are signed by the owner.
GRANT SELECT
    ON meta, crawl, host, queue, url, lane, capture, stored_file, current_document, robots, unreachable, blob, pack,
       resource, source, version, suspect, profile, measure, figure, join_candidate, portal, described, offered,
       source_record, tally, tally_news, attempts, blocked, link, host_link, findable, catalogue, catalogue_news,
       event, event_news, delivery, tagged, absence, resource_absence, earlier_description, profile_due, snapshot,
       warc_record, index_line, forgotten, forgotten_body, kept_version, kept_resource, moved_captures, merged_frame,
       strategy
    TO tamias_service;
-- What is to be forgotten is noted by the service, and removed by the owner.
GRANT INSERT, UPDATE (blocked, lifted_at, lifted_by) ON forgotten TO tamias_service;
GRANT INSERT, UPDATE ON host, queue, url, portal, resource, source, findable, tagged TO tamias_service;
GRANT DELETE ON tagged TO tamias_service;
GRANT INSERT ON lane, tally_news, catalogue_news, event_news TO tamias_service;
-- Counts that are kept, and put together by whoever asks for them.
GRANT INSERT, UPDATE ON tally TO tamias_service;
GRANT DELETE ON tally_news TO tamias_service;
GRANT INSERT, DELETE ON attempts TO tamias_service;
GRANT INSERT, UPDATE (state, removals, run, policy) ON crawl TO tamias_service;
GRANT INSERT ON event TO tamias_service;
GRANT DELETE ON event_news TO tamias_service;
GRANT INSERT, DELETE, SELECT (webhook, url, kinds, host, portal, resource, made_at, seen, state)
    ON webhook TO tamias_service;
-- Named tokens are known by their hashes; calls are noted, and no note is changed.
GRANT SELECT, INSERT, UPDATE (withdrawn_at, withdrawn_by) ON token TO tamias_service;
GRANT SELECT ON token TO tamias_frontier;
GRANT SELECT, INSERT ON audit TO tamias_service;
GRANT INSERT ON audit TO tamias_frontier;
