package echo

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

func TestAnswersAreCompared(t *testing.T) {
	for _, tc := range []struct {
		name   string
		spoil  func(message []byte) []byte
		errors bool
	}{
		{"echo", func(m []byte) []byte { return m }, false},
		{"wrong byte", func(m []byte) []byte { m[500]++; return m }, true},
		{"short", func(m []byte) []byte { return m[:Size-1] }, true},
		{"long", func(m []byte) []byte { return append(m, 0) }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			// Ends with the listener; the test need not wait for it.
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					message := make([]byte, Size)
					for {
						if _, err := io.ReadFull(conn, message); err != nil {
							break
						}
						_, _ = conn.Write(tc.spoil(message))
						if tc.errors {
							break
						}
					}
					conn.Close()
				}
			}()
			target, err := Targets()[TargetName](t.Context(), loadproc.Spec{Address: listener.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			r, err := load.Run(t.Context(), load.Config{Callers: 1, Duration: 5 * time.Second, Requests: 3}, target)
			if err != nil {
				t.Fatal(err)
			}
			if (r.Errors > 0) != tc.errors || !tc.errors && r.Completed != 3 {
				t.Errorf("%d answers, %d errors: %s", r.Completed, r.Errors, r.ErrorSample)
			}
		})
	}
}
