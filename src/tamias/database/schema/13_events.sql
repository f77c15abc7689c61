-- Events in an order that never changes, for the event stream, live pages and webhooks.

-- Every statement that makes news leaves it here, so that writers never wait for one another. Whoever wants the
-- news moves it to `event`, one at a time, and only there it gets its number.
CREATE TABLE event_news (
    kind text NOT NULL,                         -- version, state
    resource text COLLATE "C" NOT NULL,
    number int,                                 -- of the version
    state text,                                 -- of the resource, from now on
    at int8 NOT NULL
);

CREATE TABLE event (
    event int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    resource text COLLATE "C" NOT NULL,
    number int,
    state text,
    at int8 NOT NULL
);

CREATE FUNCTION tell_versions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    names text[];
    numbers int[];
    times int8[];
BEGIN
    SELECT array_agg(added.resource), array_agg(added.number), array_agg(added.captured_at)
    INTO names, numbers, times FROM added;
    INSERT INTO tamias.event_news (kind, resource, number, at)
    SELECT 'version', each.resource, each.number, each.at
    FROM unnest(names, numbers, times) AS each (resource, number, at);
    RETURN NULL;
END $$;

CREATE FUNCTION tell_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.event_news (kind, resource, state, at)
    VALUES ('state', NEW.resource, NEW.state,
            coalesce(NEW.tried_at, (extract(epoch FROM clock_timestamp()) * 1000)::int8));
    RETURN NULL;
END $$;

CREATE TRIGGER tell_versions AFTER INSERT ON version REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION tell_versions();
CREATE TRIGGER tell_state AFTER UPDATE ON resource
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION tell_state();

-- `seen` is the number of the last event that is delivered or in the delivery under way.
CREATE TABLE webhook (
    webhook text COLLATE "C" PRIMARY KEY,
    url text NOT NULL,
    key bytea NOT NULL,                         -- that deliveries are signed with
    kinds text[] NOT NULL,
    host text COLLATE "C",                      -- only of this host
    portal text COLLATE "C",                    -- only of what this portal names
    resource text COLLATE "C",                  -- only of this one
    made_at int8 NOT NULL,
    seen int8 NOT NULL,
    state text NOT NULL DEFAULT 'active',       -- active, stopped
    CHECK (state IN ('active', 'stopped'))
);

-- One delivery of a webhook is under way at a time, so that it hears of everything in order.
CREATE TABLE delivery (
    delivery text COLLATE "C" PRIMARY KEY,
    webhook text COLLATE "C" NOT NULL REFERENCES webhook ON DELETE CASCADE,
    made_at int8 NOT NULL,
    after int8 NOT NULL,                        -- what the webhook had seen before
    events int NOT NULL,
    body bytea NOT NULL,
    state text NOT NULL DEFAULT 'pending',      -- pending, delivered, failed
    attempts int NOT NULL DEFAULT 0,
    due int8 NOT NULL,                          -- when it is tried (again); while somebody tries, when he must be dead
    tried_at int8,
    status int,                                 -- of the last answer
    trouble text,
    CHECK (state IN ('pending', 'delivered', 'failed'))
);
CREATE UNIQUE INDEX delivery_pending ON delivery (webhook) WHERE state = 'pending';
CREATE INDEX delivery_due ON delivery (due) WHERE state = 'pending';
CREATE INDEX delivery_webhook ON delivery (webhook, made_at);
