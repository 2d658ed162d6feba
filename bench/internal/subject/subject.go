// Package subject starts the servers that the gateway's benchmarks compare, each
// as a separate process.
package subject

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
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
	Metrics string // whose /metrics reports allocations; empty if there is none
	Redis   string // address of the Redis frontend; empty if there is none
	Thrift  string // address of the Thrift frontend; empty if there is none
	Also    []int  // further processes whose CPU time is the server's
	// Certificate is the certificate of the server; if nil, documents are served in clear text.
	Certificate *Certificate

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
	spec := loadproc.Spec{
		Address: s.Address, Metrics: s.Metrics, PID: s.PID(), Also: s.Also, Path: "/depts/", Member: `{"deptno":`,
	}
	if s.Certificate != nil {
		spec.Certificate = s.Certificate.PEM
	}
	return spec
}

// Get requests the document of a key over a separate connection. It requests no content
// coding, so that net/http decodes none.
func (s *Server) Get(ctx context.Context, key int64) (*http.Response, error) {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	scheme := "http"
	if s.Certificate != nil {
		scheme, transport.TLSClientConfig = "https", s.Certificate.trust()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s/depts/%d", scheme, s.Address, key), nil)
	if err != nil {
		return nil, err
	}
	return (&http.Client{Transport: transport}).Do(req)
}

// Processes returns all processes of the server.
func (s *Server) Processes() []int { return append([]int{s.PID()}, s.Also...) }

// A Rival is a server of this module that announces itself by a sidecar.
type Rival struct {
	Args []string // of the program
	// Within is how long it may take until it accepts connections. If zero, the default limit
	// applies.
	Within time.Duration

	binary      string
	certificate *Certificate // nil for clear text
}

// BuildRival compiles <suite>/servers/<name> into dir.
func BuildRival(ctx context.Context, module, dir, suite, name string) (*Rival, error) {
	r := &Rival{binary: filepath.Join(dir, name)}
	return r, proc.Build(ctx, module, "./"+suite+"/servers/"+name, r.binary)
}

// RivalAt returns a rival whose program has already been built.
func RivalAt(binary string) *Rival { return &Rival{binary: binary} }

// Binary returns the path of the program.
func (r *Rival) Binary() string { return r.binary }

// With returns the same program with arguments.
func (r *Rival) With(args ...string) *Rival {
	return &Rival{Args: args, Within: r.Within, binary: r.binary}
}

// WithTLS returns the same program with the additional arguments -cert and -key.
func (r *Rival) WithTLS(c *Certificate) *Rival {
	other := *r
	other.Args = append(slices.Clone(r.Args), "-cert", c.Cert, "-key", c.Key)
	other.certificate = c
	return &other
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
	return &Server{Process: p, Address: at.Serve, Metrics: at.Metrics, Certificate: r.certificate}, nil
}
