-- What db apply of the first releases ran for depts: names without hashes.
CREATE SCHEMA slipstream;
REVOKE ALL ON SCHEMA slipstream FROM PUBLIC;
CREATE TABLE slipstream.change (
  xid pg_catalog.xid8 NOT NULL DEFAULT pg_catalog.pg_current_xact_id(), -- the writer's transaction
  at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(), -- for trimming and statistics
  source pg_catalog.text NOT NULL, -- the resource and the way in which the row changes its documents
  key pg_catalog.text -- what the source records of the row; NULL: every document of the resource
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 200000);
REVOKE ALL ON TABLE slipstream.change FROM PUBLIC;
CREATE INDEX change_xid ON slipstream.change (xid);
CREATE TABLE slipstream.meta (
  format pg_catalog.int4 PRIMARY KEY CHECK (format = 1), -- so there is one row
  system_identifier pg_catalog.int8 NOT NULL, -- of the cluster that the record is of
  complete_from pg_catalog.xid8 NOT NULL -- all changes of this and later transactions are recorded
);
REVOKE ALL ON TABLE slipstream.meta FROM PUBLIC;
CREATE UNLOGGED TABLE slipstream.incarnation (
  id pg_catalog.uuid NOT NULL
);
REVOKE ALL ON TABLE slipstream.incarnation FROM PUBLIC;
CREATE UNIQUE INDEX incarnation_one ON slipstream.incarnation ((true));
CREATE OR REPLACE FUNCTION slipstream.renew() RETURNS pg_catalog.uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  IF NOT EXISTS (SELECT FROM slipstream.incarnation) THEN
    INSERT INTO slipstream.incarnation (id) VALUES (gen_random_uuid()) ON CONFLICT DO NOTHING;
  END IF;
  RETURN (SELECT id FROM slipstream.incarnation);
END
$body$;
REVOKE ALL ON FUNCTION slipstream.renew() FROM PUBLIC;
CREATE OR REPLACE FUNCTION slipstream.trim(keep pg_catalog.interval, at_most pg_catalog.int4) RETURNS pg_catalog.int8 LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  deleted bigint;
  newest bigint;
BEGIN
  IF keep IS NULL OR keep < interval '1 minute' THEN
    RAISE EXCEPTION 'slipstream.trim: keep is %, expected at least 1 minute', keep USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF at_most IS NULL OR at_most < 1 THEN
    RAISE EXCEPTION 'slipstream.trim: at_most is %, expected at least 1', at_most USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF NOT pg_try_advisory_xact_lock(1936484720, 2) THEN
    RETURN 0;
  END IF;
  WITH page AS MATERIALIZED (
    SELECT c.ctid AS place, c.xid, c.at FROM slipstream.change AS c
    WHERE c.xid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY c.xid LIMIT at_most
  ), young AS MATERIALIZED (
    SELECT p.xid FROM page AS p WHERE p.at >= now() - keep ORDER BY p.xid LIMIT 1
  ), gone AS (
    DELETE FROM slipstream.change AS c
    WHERE c.ctid = ANY (ARRAY(SELECT p.place FROM page AS p WHERE NOT EXISTS (SELECT FROM young AS y WHERE y.xid <= p.xid)))
    RETURNING c.xid::text::bigint AS xid
  )
  SELECT count(*), max(g.xid) INTO deleted, newest FROM gone AS g;
  IF deleted > 0 THEN
    UPDATE slipstream.meta SET complete_from = (newest + 1)::text::xid8
    WHERE complete_from < (newest + 1)::text::xid8;
  END IF;
  RETURN deleted;
END
$body$;
REVOKE ALL ON FUNCTION slipstream.trim(keep pg_catalog.interval, at_most pg_catalog.int4) FROM PUBLIC;
CREATE OR REPLACE FUNCTION slipstream."depts/public.dept/insert"() RETURNS pg_catalog.trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
-- slipstream: resource "depts"
DECLARE recorded pg_catalog.int8;
BEGIN
  INSERT INTO slipstream.change (source, key)
  SELECT 'depts'::pg_catalog.text, (r."deptno")::pg_catalog.text FROM new_rows AS r WHERE r."deptno" IS NOT NULL
  LIMIT 10001;
  GET DIAGNOSTICS recorded = ROW_COUNT;
  IF recorded OPERATOR(pg_catalog.>) 10000 THEN
    INSERT INTO slipstream.change (source, key) VALUES ('depts', NULL);
  END IF;
  RETURN NULL;
