-- A schema that has everything of pg_catalog: whatever a statement leaves unqualified under
-- search_path = evil, pg_catalog is found here, and fails.
SET search_path = pg_catalog;
SET check_function_bodies = off;
CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE COLLATION evil."C" FROM pg_catalog."C";
DO $do$
DECLARE
	body CONSTANT text := $f$ LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RAISE EXCEPTION ''the evil %s ran''; END'$f$;
	-- What a function in plpgsql takes and returns besides types that are none of these.
	pseudo CONSTANT oid[] := ARRAY(SELECT oid FROM pg_type WHERE typtype = 'p' AND typname !~ '^(any(element|array|nonarray|enum|range|multirange|compatible.*)|record|void)$');
	r record;
BEGIN
	FOR r IN
		SELECT p.oid, p.proname, p.proretset, p.prorettype, CASE WHEN '"any"'::regtype = ANY (p.proargtypes::oid[]) THEN 'VARIADIC anycompatiblearray' ELSE (
				SELECT coalesce(string_agg(concat_ws(' ', CASE WHEN p.provariadic <> 0 AND n = p.pronargs THEN 'VARIADIC' END,
					CASE WHEN p.proargmodes IS NULL AND p.proargnames[n] <> '' THEN quote_ident(p.proargnames[n]) END, format_type(a, NULL),
					CASE WHEN n > p.pronargs - p.pronargdefaults AND p.provariadic = 0 THEN 'DEFAULT NULL' END), ', ' ORDER BY n), '')
				FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS u (a, n)) END AS arguments
		FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind <> 'p' AND NOT (p.prokind = 'a' AND p.pronargs = 0)
			AND NOT p.prorettype = ANY (pseudo) AND NOT (p.proargtypes::oid[] && array_append(array_remove(pseudo, '"any"'::regtype::oid), 'void'::regtype::oid))
	LOOP
		BEGIN
			EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS %s %s', r.proname, r.arguments,
				CASE WHEN r.proretset THEN 'SETOF ' ELSE '' END || CASE WHEN r.prorettype = ANY (ARRAY(SELECT oid FROM pg_type WHERE typtype = 'p' AND typname LIKE 'any%'))
					AND r.arguments NOT LIKE '%any%' THEN 'text' ELSE format_type(r.prorettype, NULL) END, format(body, 'function ' || r.proname));
		EXCEPTION WHEN duplicate_function OR invalid_function_definition OR datatype_mismatch THEN
			-- Two variadic functions have become one, or a result cannot be derived.
			RAISE DEBUG '%(%): %', r.proname, r.arguments, SQLERRM;
		END;
	END LOOP;
	FOR r IN
		SELECT o.oid, o.oprname, o.oprresult, o.oprleft, o.oprright FROM pg_operator o
		WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND NOT ARRAY[o.oprleft, o.oprright, o.oprresult] && pseudo
	LOOP
		EXECUTE format('CREATE FUNCTION evil.operator_%s(%s) RETURNS %s %s', r.oid,
			concat_ws(', ', CASE WHEN r.oprleft <> 0 THEN format_type(r.oprleft, NULL) END, format_type(r.oprright, NULL)),
			format_type(r.oprresult, NULL), format(body, 'operator ' || r.oprname));
		EXECUTE format('CREATE OPERATOR evil.%s (%s)', r.oprname, concat_ws(', ', CASE WHEN r.oprleft <> 0 THEN 'LEFTARG = ' || format_type(r.oprleft, NULL) END,
			'RIGHTARG = ' || format_type(r.oprright, NULL), format('FUNCTION = evil.operator_%s', r.oid)));
	END LOOP;
	-- An aggregate without arguments is none that a function can hide.
	EXECUTE format('CREATE FUNCTION evil.counted(bigint) RETURNS bigint %s', format(body, 'function count'));
	EXECUTE 'CREATE AGGREGATE evil.count(*) (SFUNC = evil.counted, STYPE = bigint, INITCOND = ''0'')';
	FOR r IN SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype IN ('b', 'r', 'm') AND typelem = 0 LOOP
		EXECUTE format('CREATE TYPE evil.%I AS (evil integer)', r.typname);
	END LOOP;
	FOR r IN SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') LOOP
		EXECUTE format('CREATE TABLE evil.%I (evil integer)', r.relname);
		EXECUTE format('GRANT SELECT ON evil.%I TO PUBLIC', r.relname);
	END LOOP;
END
$do$;
RESET search_path;
RESET check_function_bodies;
