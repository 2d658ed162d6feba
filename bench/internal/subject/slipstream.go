package subject

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
)

// A Slipstream is the program under test over one database.
type Slipstream struct {
	binary string
	dir    string // for configuration files
	origin string // as in the configuration, without its braces
	load   string // the section load, in the same form
	memory string // budget of the memory tier
	// resources are the resources in YAML; if empty, departments.
	resources string
	extra     Extra
}

// Extra holds parts of a gateway's configuration that are not needed for serving documents.
type Extra struct {
	Access   string // of the resource, in YAML without its braces; if empty, every client has access
	Sections string // whole sections of YAML
	Tiers    string // members of the section tiers after the memory, in YAML without its braces; if empty, none
	Redis    bool   // enables the Redis frontend
	Thrift   bool   // enables the Thrift frontend
	// TLS is the certificate of the HTTP frontend; if nil, it speaks clear text.
	TLS *Certificate
	// Files are written to the directory of the configuration, by name.
	Files map[string]string
	// Grace is how long the gateway may take to end; if zero, as long as any
	// program.
	Grace time.Duration
}

// With returns the same program over the same database with additional configuration.
func (s *Slipstream) With(extra Extra) (*Slipstream, error) {
	for name, text := range extra.Files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	other := *s
	other.extra = extra
	return &other, nil
}

// Postgres describes how a gateway uses a PostgreSQL database of dept and emp. URL and Memory must
// be set.
type Postgres struct {
	URL         string
	Notify      bool   // triggers that send NOTIFY
	Memory      string // budget of the memory tier
	Batch       int    // keys per statement; if 0, the gateway's default
	Concurrency int    // concurrent statements, each on its own connection; if 0, the gateway's default
}

// OverPostgres returns the program over a database that exists. It writes its
// configuration files into dir.
func OverPostgres(binary, dir string, p Postgres) *Slipstream {
	s := &Slipstream{binary: binary, dir: dir, memory: p.Memory, origin: fmt.Sprintf("url: %q", p.URL)}
	if p.Notify {
		s.origin += ", notify: true"
	}
	if p.Concurrency > 0 {
		s.origin += fmt.Sprintf(", connections: %d", p.Concurrency)
	}
	var limits []string
	if p.Batch > 0 {
		limits = append(limits, fmt.Sprintf("batch: %d", p.Batch))
	}
	if p.Concurrency > 0 {
		limits = append(limits, fmt.Sprintf("concurrency: %d", p.Concurrency))
	}
	s.load = strings.Join(limits, ", ")
	return s
}

// BuildSlipstream compiles the command of the module in directory module.
func BuildSlipstream(ctx context.Context, module, out string) error {
	return proc.Build(ctx, module, "./cmd/slipstream", out)
}

// NewSlipstream writes a database of count departments to dir and installs the gateway's triggers.
func NewSlipstream(ctx context.Context, binary, dir string, count int64, memory string) (*Slipstream, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	database := filepath.Join(dir, "depts.db")
	s := &Slipstream{binary: binary, dir: dir, memory: memory, origin: fmt.Sprintf("url: %q", "sqlite://"+filepath.ToSlash(database))}
	if err := depts.WriteSQLite(database, count); err != nil {
		return nil, err
	}
	return s, s.DB(ctx, "apply")
}

// OverSQLite returns the program over a database file that exists, with resources in YAML, and
// installs the gateway's triggers. It writes its configuration files into dir.
func OverSQLite(ctx context.Context, binary, dir, database, resources, memory string) (*Slipstream, error) {
	s := &Slipstream{binary: binary, dir: dir, memory: memory, resources: resources, origin: fmt.Sprintf("url: %q", "sqlite://"+filepath.ToSlash(database))}
	return s, s.DB(ctx, "apply")
}

// OverPages returns the program over a database of the documents of package pages, which it
// writes into dir, with the Redis frontend.
func OverPages(ctx context.Context, binary, dir string) (*Slipstream, error) {
	return overPages(ctx, binary, dir, "", Extra{Redis: true})
}