END
$body$;
REVOKE ALL ON FUNCTION slipstream."depts/public.dept/insert"() FROM PUBLIC;
CREATE OR REPLACE FUNCTION slipstream."depts/public.dept/update"() RETURNS pg_catalog.trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
-- slipstream: resource "depts"
DECLARE recorded pg_catalog.int8;
BEGIN
  INSERT INTO slipstream.change (source, key)
  SELECT 'depts'::pg_catalog.text, (k.c1)::pg_catalog.text FROM (
    SELECT r."deptno" FROM old_rows AS r WHERE r."deptno" IS NOT NULL
    UNION SELECT r."deptno" FROM new_rows AS r WHERE r."deptno" IS NOT NULL
  ) AS k(c1)
  LIMIT 10001;
  GET DIAGNOSTICS recorded = ROW_COUNT;
  IF recorded OPERATOR(pg_catalog.>) 10000 THEN
    INSERT INTO slipstream.change (source, key) VALUES ('depts', NULL);
  END IF;
  RETURN NULL;
END
$body$;
REVOKE ALL ON FUNCTION slipstream."depts/public.dept/update"() FROM PUBLIC;
CREATE OR REPLACE FUNCTION slipstream."depts/public.dept/delete"() RETURNS pg_catalog.trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
-- slipstream: resource "depts"
DECLARE recorded pg_catalog.int8;
BEGIN
  INSERT INTO slipstream.change (source, key)
  SELECT 'depts'::pg_catalog.text, (r."deptno")::pg_catalog.text FROM old_rows AS r WHERE r."deptno" IS NOT NULL
  LIMIT 10001;
  GET DIAGNOSTICS recorded = ROW_COUNT;
  IF recorded OPERATOR(pg_catalog.>) 10000 THEN
    INSERT INTO slipstream.change (source, key) VALUES ('depts', NULL);
  END IF;
  RETURN NULL;
END
$body$;
REVOKE ALL ON FUNCTION slipstream."depts/public.dept/delete"() FROM PUBLIC;
CREATE OR REPLACE FUNCTION slipstream."depts/public.dept/truncate"() RETURNS pg_catalog.trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
-- slipstream: resource "depts"
BEGIN
  INSERT INTO slipstream.change (source, key) VALUES ('depts', NULL);
  RETURN NULL;
END
$body$;
REVOKE ALL ON FUNCTION slipstream."depts/public.dept/truncate"() FROM PUBLIC;
CREATE OR REPLACE FUNCTION slipstream."depts/public.emp/insert"() RETURNS pg_catalog.trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
-- slipstream: resource "depts"
DECLARE recorded pg_catalog.int8;
BEGIN
  INSERT INTO slipstream.change (source, key)
  SELECT 'depts/emps'::pg_catalog.text, (k.c1)::pg_catalog.text FROM (
    SELECT DISTINCT r."deptno" FROM new_rows AS r WHERE r."deptno" IS NOT NULL
  ) AS k(c1)
  LIMIT 10001;
  GET DIAGNOSTICS recorded = ROW_COUNT;
  IF recorded OPERATOR(pg_catalog.>) 10000 THEN
    INSERT INTO slipstream.change (source, key) VALUES ('depts', NULL);
  END IF;
  RETURN NULL;
END
$body$;
REVOKE ALL ON FUNCTION slipstream."depts/public.emp/insert"() FROM PUBLIC;
CREATE OR REPLACE FUNCTION slipstream."depts/public.emp/update"() RETURNS pg_catalog.trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
-- slipstream: resource "depts"
DECLARE recorded pg_catalog.int8;
BEGIN
  INSERT INTO slipstream.change (source, key)
  SELECT 'depts/emps'::pg_catalog.text, (k.c1)::pg_catalog.text FROM (
    SELECT r."deptno" FROM old_rows AS r WHERE r."deptno" IS NOT NULL
    UNION SELECT r."deptno" FROM new_rows AS r WHERE r."deptno" IS NOT NULL
  ) AS k(c1)
  LIMIT 10001;
  GET DIAGNOSTICS recorded = ROW_COUNT;
  IF recorded OPERATOR(pg_catalog.>) 10000 THEN
    INSERT INTO slipstream.change (source, key) VALUES ('depts', NULL);
  END IF;
  RETURN NULL;
