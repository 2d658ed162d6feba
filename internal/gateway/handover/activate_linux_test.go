package handover

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestActivated: a child gets sockets as systemd passes them.
func TestActivated(t *testing.T) {
	testkit.NoLeaks(t)
	listeners := reusable(t, 2)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, pid, names string
		want             []string
		wantWell         bool
	}{
		{"named", "$$", "http:http:redis", []string{"inherited http " + listeners[0].Addr().String(), "socket=redis", "from=systemd", "environment clear"}, true},
		{"for another process", "1", "http:http:redis", []string{"environment clear"}, true},
		{"names that are not as many", "$$", "http:http", []string{"LISTEN_FDNAMES has 2 names"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The shell keeps its process ID when it becomes the program.
			cmd := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("LISTEN_PID=%s exec %s", c.pid, self))
			cmd.Env = append(os.Environ(), roleVariable+"=activated", "LISTEN_FDS=3", "LISTEN_FDNAMES="+c.names,
				"SLIPSTREAM_HANDOVER_ADDRESS="+listeners[0].Addr().String())
			for _, l := range append(listeners, other) {
				fd, err := duplicate(l)
				if err != nil {
					t.Fatal(err)
				}
				f := os.NewFile(uintptr(fd), "socket")
				defer f.Close()
				cmd.ExtraFiles = append(cmd.ExtraFiles, f)
			}
			out, err := cmd.CombinedOutput()
			if (err == nil) != c.wantWell {
				t.Errorf("%v, want success: %t", err, c.wantWell)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("output %s; want %q", out, want)
				}
			}
		})
	}
}

func TestActivation(t *testing.T) {
	for _, c := range []struct {
		pid, count, names string
		want              string // names, or a part of the error
	}{
		{"", "", "", "[]"},
		{"42", "", "", "[]"},
		{"", "2", "", "[]"},
		{"43", "2", "", "[]"},
		{"42", "0", "", "[]"},
		{"42", "2", "", "[http redis]"},
		{"42", "2", "redis:http", "[redis http]"},
		{"42", "3", "http:http:admin", "[http http admin]"},
		{"42", "2", "slipstream.socket:slipstream.socket", "[http redis]"},
		{"42", "2", "unknown:", "[http redis]"},
		{"42", "3", "redis:unknown:unknown", "[redis http redis]"},
		{"42", "3", "", "without a name"},
		{"42", "2", "http", "expected as many"},
		{"42", "1025", "", "up to 1024"},
		{"42", "-1", "", "up to 1024"},
		{"42", "99999999999999999999", "", "up to 1024"},
		{"x", "2", "", "LISTEN_PID"},
		{"-42", "2", "", "LISTEN_PID"},
	} {
		names, err := activation(c.pid, c.count, c.names, 42)
		got := fmt.Sprint(names)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("activation(%q, %q, %q) = %s, want %s", c.pid, c.count, c.names, got, c.want)
		}
	}
}

func FuzzActivation(f *testing.F) {
	f.Add("42", "2", "http:redis")
	f.Add("42", "3", "slipstream.socket::unknown")
	f.Fuzz(func(t *testing.T, pid, count, names string) {
		all, err := activation(pid, count, names, 42)
		if err != nil && all != nil || len(all) > MaxSockets {
			t.Errorf("%d names and %v", len(all), err)
		}
		for _, name := range all {
			if !isName(name) {
				t.Errorf("name %q", name)
			}
		}
	})
}

func FuzzMessage(f *testing.F) {
	for _, m := range []message{
		{State: stateReady},
		{State: stateOffer, More: true, Sockets: []socket{{"http", "tcp", "127.0.0.1:8080"}, {"redis", "unix", "/run/redis"}}},
	} {
		b, err := encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readMessage(strings.NewReader(string(b)))
		if err != nil {
			return
		}
		// Accepted messages can be encoded again.
		again, err := encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if m2, err := readMessage(strings.NewReader(string(again))); err != nil || fmt.Sprint(m2) != fmt.Sprint(m) {
			t.Errorf("%v became %v, %v", m, m2, err)
		}
	})
}

// TestNotify: the service manager gets the datagram.
func TestNotify(t *testing.T) {
	testkit.NoLeaks(t)
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify("READY=1"); err != nil {
		t.Errorf("without a service manager: %v", err)
	}
	for _, name := range []string{filepath.Join(filepath.Dir(meetingPlace(t)), "n"), fmt.Sprintf("@slipstream-test-%d", os.Getpid())} {
		t.Setenv("NOTIFY_SOCKET", name)
		if err := Notify("READY=1"); err == nil {
			t.Errorf("%s: no error although nothing listens", name)
		}
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := Notify("READY=1\nSTATUS=serving"); err != nil {
			t.Error(err)
		}
		l.SetReadDeadline(time.Now().Add(patience))
		b := make([]byte, 100)
		if n, err := l.Read(b); err != nil || string(b[:n]) != "READY=1\nSTATUS=serving" {
			t.Errorf("%s: got %q, %v", name, b[:n], err)
		}
	}
}

// TestMainPID: the old process tells the service manager which process is the new one.
func TestMainPID(t *testing.T) {
	path := meetingPlace(t)
	name := path + ".notify"
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := precede(t, path, 1)
	t.Setenv("NOTIFY_SOCKET", name)
	child := start(t, "serves", path, p.address)
	p.await(t)
	l.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, 100)
	if n, err := l.Read(b); err != nil || string(b[:n]) != fmt.Sprintf("MAINPID=%d", child.PID()) {
		t.Errorf("got %q, %v; want MAINPID=%d", b[:n], err, child.PID())
	}
}

func TestFits(t *testing.T) {
	tcp := func(s string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, c := range []struct {
		bound      net.Addr
		configured string
		want       bool
	}{
		{tcp("127.0.0.1:80"), "127.0.0.1:80", true},
		{tcp("127.0.0.1:80"), "localhost:80", true},
		{tcp("127.0.0.1:80"), "127.0.0.1:0", true},
		{tcp("127.0.0.1:80"), "127.0.0.1:81", false},
		{tcp("127.0.0.1:80"), "127.0.0.2:80", false},
		{tcp("127.0.0.1:80"), ":80", false},
		{tcp("[::]:80"), ":80", true},
		{tcp("[::]:80"), "0.0.0.0:80", true},
		{tcp("[::]:80"), "127.0.0.1:80", false},
		{tcp("0.0.0.0:80"), ":80", true},
		{tcp("[::1]:80"), "[::1]:80", true},
		{tcp("[fe80::1%eth0]:80"), "[fe80::1%eth1]:80", false},
		{tcp("127.0.0.1:80"), "no such address", false},
		{tcp("127.0.0.1:80"), "unix:/run/x", false},
		{&net.UnixAddr{Name: "/run/x", Net: "unix"}, "unix:/run/x", true},
		{&net.UnixAddr{Name: "/run/y", Net: "unix"}, "unix:/run/x", false},
		{&net.UnixAddr{Name: "/run/x", Net: "unix"}, "127.0.0.1:80", false},
	} {
		if got := Fits(c.bound, c.configured); got != c.want {
			t.Errorf("%v for %s: %t, want %t", c.bound, c.configured, got, c.want)
		}
	}
}
