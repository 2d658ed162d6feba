package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// roleVariable makes the test binary run as a process of a handover instead of running
// tests.
const roleVariable = "SLIPSTREAM_HANDOVER_ROLE"

const patience = 20 * time.Second

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role, os.Getenv("SLIPSTREAM_HANDOVER_PATH"), os.Getenv("SLIPSTREAM_HANDOVER_ADDRESS")); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play runs a child in its role.
func play(role, path, address string) error {
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	if role == "stranger" {
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	s, err := Inherit(context.Background(), Options{Path: path, Log: log})
	if err != nil {
		return err
	}
	p := &listening{answer: fmt.Sprintf("%d\n", os.Getpid())}
	for _, name := range []string{"http", "redis"} {
		for _, l := range s.Take(name, address) {
			fmt.Printf("inherited %s %s from %d\n", name, l.Addr(), s.Predecessor())
			p.named = append(p.named, Named{name, l})
		}
	}
	switch role {
	case "activated":
		if os.Getenv("LISTEN_FDS")+os.Getenv("LISTEN_PID")+os.Getenv("LISTEN_FDNAMES") == "" {
			fmt.Println("environment clear")
		}
		_, err := s.Ready(nil, nil)
		return err
	case "exits":
		return errors.New("it could not start")
	case "hangs":
		fmt.Println("hanging")
		time.Sleep(time.Hour)
	case "is slow":
		time.Sleep(2 * time.Second)
	}
	if len(p.named) == 0 {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		p.named = append(p.named, Named{"http", l})
	}
	leave := make(chan struct{})
	server, err := s.Ready(p.named, func() { close(leave) })
	if err != nil {
		return err
	}
	p.serve()
	fmt.Println("serving")
	<-leave
	p.stop()
	server.Close()
	fmt.Println("left")
	return nil
}

// listening answers each connection with one line, after one was read.
type listening struct {
	named  []Named
	answer string
	all    sync.WaitGroup
}

func (p *listening) serve() {
	for _, one := range p.named {
		p.all.Go(func() { // ends with the listener
			for {
				c, err := one.Listener.Accept()
				if err != nil {
					return
				}
				p.all.Go(func() { // ends with its connection, which has time limits
					defer c.Close()
					c.SetDeadline(time.Now().Add(patience))
					if _, err := io.ReadFull(c, make([]byte, 5)); err == nil {
						io.WriteString(c, p.answer)
					}
				})
			}
		})
	}
}

func (p *listening) stop() {
	for _, one := range p.named {
		one.Listener.Close()
	}
	p.all.Wait()
}

// ask sends a line to an address and returns the answer.
func ask(network, address string) (string, error) {
	c, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, "ping\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	return strings.TrimSpace(string(answer)), err
}

// start runs this binary in a role.
func start(t *testing.T, role, path, address string) *testkit.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Start(t, testkit.Command{Path: self, Env: []string{
		roleVariable + "=" + role, "SLIPSTREAM_HANDOVER_PATH=" + path, "SLIPSTREAM_HANDOVER_ADDRESS=" + address}})
}

// says waits until the process has written a text.
func says(t *testing.T, p *testkit.Process, text string) {
	t.Helper()
	testkit.Eventually(t, patience, func() error {
		if !strings.Contains(p.Log(), text) {
			return fmt.Errorf("process %d has not written %q, but\n%s", p.PID(), text, p.Log())
		}
		return nil
	})
}

// ends waits for the end of a process and checks whether it succeeded.
func ends(t *testing.T, p *testkit.Process, well bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Wait(ctx); (err == nil) != well {
		t.Errorf("process %d ended with %v, want success: %t\n%s", p.PID(), err, well, p.Log())
	}
}

// meetingPlace returns a path in a new directory. It is short, because the path of a unix
// socket may have only 107 bytes, and other users may enter the directory.
func meetingPlace(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "handover")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "s")
}

// predecessor is a process of a handover inside the test.
type predecessor struct {
	*listening
	server  *Server
	options Options
	address string // of http
	left    chan struct{}
	log     *record
}

func newLog(r *record) *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

// record collects the log.
type record struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// reusable makes n TCP listeners at one address.
func reusable(t *testing.T, n int) []net.Listener {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failure error
		err := c.Control(func(fd uintptr) {
			failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, failure)
	}}
	address := "127.0.0.1:0"
	var all []net.Listener
	for range n {
		l, err := config.Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		all = append(all, l)
		address = l.Addr().String()
	}
	return all
}

// precede waits for a successor at a path with n sockets called http. It accepts nothing
// before serve.
func precede(t *testing.T, path string, n int, change ...func(*predecessor)) *predecessor {
	t.Helper()
	p := &predecessor{listening: &listening{answer: "predecessor"}, left: make(chan struct{}), log: &record{}}
	for _, l := range reusable(t, n) {
		p.named = append(p.named, Named{"http", l})
		p.address = l.Addr().String()
	}
	p.options = Options{Path: path, Log: newLog(p.log)}
	for _, f := range change {
		f(p)
	}
	s, err := Inherit(t.Context(), p.options)
	if err != nil {
		t.Fatal(err)
	}
	if p.server, err = s.Ready(p.named, func() { close(p.left) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.server.Close()
		p.stop()
		if t.Failed() {
			t.Logf("log of the predecessor:\n%s", p.log)
		}
	})
	return p
}

// await waits until the predecessor may leave, and stops accepting.
func (p *predecessor) await(t *testing.T) {
	t.Helper()
	select {
	case <-p.left:
		p.stop()
	case <-time.After(patience):
		t.Fatalf("no process took over\n%s", p.log)
	}
}

// stays checks that the predecessor serves and that its sockets can be taken over.
func (p *predecessor) stays(t *testing.T) {
	t.Helper()
	select {
	case <-p.left:
		t.Fatal("the predecessor was told to leave")
	default:
	}
	if answer, err := ask("tcp", p.address); err != nil || answer != p.answer {
		t.Errorf("the predecessor: %q, %v", answer, err)
	}
	s, err := Inherit(t.Context(), Options{Path: p.options.Path})
	if err != nil {
		t.Fatalf("the predecessor's sockets: %v\n%s", err, p.log)
	}
	defer s.Close()
	got := s.Take("http", p.address)
	if len(got) != len(p.named) || s.Predecessor() != os.Getpid() {
		t.Errorf("inherited %d sockets of process %d, want %d of %d", len(got), s.Predecessor(), len(p.named), os.Getpid())
	}
	for _, l := range got {
		l.Close()
	}
}
