// Package subject starts the servers that the gateway's benchmarks compare, each
// as a process of its own.
package subject

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

// startLimit is how long a server may take until it is ready.
const startLimit = 30 * time.Second

// A Program starts servers.
type Program interface {
	// Start returns a server that accepts connections. env is added to the
	// environment of the process.
	Start(ctx context.Context, env ...string) (*Server, error)
}

// A Server is a running process of a Program. Stop it.
type Server struct {
	*proc.Process
	Address string // of the documents
	Metrics string // whose /metrics tells allocations; empty: nobody's does
	Redis   string // address of the Redis frontend; empty: there is none
	Also    []int  // further processes whose CPU time is the server's

	cleanUp func() error
}

// Stop ends the process.
func (s *Server) Stop() error {
	err := s.Process.Stop()
	if s.cleanUp != nil {
		if cleanErr := s.cleanUp(); err == nil {
			err = cleanErr
		}
	}
	return err
}

// Spec returns a load specification for the server; the caller fills in the load.
func (s *Server) Spec() loadproc.Spec {
	return loadproc.Spec{
		Address: s.Address, Metrics: s.Metrics, PID: s.PID(), Also: s.Also, Path: "/depts/", Member: `{"deptno":`,
	}
}

// Processes are all processes of the server.
func (s *Server) Processes() []int { return append([]int{s.PID()}, s.Also...) }

// A Rival is a server of this module that announces itself by a sidecar.
type Rival struct {
	Args []string // of the program
	// Within is how long it may take until it accepts connections; 0: as long as any
	// server.
	Within time.Duration

	binary string
}

// BuildRival compiles <suite>/servers/<name> into dir.
func BuildRival(ctx context.Context, module, dir, suite, name string) (*Rival, error) {
	r := &Rival{binary: filepath.Join(dir, name)}
	return r, proc.Build(ctx, module, "./"+suite+"/servers/"+name, r.binary)
}

// With returns the same program with arguments.
func (r *Rival) With(args ...string) *Rival {
	return &Rival{Args: args, Within: r.Within, binary: r.binary}
}

// Start implements [Program].
func (r *Rival) Start(ctx context.Context, env ...string) (*Server, error) {
	p, err := proc.Start(env, r.binary, r.Args...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.Within, startLimit))
	defer cancel()
	line, err := p.FirstLine(ctx)
	if err != nil {
		_ = p.Stop()
		return nil, err
	}
	var at sidecar.Addresses
	if err := json.Unmarshal([]byte(line), &at); err != nil {
		_ = p.Stop()
		return nil, fmt.Errorf("%s printed %q, want its addresses", filepath.Base(r.binary), line)
	}
	return &Server{Process: p, Address: at.Serve, Metrics: at.Metrics}, nil
}
