package gateway_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestValuesEndToEnd: a value of each kind on the way from SQL to the body of an
// answer, once with integers as numbers and once as strings.
func TestValuesEndToEnd(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, writeAhead+`
		CREATE TABLE val (
			id INTEGER PRIMARY KEY, big BIGINT, negative INT, numeric_int NUMERIC, numeric_text NUMERIC, fraction REAL, whole REAL,
			tiny REAL, huge REAL, inf REAL, minus_inf REAL, yes BOOLEAN, no BOOLEAN, not_bool BOOLEAN, at TIMESTAMP, at_t TIMESTAMP,
			at_z TIMESTAMP WITH TIME ZONE, at_half TIMESTAMPTZ, not_a_time TIMESTAMP, day DATE, bytes BLOB, no_bytes BLOB,
			long_bytes BLOB, doc JSON, arr JSON, not_json JSON, plain TEXT, escapes TEXT, unicode TEXT, markup TEXT, absent TEXT,
			"odd ""name""" TEXT);
		INSERT INTO val VALUES (
			1, 9007199254740993, -9223372036854775808, 12345678901234567, '123456789012345678901234567890.10', 0.1, 5.0,
			5e-324, 1.7976931348623157e308, 9e999, -9e999, 1, 0, 2, '2024-02-29 23:59:59.123456', '2024-02-29T23:59:59',
			'2024-03-01 01:30:00+02:00', '2024-01-01 00:00:00.5-05:30', 'yesterday', '2024-02-29', x'00ff10', x'',
			zeroblob(100), '{"a": [1, 2.50], "b": null}', '[1, [2]]', '{broken', 'text', char(34, 92, 10, 9, 1), 'Ä日🙂' || char(0x2028),
			'<script>&', NULL, 'named');`)
	s := serveReady(t, path, `
resources:
  numbers: { table: val, key: [id] }
  strings: { table: val, key: [id], bigint: string }
`)
	var shown bytes.Buffer
	for _, p := range []string{"/numbers/1", "/strings/1"} {
		loaded := s.get(p)
		if loaded.status != 200 || !json.Valid([]byte(loaded.body)) {
			t.Fatalf("%s: %v", p, loaded)
		}
		if hit := s.cached(p); hit.body != loaded.body || hit.head.Get("Etag") != loaded.head.Get("Etag") || hit.head.Get("Content-Type") != "application/json" {
			t.Errorf("%s: the hit differs from the load:\n%s\n%s", p, hit.body, loaded.body)
		}
		// Indent changes only white space, not a single digit.
		if err := json.Indent(&shown, []byte(loaded.body), "", "  "); err != nil {
			t.Fatal(err)
		}
		shown.WriteByte('\n')
	}
	testkit.Golden(t, "values.json", shown.Bytes())
}
