-- Statistics of the frontier's tables before the database gathers them by itself, which it does after some seconds of
-- work: until then, plans are made for tables that were empty.

-- Gathers them where those that there are know of fewer URLs; returns whether it did. Only the owner of tables may.
CREATE FUNCTION analyse_frontier(in_least int4) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tamias, pg_temp AS $$
BEGIN
    IF (SELECT pg_class.reltuples FROM pg_catalog.pg_class WHERE pg_class.oid = 'url'::regclass) >= in_least THEN
        RETURN false;
    END IF;
    ANALYZE host, queue, url;
    RETURN true;
END
$$;
REVOKE ALL ON FUNCTION analyse_frontier(int4) FROM PUBLIC;
