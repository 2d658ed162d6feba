package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// What connections hold is a part of the memory limit, and of the metrics.
func TestMemoryLimitIncludesClients(t *testing.T) {
	const least = 4 << 20
	path := newDatabase(t, writeAhead+`CREATE TABLE dept (deptno INTEGER PRIMARY KEY, dname TEXT); INSERT INTO dept VALUES (1, 'a');`)
	cfg := configure(t, path, "resources: { depts: { table: dept, key: [deptno] } }\n")
	cfg.Frontends.Redis = "127.0.0.1:0"
	s := serve(t, cfg)
	before := s.gateway.MemoryLimit()
	one := fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$60000\r\n%s\r\n", strings.Repeat("x", 60_000))
	text := []byte(strings.Repeat(one, 200))
	for range 30 {
		c, err := net.Dial("tcp", s.gateway.RedisAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() { _, _ = c.Write(text) }() // ends when the connection is closed
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		used := int64(0)
		r, err := http.Get(s.admin + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		all, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(all)) {
			if value, found := strings.CutPrefix(line, "slipstream_client_memory_bytes "); found {
				var f float64
				if _, err := fmt.Sscan(value, &f); err != nil {
					t.Fatal(err)
				}
				used = int64(f)
			}
		}
		if grown := s.gateway.MemoryLimit() - before; used < least || grown < least {
			return fmt.Errorf("%d bytes are held, and the limit has grown by %d, want %d or more of both", used, grown, least)
		}
		return nil
	})
}
