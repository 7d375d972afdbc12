-- The tables of a store. Run again it changes nothing. %[1]s is the schema, quoted.
CREATE SCHEMA IF NOT EXISTS %[1]s;
SET LOCAL search_path TO %[1]s;

CREATE TABLE IF NOT EXISTS meta (name text PRIMARY KEY, value text NOT NULL);

CREATE TABLE IF NOT EXISTS records (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE IF NOT EXISTS index (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE IF NOT EXISTS log (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE IF NOT EXISTS blobs (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE IF NOT EXISTS events (key bytea PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE IF NOT EXISTS system (key bytea PRIMARY KEY, value bytea NOT NULL);

-- Chunks of blobs are compressed already.
ALTER TABLE blobs ALTER COLUMN value SET STORAGE EXTERNAL;

-- The sequence of a scope in a keyspace, and the token of the commit that raised it last.
-- Half of each page is free, so that a raise is written beside what it replaces.
CREATE TABLE IF NOT EXISTS sequences (
    keyspace int2 NOT NULL, scope bytea NOT NULL, n int8 NOT NULL, token int8 NOT NULL,
    PRIMARY KEY (keyspace, scope)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- loom_raise raises the sequence of each guard (keyspace, scope, expected) by one and
-- keeps the token, for every commit (number) all of whose guards hold. It returns the
-- places (from 1) of the guards that do not hold, with what was found, and leaves the
-- numbers of the commits that fail to the statements behind it, in loom.failed. All of it
-- is refused in an earlier epoch, and unless the key fenced, where there is one, has its value.
CREATE OR REPLACE FUNCTION loom_raise(epoch int8, fenced bytea, by bytea, numbers int4[], keyspaces int2[], scopes bytea[], expected int8[], tokens int8[])
RETURNS TABLE (place int8, actual int8) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    failed int4[]; places int8[]; founds int8[];
BEGIN
    IF epoch > 0 AND epoch <> (SELECT m.value::int8 FROM meta m WHERE m.name = 'epoch') THEN
        RAISE EXCEPTION 'the store was opened by another server' USING ERRCODE = 'LM001';
    END IF;
    IF fenced IS NOT NULL AND (SELECT f.value FROM system f WHERE f.key = fenced) IS DISTINCT FROM by THEN
        RAISE EXCEPTION 'other servers took this one for dead' USING ERRCODE = 'LM003';
    END IF;
    INSERT INTO sequences (keyspace, scope, n, token)
        SELECT g.k, g.s, 0, 0 FROM unnest(keyspaces, scopes, expected) AS g(k, s, e)
        WHERE g.e = 0 ORDER BY g.k, g.s
        ON CONFLICT DO NOTHING;
    WITH locked AS MATERIALIZED (
        SELECT q.keyspace, q.scope, q.n FROM unnest(keyspaces, scopes) AS g(k, s)
        JOIN sequences q ON q.keyspace = g.k AND q.scope = g.s
        ORDER BY q.keyspace, q.scope FOR UPDATE OF q
    ), compared AS (
        SELECT g.c, g.i, coalesce(l.n, 0) AS n
        FROM unnest(numbers, keyspaces, scopes, expected) WITH ORDINALITY AS g(c, k, s, e, i)
        LEFT JOIN locked l ON l.keyspace = g.k AND l.scope = g.s
        WHERE coalesce(l.n, 0) <> g.e
    )
    SELECT array_agg(DISTINCT d.c), array_agg(d.i ORDER BY d.i), array_agg(d.n ORDER BY d.i)
        INTO failed, places, founds FROM compared d;
    UPDATE sequences q SET n = q.n + 1, token = g.t
        FROM unnest(numbers, keyspaces, scopes, tokens) AS g(c, k, s, t)
        WHERE q.keyspace = g.k AND q.scope = g.s AND (failed IS NULL OR g.c <> ALL (failed));
    IF failed IS NOT NULL THEN
        PERFORM set_config('loom.failed', failed::text, true);
        RETURN QUERY SELECT u.p, u.f FROM unnest(places, founds) AS u(p, f);
    END IF;
END $$;

-- loom_watch fails unless each key has its value; null: unless it is missing. The detail
-- is the lowest place of those that do not. Keys come in order, and until the transaction
-- ends nobody else changes what was found.
CREATE OR REPLACE FUNCTION loom_watch(places int4[], keyspaces text[], keys bytea[], watched bytea[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    held bytea; rows int8; changed int4;
BEGIN
    IF coalesce(current_setting('loom.failed', true), '') <> '' THEN
        RETURN;
    END IF;
    FOR i IN 1 .. cardinality(keys) LOOP
        IF watched[i] IS NULL THEN
            -- A key that is put and taken away again waits for others who put it.
            EXECUTE format('INSERT INTO %%I VALUES ($1, '''') ON CONFLICT DO NOTHING', keyspaces[i]) USING keys[i];
            GET DIAGNOSTICS rows = ROW_COUNT;
            IF rows = 0 THEN
                changed := least(changed, places[i]);
            ELSE
                EXECUTE format('DELETE FROM %%I WHERE key = $1', keyspaces[i]) USING keys[i];
            END IF;
        ELSE
            EXECUTE format('SELECT value FROM %%I WHERE key = $1 FOR UPDATE', keyspaces[i]) INTO held USING keys[i];
            IF held IS DISTINCT FROM watched[i] THEN
                changed := least(changed, places[i]);
            END IF;
        END IF;
    END LOOP;
    IF changed IS NOT NULL THEN
        RAISE EXCEPTION 'a watched key has changed' USING ERRCODE = 'LM002', DETAIL = changed::text;
    END IF;
END $$;
