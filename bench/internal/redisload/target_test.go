package redisload

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
)

// A client that returns the values of other keys is detected.
func TestWrongValuesAreErrors(t *testing.T) {
	s, err := redisserver.Start(t.Context(), t.TempDir(), 16)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	text, err := json.Marshal(Work{Operation: OpGet, Size: 768}) // the server has values of 16 bytes
	if err != nil {
		t.Fatal(err)
	}
	tg, err := openTarget(t.Context(), "redigo", loadproc.Spec{Address: s.Address, Options: text, Callers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer tg.(*target).Close()
	c, err := tg.NewCaller(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "want 768 bytes") {
		t.Errorf("error %v", err)
	}
}

// stores is a client that records its calls.
type stores struct {
	asked  []string
	values map[string]string
	failed error // of the next Set, or nil
}

func (c *stores) Get(_ context.Context, dst []byte, key string) ([]byte, error) {
	c.asked = append(c.asked, "GET "+key)
	return append(dst, c.values[key]...), nil
}

func (c *stores) Set(_ context.Context, key, value string) error {
	if err := c.failed; err != nil {
		c.failed = nil
		return err
	}
	c.asked = append(c.asked, "SET "+key)
	c.values[key] = value
	return nil
}

func (c *stores) Close() error { return nil }

// A pair is a SET of a random key and a GET of the same key. After a failed SET, there is no GET.
func TestPairs(t *testing.T) {
	c := &stores{values: map[string]string{}, failed: errors.New("planted")}
	tg := &target{work: Work{Operation: OpPair, Size: 16}, clients: []Client{c}, ctx: t.Context()}
	for i := range 1000 {
		tg.keys = append(tg.keys, redisserver.Key(i))
		tg.values = append(tg.values, redisserver.Value(redisserver.Key(i), 16))
	}
	caller, err := tg.NewCaller(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if caller.Do(t.Context()) == nil {
		t.Error("a failed SET is not an error")
	}
	for range 6 {
		if err := caller.Do(t.Context()); err != nil {
			t.Error(err)
		}
	}
	keys := map[string]bool{}
	for i := 0; i+1 < len(c.asked); i += 2 {
		key, ok := strings.CutPrefix(c.asked[i], "SET ")
		if !ok || c.asked[i+1] != "GET "+key {
			t.Errorf("%q and %q are not a pair", c.asked[i], c.asked[i+1])
		}
		keys[key] = true
	}
	if len(c.asked) != 6 || len(keys) < 2 {
		t.Errorf("the requests are %q, want three pairs with random keys", c.asked)
	}
}
