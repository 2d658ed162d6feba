package loadproc

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// byteTarget exchanges single bytes with the test.
type byteTarget struct{ address string }

func (b byteTarget) NewCaller(ctx context.Context, _ int) (load.Caller, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.address)
	return byteCaller{conn}, err
}

type byteCaller struct{ net.Conn }

func (c byteCaller) Do(context.Context) error {
	one := []byte{1}
	if _, err := c.Write(one); err != nil {
		return err
	}
	_, err := c.Read(one)
	return err
}

func TestMain(m *testing.M) {
	Child(Targets{"byte": func(_ context.Context, s Spec) (load.Target, error) { return byteTarget{s.Address}, nil }})
	os.Exit(m.Run())
}

// listen answers single bytes, and calls f when it has answered n of them.
func listen(t *testing.T, n int, f func()) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	// Ends when the connection does; the cleanup waits for it.
	go func() {
		defer close(ended)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		one := make([]byte, 1)
		for i := 1; ; i++ {
			if _, err := io.ReadFull(conn, one); err != nil {
				return
			}
			if _, err := conn.Write(one); err != nil {
				return
			}
			if i == n {
				f()
			}
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return listener.Addr().String()
}

func TestALoadProcessThatIsInterruptedReportsWhatItMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address := listen(t, 100, cancel)
	outcome, err := Run(ctx, Spec{Target: "byte", Address: address, Callers: 1, Duration: time.Hour})
	if !errors.Is(err, context.Canceled) || !outcome.Partial() {
		t.Fatalf("outcome %+v, error %v, want a partial result and the context's error", outcome, err)
	}
	if outcome.Result.Completed < 99 || outcome.Result.Errors != 0 {
		t.Errorf("completed %d, errors %d", outcome.Result.Completed, outcome.Result.Errors)
	}
	if part := outcome.Part(); !strings.Contains(part.Partial, "interrupted") || part.Values[load.RPS] <= 0 {
		t.Errorf("sample %+v", part)
	}
}

func TestAWholeLoadHasNoPart(t *testing.T) {
	outcome, err := Run(t.Context(), Spec{Target: "byte", Address: listen(t, 0, nil), Callers: 1, Duration: time.Hour, Requests: 3})
	if err != nil || outcome.Partial() || outcome.Part().Values != nil || outcome.Sample().Values[load.RPS] <= 0 {
		t.Errorf("outcome %+v, error %v", outcome, err)
	}
	if _, err := Run(t.Context(), Spec{Target: "none", Callers: 1, Duration: time.Hour}); err == nil || !strings.Contains(err.Error(), `no target "none"`) {
		t.Errorf("error %v", err)
	}
}
