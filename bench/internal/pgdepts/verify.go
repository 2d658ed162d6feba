package pgdepts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net/http"

	"github.com/jackc/pgx/v5"
)

// document selects a document in the form that every subject must serve, with a statement that has
// nothing in common with ours.
const document = `
SELECT to_jsonb(d) || jsonb_build_object('emps', (
	SELECT coalesce(jsonb_agg(to_jsonb(e) ORDER BY e.empno), '[]') FROM emp e WHERE e.deptno = d.deptno))
FROM dept d WHERE d.deptno = $1`

// verified is the number of documents of each server that are compared with the database before it
// is measured.
const verified = 32

// Verify compares the results of get for random keys, 1 to count, with the database.
func Verify(ctx context.Context, url string, count int64, get func(ctx context.Context, key int64) ([]byte, error), seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 7))
	return WithConn(ctx, url, func(conn *pgx.Conn) error {
		for range verified {
			key := 1 + rng.Int64N(count)
			body, err := get(ctx, key)
			if err != nil {
				return err
			}
			var want []byte
			if err := conn.QueryRow(ctx, document, key).Scan(&want); err != nil {
				return fmt.Errorf("document %d: %w", key, err)
			}
			if err := sameJSON(body, want); err != nil {
				return fmt.Errorf("document %d: %w", key, err)
			}
		}
		return nil
	})
}

// OverHTTP returns a function that gets documents from a server.
func OverHTTP(address string) func(context.Context, int64) ([]byte, error) {
	return func(ctx context.Context, key int64) ([]byte, error) {
		url := fmt.Sprintf("http://%s/depts/%d", address, key)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s: %.200s", url, resp.Status, body)
		}
		return body, err
	}
}

// sameJSON compares two documents: members in any order, numbers by value.
func sameJSON(got, want []byte) error {
	var values [2]any
	for i, text := range [][]byte{got, want} {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&values[i]); err != nil {
			return fmt.Errorf("%.200s: %w", text, err)
		}
	}
	if !same(values[0], values[1]) {
		return fmt.Errorf("the body is\n%s, want\n%s", got, want)
	}
	return nil
}

func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			other, ok := b[name]
			if !ok || !same(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, okX := new(big.Rat).SetString(a.String())
		y, okY := new(big.Rat).SetString(b.String())
		return okX && okY && x.Cmp(y) == 0
	}
	return a == b
}
