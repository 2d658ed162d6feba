package rpc_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// lines is a log that collects its lines.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// all returns the lines without the parts that differ from run to run.
func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for line := range strings.Lines(l.buf.String()) {
		words := slices.DeleteFunc(strings.Fields(line), func(w string) bool {
			return strings.HasPrefix(w, "time=") || strings.HasPrefix(w, "took=") || strings.HasPrefix(w, "peer=")
		})
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// The access log has a line for each call, with its details or the reason why it failed. Long names from clients are
// cut.
func TestAccessLog(t *testing.T) {
	log := new(lines)
	s := serve(t, rpc.ServerConfig{OnCall: rpc.AccessLog(slog.New(slog.NewTextHandler(log, nil)))}, calc.NewCalculatorService(new(calculator)))
	p := dial(t, s, frame.Format{Transport: frame.Framed})
	p.send("add", 1, &calc.CalculatorAddArgs{A: 1, B: 2})
	p.reply(1, &calc.CalculatorAddResult{})
	p.send("fail", 2, &calc.CalculatorFailArgs{How: "broken"})
	_, _ = p.exception(2)
	p.send(strings.Repeat("x", 1000), 3, &calc.BasePingArgs{})
	_, _ = p.exception(3)
	got := log.all()
	if len(got) != 3 {
		t.Fatalf("%d lines, want 3: %q", len(got), got)
	}
	if want := `level=INFO msg=call service=Calculator function=add format="Framed, Binary" received=`; !strings.HasPrefix(got[0], want) || strings.Contains(got[0], "error=") {
		t.Errorf("the line of a call is %s, want %s...", got[0], want)
	}
	if want := `level=WARN msg=call service=Calculator function=fail `; !strings.HasPrefix(got[1], want) || !strings.Contains(got[1], "refused=false error=") || !strings.Contains(got[1], "broken") {
		t.Errorf("the line of a failed call is %s, want %s...", got[1], want)
	}
	if want := ` function=` + strings.Repeat("x", 100) + ` `; !strings.Contains(got[2], want) || !strings.HasPrefix(got[2], "level=WARN") {
		t.Errorf("the line of a call of an unknown function is %s", got[2])
	}
}
