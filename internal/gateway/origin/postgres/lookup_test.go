package postgres

import (
	"strings"
	"testing"
)

// A name in the text of a user that leads to an object outside of pg_catalog only through
// the search path is reported.
func TestNamesFoundThroughThePathAreSaid(t *testing.T) {
	conn := connectOrders(t)
	mustExec(t, conn, `
		CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'planted' $$;
		CREATE FUNCTION public.alike(varchar, varchar) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';
		CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = public.alike);
		CREATE FUNCTION public.mood_text(mood) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'x' $$;
		CREATE CAST (mood AS text) WITH FUNCTION public.mood_text(mood)`)
	for _, test := range []struct {
		value, want string
	}{
		{`lower(code)`, `calls public.lower(character varying) through the search path of role postgres; write public.lower or pg_catalog.lower`},
		{`"lower" ( code )`, `calls public.lower(character varying)`},
		{`public.lower(code)`, ``},
		{`pg_catalog.lower(code)`, ``},
		{`public.lower(code) || lower(code)`, `calls public.lower(`},
		{`code = 'x'`, `uses operator public.=(character varying, character varying) through the search path of role postgres; write OPERATOR(public.=) or OPERATOR(pg_catalog.=)`},
		{`code IN ('x', 'y')`, `uses operator public.=(`},
		{`code OPERATOR(public.=) 'x'`, ``},
		{`code OPERATOR(pg_catalog.=) 'x'`, ``},
		{`'lower(x) =' || (SELECT max(c.mood::text) FROM customer c)`, ``},
		{`(SELECT noted.alike FROM (SELECT public.alike(code, code)) AS noted (alike))`, ``},
	} {
		c := resolveOne(t, conn, query("select id, json_build_object('v', "+test.value+") from product where id OPERATOR(pg_catalog.=) any($1)", idKey,
			on("product", "id"), via("customer", "select 1 where 1 OPERATOR(pg_catalog.=) any($1)", "id")))
		if c.Err != nil {
			t.Fatalf("%s: %v", test.value, c.Err)
		}
		said := strings.Join(c.Warnings, "\n")
		if strings.Contains(said, "search path") != (test.want != "") || !strings.Contains(said, test.want) {
			t.Errorf("%s: warned %q, want %q", test.value, said, test.want)
		}
	}
}
