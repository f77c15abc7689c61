-- How often a user wants a resource visited, in milliseconds; null leaves it to the schedule.
ALTER TABLE resource ADD COLUMN every int8 CHECK (every > 0),
-- When somebody last asked for a visit: one that began before does not answer that.
                     ADD COLUMN wanted_at int8,
-- What it counts beside others, by the user's word; null leaves it to the settings.
                     ADD COLUMN priority real CHECK (priority > 0),
-- Why the latest visit brought nothing; null when it did.
                     ADD COLUMN trouble text;
UPDATE resource SET trouble = CASE WHEN state = 'gone' THEN 'gone' ELSE 'the last visit gave no usable answer' END
WHERE state = 'gone' OR fails > 0;
CREATE INDEX resource_trouble ON resource (tried_at DESC) WHERE trouble IS NOT NULL AND state <> 'stopped';