END
$body$;
REVOKE ALL ON FUNCTION slipstream."depts/public.emp/update"() FROM PUBLIC;
CREATE OR REPLACE FUNCTION slipstream."depts/public.emp/delete"() RETURNS pg_catalog.trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
-- slipstream: resource "depts"
DECLARE recorded pg_catalog.int8;
BEGIN
  INSERT INTO slipstream.change (source, key)
  SELECT 'depts/emps'::pg_catalog.text, (k.c1)::pg_catalog.text FROM (
    SELECT DISTINCT r."deptno" FROM old_rows AS r WHERE r."deptno" IS NOT NULL
  ) AS k(c1)
  LIMIT 10001;
  GET DIAGNOSTICS recorded = ROW_COUNT;
  IF recorded OPERATOR(pg_catalog.>) 10000 THEN
    INSERT INTO slipstream.change (source, key) VALUES ('depts', NULL);
  END IF;
  RETURN NULL;
END
$body$;
REVOKE ALL ON FUNCTION slipstream."depts/public.emp/delete"() FROM PUBLIC;
CREATE OR REPLACE FUNCTION slipstream."depts/public.emp/truncate"() RETURNS pg_catalog.trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
-- slipstream: resource "depts"
BEGIN
  INSERT INTO slipstream.change (source, key) VALUES ('depts', NULL);
  RETURN NULL;
END
$body$;
REVOKE ALL ON FUNCTION slipstream."depts/public.emp/truncate"() FROM PUBLIC;
CREATE OR REPLACE TRIGGER "slipstream/depts/insert" AFTER INSERT ON "public"."dept" REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION slipstream."depts/public.dept/insert"();
ALTER TABLE ONLY "public"."dept" ENABLE ALWAYS TRIGGER "slipstream/depts/insert";
CREATE OR REPLACE TRIGGER "slipstream/depts/update" AFTER UPDATE ON "public"."dept" REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION slipstream."depts/public.dept/update"();
ALTER TABLE ONLY "public"."dept" ENABLE ALWAYS TRIGGER "slipstream/depts/update";
CREATE OR REPLACE TRIGGER "slipstream/depts/delete" AFTER DELETE ON "public"."dept" REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION slipstream."depts/public.dept/delete"();
ALTER TABLE ONLY "public"."dept" ENABLE ALWAYS TRIGGER "slipstream/depts/delete";
CREATE OR REPLACE TRIGGER "slipstream/depts/truncate" AFTER TRUNCATE ON "public"."dept" FOR EACH STATEMENT EXECUTE FUNCTION slipstream."depts/public.dept/truncate"();
ALTER TABLE ONLY "public"."dept" ENABLE ALWAYS TRIGGER "slipstream/depts/truncate";
CREATE OR REPLACE TRIGGER "slipstream/depts/insert" AFTER INSERT ON "public"."emp" REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION slipstream."depts/public.emp/insert"();
ALTER TABLE ONLY "public"."emp" ENABLE ALWAYS TRIGGER "slipstream/depts/insert";
CREATE OR REPLACE TRIGGER "slipstream/depts/update" AFTER UPDATE ON "public"."emp" REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION slipstream."depts/public.emp/update"();
ALTER TABLE ONLY "public"."emp" ENABLE ALWAYS TRIGGER "slipstream/depts/update";
CREATE OR REPLACE TRIGGER "slipstream/depts/delete" AFTER DELETE ON "public"."emp" REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION slipstream."depts/public.emp/delete"();
ALTER TABLE ONLY "public"."emp" ENABLE ALWAYS TRIGGER "slipstream/depts/delete";
CREATE OR REPLACE TRIGGER "slipstream/depts/truncate" AFTER TRUNCATE ON "public"."emp" FOR EACH STATEMENT EXECUTE FUNCTION slipstream."depts/public.emp/truncate"();
ALTER TABLE ONLY "public"."emp" ENABLE ALWAYS TRIGGER "slipstream/depts/truncate";
INSERT INTO slipstream.meta (format, system_identifier, complete_from)
SELECT 1, s.system_identifier, pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) FROM pg_catalog.pg_control_system() AS s
ON CONFLICT (format) DO UPDATE SET system_identifier = excluded.system_identifier, complete_from = excluded.complete_from;
INSERT INTO slipstream.change (source, key) VALUES ('depts', NULL);
