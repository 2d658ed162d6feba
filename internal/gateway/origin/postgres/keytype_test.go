package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// keySamples are values of every key type and their canonical texts; "" after a
// value says that no path expresses it, though it may join.
var keySamples = []struct {
	sql    string // of the column
	values map[string]string
}{
	{"smallint", map[string]string{"-32768": "-32768", "7": "7"}},
	{"int", map[string]string{"0": "0", "-2147483648": "-2147483648"}},
	{"bigint", map[string]string{"9223372036854775807": "9223372036854775807", "-9223372036854775808": "-9223372036854775808"}},
	{"text", map[string]string{"a": "a", " ": " ", "ä/\\\"'": "ä/\\\"'", "tab\tand\nline": "tab\tand\nline", "": ""}},
	{"varchar(20)", map[string]string{"x ": "x ", "null": "null"}},
	{"bytea", map[string]string{`\x00ff`: "00ff", `\x`: ""}},
	{"uuid", map[string]string{"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}},
	{"numeric", map[string]string{"1.500": "1.5", "-0.0": "0", "100": "100", "1e30": "1" + strings.Repeat("0", 30), "NaN": "", "Infinity": "", "-Infinity": "",
		"0.00000000000000000001": "0.00000000000000000001", "1e2000": "", "1e-2000": ""}},
	{"numeric(8,3)", map[string]string{"1.5": "1.5", "0": "0"}},
	{"date", map[string]string{"2024-02-29": "2024-02-29", "0001-01-01": "0001-01-01", "9999-12-31": "9999-12-31",
		"10000-01-01": "", "5874897-12-31": "", "0044-03-15 BC": "", "4713-02-01 BC": "", "infinity": "", "-infinity": ""}},
	{"timestamp", map[string]string{"2024-02-29 12:30:01.5": "2024-02-29T12:30:01.500000", "0001-01-01": "0001-01-01T00:00:00.000000",
		"294276-12-31 23:59:59.999999": "", "0044-03-15 12:00 BC": "", "4713-02-01 BC": "", "infinity": "", "-infinity": ""}},
	{"timestamptz", map[string]string{"2024-02-29 12:30:01.000001+05:30": "2024-02-29T07:00:01.000001Z", "0001-01-01 00:00:00+00": "0001-01-01T00:00:00.000000Z",
		"2024-03-31 02:30:00+02": "2024-03-31T00:30:00.000000Z", "9999-12-31 23:59:59-01": "", "294276-12-31 23:59:59+00": "", "0044-03-15 12:00+00 BC": "", "infinity": ""}},
	{"boolean", map[string]string{"t": "true", "f": "false"}},
	{"mood", map[string]string{"sad": "sad", "it's \\": "it's \\"}},
	{"posint", map[string]string{"5": "5"}},
	{"raw", map[string]string{`\xff00`: "ff00"}},
	{"price", map[string]string{"10.00": "10", "0.10": "0.1"}},
	{"moment", map[string]string{"2024-10-27 02:30:00+01": "2024-10-27T01:30:00.000000Z", "2024-10-27 02:30:00+02": "2024-10-27T00:30:00.000000Z"}},
}

const keySettings = `SET DateStyle = 'German'; SET TimeZone = 'Asia/Kathmandu'; SET IntervalStyle = 'sql_standard'; SET bytea_output = 'escape';
	SET extra_float_digits = -15; SET lc_time = 'C'; SET standard_conforming_strings = off; SET search_path = evil, pg_catalog`

// The text of a key is the same in every session, is the text in a path, and
// converts back to the value.
func TestKeyTextsAreCanonical(t *testing.T) {
	pg := freshDatabase(t)
	runScript(t, pg.url, `CREATE TYPE mood AS ENUM ('sad', E'it''s \\'); CREATE DOMAIN posint AS int CHECK (VALUE > 0);
		CREATE DOMAIN raw AS bytea; CREATE DOMAIN price AS numeric; CREATE DOMAIN moment AS timestamptz;
		CREATE SCHEMA evil;
		CREATE FUNCTION evil.to_char(timestamp, text) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$;
		CREATE FUNCTION evil.less(timestamp, timestamp) RETURNS bool LANGUAGE sql AS $$ SELECT true $$;
		CREATE OPERATOR evil.< (LEFTARG = timestamp, RIGHTARG = timestamp, FUNCTION = evil.less);
		CREATE FUNCTION evil.encode(bytea, text) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$`)
	plain, odd := connect(t, pg.url), connect(t, pg.url)
	if _, err := odd.Exec(t.Context(), keySettings); err != nil {
		t.Fatal(err)
	}
	for _, sample := range keySamples {
		types := keyTypeNamed(t, plain, sample.sql)
		for value, want := range sample.values {
			typed := quoteText(value) + "::" + sample.sql
			column := "(SELECT x FROM (VALUES (" + typed + ")) AS v (x))"
			text := scan[string](t, plain, "SELECT "+types.text(column))
			// The odd session parses values in another style, so the value is
			// passed in a table.
			if _, err := plain.Exec(t.Context(), "DROP TABLE IF EXISTS public.handed; CREATE TABLE public.handed AS SELECT "+typed+" AS x"); err != nil {
				t.Fatal(err)
			}
			if got := scan[string](t, odd, "SELECT "+types.text("x")+" FROM public.handed"); got != text {
				t.Errorf("%s %s: %q, under other settings %q", sample.sql, value, text, got)
			}
			for _, conn := range []*pgx.Conn{plain, odd} {
				if got := scan[string](t, conn, "SELECT "+types.anyText("x")+" FROM public.handed"); got != text {
					t.Errorf("%s %s: triggers record %q, derivations give %q", sample.sql, value, got, text)
				}
			}
			key := []resource.KeyColumn{{Name: "k", Kind: types.kind}}
			id, ok := decodeKey(key, text)
			if ok != (want != "") || ok && id != want {
				t.Errorf("%s %s: text %q gives id %q, %v; want %q", sample.sql, value, text, id, ok, want)
			}
			for _, conn := range []*pgx.Conn{plain, odd} {
				if !scan[bool](t, conn, "SELECT coalesce("+types.value("$1::pg_catalog.text")+" = x, false) FROM public.handed", text) {
					t.Errorf("%s %s: text %q does not convert back", sample.sql, value, text)
				}
			}
			if ok && !scan[bool](t, plain, "SELECT coalesce("+types.parameter("$1::pg_catalog.text")+" = x, false) FROM public.handed", text) {
				t.Errorf("%s %s: parameter %q is another value", sample.sql, value, text)
			}
			compositeLeadsBack(t, plain, types, text)
		}
		if got := scan[*string](t, plain, "SELECT "+types.text("NULL::"+sample.sql)); got != nil {
			t.Errorf("%s: NULL gives %q", sample.sql, *got)
		}
	}
}

// compositeLeadsBack does the same with a key of two columns and a NULL.
func compositeLeadsBack(t *testing.T, conn *pgx.Conn, kt keyType, text string) {
	t.Helper()
	types := []keyType{builtinKeyTypes[25], kt, builtinKeyTypes[23]}
	recorded := scan[string](t, conn, "SELECT "+keyText(types, []string{`E'q"\\\n\x01'`, "x", "NULL::int"})+" FROM public.handed")
	if !scan[bool](t, conn, "SELECT "+keyValue(types, "$1::text", 1)+" = x AND "+keyValue(types, "$1::text", 0)+` = E'q"\\\n\x01' AND `+
		keyValue(types, "$1::text", 2)+" IS NULL FROM public.handed", recorded) {
		t.Errorf("%s does not convert back to %q", recorded, text)
	}
}

func keyTypeNamed(t testing.TB, conn *pgx.Conn, name string) (kt keyType) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		cat, err := newCatalog(t.Context(), tx)
		if err != nil {
			return err
		}
		kt, err = cat.keyType(t.Context(), name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return kt
}

func scan[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) (value T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%v in %s", err, sql)
	}
	return value
}

// Any text in the change table yields a value or NULL, never an error.
func TestNoRecordedTextFails(t *testing.T) {
	pg := freshDatabase(t)
	conn := connect(t, pg.url)
	runScript(t, pg.url, `CREATE TYPE mood AS ENUM ('sad')`)
	garbage := []string{"", " ", "null", "NULL", "[]", "[null]", `["a"`, `["a",]`, `["a", ]`, `["a" "b"]`, `["a", "b"] `, `{"a":1}`, `["\u0000", "a"]`, `["\ud800", "a"]`,
		`["\x", "a"]`, "[1, 2]", `["1", "2", "3", "4"]`, `["1"]`, "1", "-1", "--1", "1.5", ".", "1.", "1e5", "9223372036854775808", "-9223372036854775809",
		"99999999999999999999", strings.Repeat("9", 140000), "1." + strings.Repeat("9", 17000), "NaN", "Infinity", "-Infinity", "inf", "infinity", "nan",
		"t", "true", "0", "xyz", "0x", "f", "ff", "fff", "FF", `\xff`, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
		"2024-02-30", "2024-02-31 BC", "0000-01-01", "0000-01-01 BC", "9999999-12-31", "5874897-11-31", "5874898-01-01", "4714-01-01 BC", "4713-01-01 BC",
		"2024-13-01", "2024-01-01T24:00:00.000000", "294276-12-31T23:59:59.999999", "294277-01-01T00:00:00.000000Z", "294276-02-31T23:59:59.999999Z",
		"4713-01-31T00:00:00.000000 BC", "4713-01-31T00:00:00.000000Z BC", "999999-01-01T00:00:00.000000", "2024-02-30T10:00:00.000000Z", "today", "now", "epoch", "2024-01-01'; DROP TABLE x; --", "sad", "glad"}
	for _, name := range []string{"int", "text", "bytea", "uuid", "numeric", "date", "timestamp", "timestamptz", "boolean", "mood"} {
		kt := keyTypeNamed(t, conn, name)
		pair := []keyType{kt, kt}
		for _, text := range slices.Concat(garbage, []string{`["` + strings.Join(garbage[17:20], `", "`) + `"]`}) {
			for _, expression := range []string{kt.value("x"), keyValue(pair, "x", 0), keyValue(pair, "x", 1)} {
				if _, err := conn.Exec(t.Context(), "SELECT "+expression+" FROM (SELECT $1::text AS x OFFSET 0) AS v", text); err != nil {
					t.Errorf("%s from %.60q: %v", name, text, err)
				}
			}
		}
	}
}

func TestDecodeKey(t *testing.T) {
	pair := []resource.KeyColumn{{Name: "a", Kind: resource.Integer}, {Name: "b", Kind: resource.Text}}
	for text, want := range map[string]string{
		`["1", "a"]`: "1:1a", `["-7", "é\""]`: `2:-7é"`,
		``: "", `[]`: "", `["1"]`: "", `["1", null]`: "", `["1", ""]`: "", `["01", "a"]`: "", `["1", "a", "b"]`: "", `[1, "a"]`: "", `{"a": "1"}`: "", `["1", "a"`: "",
	} {
		if id, ok := decodeKey(pair, text); id != want || ok != (want != "") {
			t.Errorf("decodeKey(%s) = %q, %v; want %q", text, id, ok, want)
		}
	}
}
