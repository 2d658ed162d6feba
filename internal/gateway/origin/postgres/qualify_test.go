package postgres

import (
	"slices"
	"testing"
)

func TestQualified(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`SELECT count(*) AS n, (a.x + 1) FROM app.t a WHERE (a.y = 'lower(x)'::text)`,
			`SELECT pg_catalog.count(*) AS n, (a.x OPERATOR(pg_catalog.+) 1) FROM app.t a WHERE (a.y OPERATOR(pg_catalog.=) 'lower(x)'::pg_catalog.text)`},
		{`SELECT app.lower(x), "left"(x, 1), COALESCE(x, y), (x OPERATOR(app.=) y)`,
			`SELECT app.lower(x), pg_catalog."left"(x, 1), COALESCE(x, y), (x OPERATOR(app.=) y)`},
		{`WITH a(x) AS ( SELECT 1), b(y) AS MATERIALIZED ( SELECT 2) SELECT a.* FROM unnest(ARRAY[1]) u(k), LATERAL f(1) WITH ORDINALITY g(a, b)`,
			`WITH a(x) AS ( SELECT 1), b(y) AS MATERIALIZED ( SELECT 2) SELECT a.* FROM pg_catalog.unnest(ARRAY[1]) u(k), LATERAL pg_catalog.f(1) WITH ORDINALITY g(a, b)`},
		{`SELECT x::character varying(20), y::timestamp(3) without time zone, z::json[], w::app.mood, v::numeric(10,-2), (- 1)`,
			`SELECT x::character varying(20), y::timestamp(3) without time zone, z::pg_catalog.json[], w::app.mood, v::numeric(10,-2), (OPERATOR(pg_catalog.-) 1)`},
		{`FROM json_to_record(j) r(a integer, b text, c app.t[], d timestamp with time zone)`,
			`FROM pg_catalog.json_to_record(j) r(a integer, b pg_catalog.text, c app.t[], d timestamp with time zone)`},
		{`(x IN ( SELECT 1)) AND (y = ANY (z)) AND (t COLLATE "C") AND f(a => 1) AND EXTRACT(year FROM d)`,
			`(x OPERATOR(pg_catalog.=) ANY ( SELECT 1)) AND (y OPERATOR(pg_catalog.=) ANY (z)) AND (t COLLATE pg_catalog."C") AND pg_catalog.f(a => 1) AND EXTRACT(year FROM d)`},
	} {
		got, err := qualified(test.text)
		if err != nil || got != test.want {
			t.Errorf("%s\ngot  %s %v\nwant %s", test.text, got, err, test.want)
		}
	}
}

func TestSchemasOf(t *testing.T) {
	for setting, want := range map[string][]string{
		`"$user", public`:           {"pg_temp_3", "pg_catalog", "app", "public"},
		`A,"B""c, d" ,pg_catalog`:   {"pg_temp_3", "a", `B"c, d`, "pg_catalog"},
		``:                          {"pg_temp_3", "pg_catalog"},
		`""`:                        {"pg_temp_3", "pg_catalog"},
		`x, pg_catalog, pg_temp, x`: {"x", "pg_catalog", "pg_temp_3"},
		"one\t, \"two\"\n,\"three":  {"pg_temp_3", "pg_catalog", "one", "two", "three"},
	} {
		if got := schemasOf(setting, "app", "pg_temp_3"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", setting, got, want)
		}
	}
}
