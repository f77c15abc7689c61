-- What is known of a version when it is captured: why it is noise, why it is suspicious, how much it says, and a
-- profile of every version soon after, stored in less space.

-- Why only its bytes differ from those of the version before; null: its content does.
ALTER TABLE version ALTER COLUMN noise DROP DEFAULT, ALTER COLUMN noise DROP NOT NULL;
ALTER TABLE version ALTER COLUMN noise TYPE text USING CASE WHEN noise THEN 'other bytes, the same content' END;

-- Why it was suspicious before it was accepted because it stayed; null: it never was.
ALTER TABLE version ADD COLUMN suspicious text;

-- Of the current version: its rows, statements, items or files, and why it was suspicious. Since when responses are
-- suspicious, one after another; null: the last one was not.
ALTER TABLE resource ADD COLUMN items int8, ADD COLUMN suspicious text, ADD COLUMN suspicious_since int8;

-- A profile as MessagePack, compressed with zstd. Rows of earlier versions of Tamias have it in `profile` instead.
ALTER TABLE profile ADD COLUMN packed bytea;
ALTER TABLE profile ALTER COLUMN profile DROP NOT NULL;

-- Bodies of versions that wait for their profile.
CREATE TABLE profile_due (
    sha256 bytea PRIMARY KEY,
    resource text COLLATE "C" NOT NULL,         -- one that has it
    media_type text,
    captured_at int8 NOT NULL
);
CREATE INDEX profile_due_captured ON profile_due (captured_at);

INSERT INTO profile_due (sha256, resource, media_type, captured_at)
SELECT DISTINCT ON (resource.sha256) resource.sha256, resource.resource, resource.media_type, resource.captured_at
FROM resource
WHERE resource.sha256 IS NOT NULL AND resource.captured_at IS NOT NULL
  AND NOT EXISTS (SELECT FROM profile WHERE profile.sha256 = resource.sha256 AND profile.kind = 'content');

CREATE FUNCTION note_profiles_due() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    digests bytea[];
    names text[];
    types text[];
    times int8[];
BEGIN
    SELECT array_agg(added.sha256), array_agg(added.resource), array_agg(added.media_type),
           array_agg(added.captured_at) INTO digests, names, types, times FROM added;
    INSERT INTO tamias.profile_due (sha256, resource, media_type, captured_at)
    SELECT DISTINCT ON (each.sha256) each.sha256, each.resource, each.media_type, each.captured_at
    FROM unnest(digests, names, types, times) AS each (sha256, resource, media_type, captured_at)
    ORDER BY each.sha256
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER note_profiles_due AFTER INSERT ON version REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION note_profiles_due();