// OverNumberedPages is OverPages with the Thrift frontend in addition. Its fields have the numbers
// that package pages expects.
func OverNumberedPages(ctx context.Context, binary, dir string) (*Slipstream, error) {
	return overPages(ctx, binary, dir, "    thrift: { fields: { code: 1, body: 2 } }\n", Extra{Redis: true, Thrift: true})
}

func overPages(ctx context.Context, binary, dir, members string, extra Extra) (*Slipstream, error) {
	database := filepath.Join(dir, "pages.db")
	if err := pages.WriteSQLite(database); err != nil {
		return nil, err
	}
	resources := fmt.Sprintf("  %s:\n    table: page\n    key: [code]\n%s", pages.Resource, members)
	bare, err := OverSQLite(ctx, binary, dir, database, resources, "512MiB")
	if err != nil {
		return nil, err
	}
	return bare.With(extra)
}

// DB runs "slipstream db" with a verb and its flags on the database.
func (s *Slipstream) DB(ctx context.Context, verb string, flags ...string) error {
	config, err := s.configure("127.0.0.1:0", "127.0.0.1:0", "", "")
	if err != nil {
		return err
	}
	defer os.Remove(config)
	if verb == "apply" && strings.Contains(s.origin, "postgres://") {
		flags = append(flags, "--definer", "slipstream_definer") // we connect as a superuser
	}
	p, err := proc.Start(nil, s.binary, append([]string{"db", verb, "-c", config}, flags...)...)
	if err != nil {
		return err
	}
	if err := p.Wait(ctx); err != nil {
		_ = p.Stop()
		return err
	}
	return nil
}

// departments are the documents that most suites serve.
const departments = `  depts:
    table: dept
    key: [deptno]
%s    children:
      emps: { table: emp, on: { deptno: deptno }, order: [empno] }
`

// configure writes a configuration file and returns its path. redis and thrift may be
// empty.
func (s *Slipstream) configure(serve, admin, redis, thrift string) (string, error) {
	resources := s.resources
	if resources == "" {
		members := ""
		if s.load != "" {
			members = "    load: { " + s.load + " }\n"
		}
		if s.extra.Access != "" {
			members += "    access: { " + s.extra.Access + " }\n"
		}
		resources = fmt.Sprintf(departments, members)
	}
	frontends := fmt.Sprintf("http: %q", serve)
	if t := s.extra.TLS; t != nil {
		frontends = fmt.Sprintf("http: { address: %q, tls: { cert: %q, key: %q } }", serve, t.Cert, t.Key)
	}
	if redis != "" {
		frontends += fmt.Sprintf(", redis: %q", redis)
	}
	if thrift != "" {
		frontends += fmt.Sprintf(", thrift: %q", thrift)
	}
	tiers := "memory: " + s.memory
	if s.extra.Tiers != "" {
		tiers += ", " + s.extra.Tiers
	}
	text := fmt.Sprintf(`origin: { %s }
freshness: 1s
resources:
%stiers: { %s }
frontends: { %s }
admin: %q
%s`, s.origin, resources, tiers, frontends, admin, s.extra.Sections)
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
	redis, thrift := "", ""
	if s.extra.Redis {
		if redis, err = proc.FreePort(); err != nil {
			return nil, err
		}
	}
	if s.extra.Thrift {
		if thrift, err = proc.FreePort(); err != nil {
			return nil, err
		}
	}
	config, err := s.configure(serve, admin, redis, thrift)
	if err != nil {
		return nil, err
	}
	p, err := proc.Command{Path: s.binary, Args: []string{"serve", "-c", config}, Env: env, Grace: s.extra.Grace}.Start()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := p.Await(ctx, func(ctx context.Context) error { return ready(ctx, admin) }); err != nil {
		_ = p.Stop()
		return nil, err
	}
	return &Server{Process: p, Address: serve, Metrics: admin, Redis: redis, Thrift: thrift, Certificate: s.extra.TLS, cleanUp: func() error { return os.Remove(config) }}, nil
}

// ready returns an error unless the admin listener reports that the gateway is ready.
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
		return fmt.Errorf("/ready returned %s", resp.Status)
	}
	return nil
}
