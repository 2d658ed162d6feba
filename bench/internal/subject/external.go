package subject

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
)

// ErrNotInstalled means that an external program is missing.
var ErrNotInstalled = errors.New("is not installed")

// Find returns the path of an external program; administrators' programs are not
// in every user's PATH.
func Find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	path := filepath.Join("/usr/sbin", name)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return path, nil
	}
	return "", fmt.Errorf("the program %s %w: apt-get install %s", name, ErrNotInstalled, map[string]string{
		"nginx": "nginx", "varnishd": "varnish", "wrk": "wrk", "redis-server": "redis-server", "redis-benchmark": "redis-tools", "strace": "strace"}[name])
}

// Nginx serves the departments as files that it holds open.
type Nginx struct {
	path, dir   string
	certificate *Certificate // nil for clear text
}

// NewNginx writes the files below dir.
func NewNginx(dir string) (*Nginx, error) {
	path, err := Find("nginx")
	if err != nil {
		return nil, err
	}
	files := filepath.Join(dir, "root", "depts")
	if err := os.MkdirAll(files, 0o755); err != nil {
		return nil, err
	}
	for n := int64(1); n <= depts.Count; n++ {
		d := depts.Make(n)
		if err := os.WriteFile(filepath.Join(files, strconv.FormatInt(n, 10)), d.AppendJSON(nil), 0o644); err != nil {
			return nil, err
		}
	}
	return &Nginx{path: path, dir: dir}, nil
}

// WithTLS returns the same server with TLS, and HTTP/2 for clients that support
// it.
func (n *Nginx) WithTLS(c *Certificate) *Nginx {
	other := *n
	other.certificate = c
	return &other
}

// nginxText avoids work: no log, open files, one write for head and body, and connections that are
// never closed because of their age.
const nginxText = `%sdaemon off;
pid %[2]s/nginx.pid;
error_log stderr warn;
worker_processes %[3]d;
worker_rlimit_nofile 20000;
events { worker_connections 18000; }
http {
	access_log off;
	default_type application/json;
	sendfile off;
	etag on;
	server_tokens off;
	keepalive_timeout 1h;
	keepalive_requests 1000000000;
	open_file_cache max=4000 inactive=1h;
	open_file_cache_valid 1h;
	open_file_cache_min_uses 1;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	server {
		listen %[4]s backlog=4096;
%[5]s		root %[2]s/root;
	}
}
`

// nginxTLS is the additional configuration for TLS. Sessions are resumed with tickets, as in the Go
// servers; a session cache would help only before TLS 1.3.
const nginxTLS = `		ssl_certificate %s;
		ssl_certificate_key %s;
		ssl_protocols TLSv1.2 TLSv1.3;
`

// Start implements [Program].
func (n *Nginx) Start(ctx context.Context, env ...string) (*Server, error) {
	address, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	user := "" // workers of an nginx started as root run as a user that may not read the files
	if os.Geteuid() == 0 {
		user = "user root;\n"
	}
	config := filepath.Join(n.dir, "nginx.conf")
	listen, secure := address, ""
	if n.certificate != nil {
		listen += " ssl http2" // since 1.25.1 also "http2 on", which 1.22 does not support
		secure = fmt.Sprintf(nginxTLS, n.certificate.Cert, n.certificate.Key)
	}
	text := fmt.Sprintf(nginxText, user, n.dir, runtime.NumCPU(), listen, secure)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	command := proc.Command{Path: n.path, Args: []string{"-p", n.dir, "-c", config, "-e", "stderr"}, Env: env, Ask: syscall.SIGTERM}
	return startExternal(ctx, command, address, runtime.NumCPU(), n.certificate)
}

// Varnish is a cache in front of another server. Every document is a hit after its first request.
type Varnish struct {
	path, dir string
	origin    Program
}

// NewVarnish returns the cache of an origin. It works in dir.
func NewVarnish(dir string, origin Program) (*Varnish, error) {
	path, err := Find("varnishd")
	if err != nil {
		return nil, err
	}
	return &Varnish{path: path, dir: dir, origin: origin}, os.MkdirAll(dir, 0o755)
}

// varnishText caches responses for an hour and ignores the origin's no-cache, which would make
// every request a miss.
const varnishText = `vcl 4.1;
backend default { .host = "%s"; .port = "%s"; }
sub vcl_recv {
	unset req.http.Cookie;
	return (hash);
}
sub vcl_backend_response {
	unset beresp.http.Set-Cookie;
	set beresp.ttl = 1h;
	set beresp.uncacheable = false;
	return (deliver);
}
`

// Start implements [Program].
func (v *Varnish) Start(ctx context.Context, env ...string) (*Server, error) {
	origin, err := v.origin.Start(ctx)
	if err != nil {
		return nil, err
	}
	server, err := v.startBefore(ctx, origin, env)
	if err != nil {
		return nil, errors.Join(err, origin.Stop())
	}
	return server, nil
}

func (v *Varnish) startBefore(ctx context.Context, origin *Server, env []string) (*Server, error) {
	host, port, err := net.SplitHostPort(origin.Address)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(v.dir, "default.vcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, varnishText, host, port), 0o644); err != nil {
		return nil, err
	}
	address, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	// There is a thread pool for each processor. Further requests wait, whereas by default a
	// request is dropped if 20 are waiting. Connections may be idle for as long as with other
	// servers, not 5 s.
	command := proc.Command{Path: v.path, Env: env, Ask: syscall.SIGTERM, Args: []string{
		"-F", "-j", "none", "-n", filepath.Join(v.dir, "work"), "-a", address, "-T", "none", "-f", config, "-s", "malloc,64m",
		"-p", fmt.Sprintf("thread_pools=%d", runtime.NumCPU()), "-p", "thread_pool_min=100", "-p", "thread_pool_max=1000",
		"-p", "thread_queue_limit=20000", "-p", "listen_depth=4096", "-p", "timeout_idle=3600",
	}}
	server, err := startExternal(ctx, command, address, 1, nil)
	if err != nil {
		return nil, err
	}
	server.cleanUp = origin.Stop
	return server, nil
}

// startExternal starts a program that starts further processes, and waits until it answers and has
// at least that many. The first process, the only one that is signaled to end, may accept
// connections before the others exist.
func startExternal(ctx context.Context, command proc.Command, address string, workers int, certificate *Certificate) (*Server, error) {
	p, err := command.Start()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	server := &Server{Process: p, Address: address, Certificate: certificate}
	err = p.Await(ctx, func(ctx context.Context) error {
		if err := answers(ctx, server); err != nil {
			return err
		}
		if server.Also, err = proc.Descendants(p.PID()); err != nil {
			return err
		}
		if len(server.Also) < workers {
			return fmt.Errorf("%d processes in addition to the first, want %d", len(server.Also), workers)
		}
		return nil
	})
	if err != nil {
		_ = p.Stop()
		return nil, err
	}
	return server, nil
}

// answers returns an error unless a server returns the first document.
func answers(ctx context.Context, server *Server) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	rsp, err := server.Get(ctx, 1)
	if err != nil {
		return err
	}
	defer rsp.Body.Close()
	if rsp.StatusCode != http.StatusOK {
		return fmt.Errorf("the first document: %s", rsp.Status)
	}
	return nil
}
