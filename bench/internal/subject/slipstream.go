package subject

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
)

// A Slipstream is the program under test over one database file.
type Slipstream struct {
	binary   string
	dir      string // for configuration files
	database string
	memory   string // budget of the memory tier
}

// BuildSlipstream compiles the command of the module in directory module.
func BuildSlipstream(ctx context.Context, module, out string) error {
	return proc.Build(ctx, module, "./cmd/slipstream", out)
}

// NewSlipstream writes a database of count departments into dir and puts the
// gateway's triggers on it.
func NewSlipstream(ctx context.Context, binary, dir string, count int64, memory string) (*Slipstream, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &Slipstream{binary: binary, dir: dir, database: filepath.Join(dir, "depts.db"), memory: memory}
	if err := depts.WriteSQLite(s.database, count); err != nil {
		return nil, err
	}
	config, err := s.configure("127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer os.Remove(config)
	p, err := proc.Start(nil, binary, "db", "apply", "-c", config)
	if err != nil {
		return nil, err
	}
	if err := p.Wait(ctx); err != nil {
		_ = p.Stop()
		return nil, err
	}
	return s, nil
}

// configure writes a configuration file and returns its path.
func (s *Slipstream) configure(serve, admin string) (string, error) {
	text := fmt.Sprintf(`origin: { url: "sqlite://%s" }
freshness: 1s
resources:
  depts:
    table: dept
    key: [deptno]
    children:
      emps: { table: emp, on: { deptno: deptno }, order: [empno] }
tiers: { memory: %s }
frontends: { http: %q }
admin: %q
`, filepath.ToSlash(s.database), s.memory, serve, admin)
	name := "slipstream-" + strings.ReplaceAll(serve, ":", "-") + ".yaml"
	path := filepath.Join(s.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// Start implements [Program].
func (s *Slipstream) Start(ctx context.Context, env ...string) (*Server, error) {
	serve, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	admin, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	config, err := s.configure(serve, admin)
	if err != nil {
		return nil, err
	}
	p, err := proc.Start(env, s.binary, "serve", "-c", config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := p.Await(ctx, func(ctx context.Context) error { return ready(ctx, admin) }); err != nil {
		_ = p.Stop()
		return nil, err
	}
	return &Server{Process: p, Address: serve, Metrics: admin, cleanUp: func() error { return os.Remove(config) }}, nil
}

// ready asks the admin listener whether the gateway serves.
func ready(ctx context.Context, admin string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/ready", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/ready answers %s", resp.Status)
	}
	return nil
}
