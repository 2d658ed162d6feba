package handover

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipstream-go/slipstream/internal/safefile"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestHandOver: TCP sockets of a group and a unix socket are passed from process to
// process, and each replaced process ends.
func TestHandOver(t *testing.T) {
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	name := filepath.Join(filepath.Dir(path), "redis")
	u, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	p := precede(t, path, 3, func(p *predecessor) { p.named = append(p.named, Named{"spare", u}) })
	p.serve()
	if about, err := os.Stat(path); err != nil || about.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the path: %v, %v; want a socket only for its owner", about, err)
	}

	first := start(t, "serves", path, p.address)
	p.await(t)
	says(t, first, "serving")
	if got := strings.Count(first.Log(), "inherited http "+p.address); got != 3 {
		t.Errorf("inherited %d sockets, want 3\n%s", got, first.Log())
	}
	if !strings.Contains(first.Log(), "not used by the configuration") || !strings.Contains(first.Log(), "socket=spare") {
		t.Errorf("no warning about a socket that is not used\n%s", first.Log())
	}
	if _, err := os.Stat(name); err != nil {
		t.Errorf("the name of the unix socket: %v; want it untouched by the predecessor", err)
	}
	second := start(t, "serves", path, p.address)
	ends(t, first, true)
	says(t, second, "serving")
	for range 20 {
		if answer, err := ask("tcp", p.address); err != nil || answer != fmt.Sprint(second.PID()) {
			t.Errorf("answer %q, %v; want that of process %d", answer, err, second.PID())
		}
	}
	p.server.Close() // removes nothing that belongs to the successor
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// TestQueueIsNeverClosed: connections that are not accepted yet are answered by the
// successor, and none is reset.
func TestQueueIsNeverClosed(t *testing.T) {
	path := meetingPlace(t)
	p := precede(t, path, 2) // accepts nothing
	const n = 200
	var clients []net.Conn
	for range n {
		c, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(c, "ping\n"); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	child := start(t, "is slow", path, p.address)
	p.await(t)
	resets, answered := 0, 0
	for _, c := range clients {
		answer, err := io.ReadAll(c)
		switch {
		case errors.Is(err, syscall.ECONNRESET):
			resets++
		case err == nil && string(answer) == fmt.Sprintf("%d\n", child.PID()):
			answered++
		default:
			t.Errorf("answer %q, %v", answer, err)
		}
	}
	if resets != 0 || answered != n {
		t.Errorf("%d resets, %d of %d answered", resets, answered, n)
	}
}

// TestManySockets: more sockets than fit into one message are handed over.
func TestManySockets(t *testing.T) {
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	p := precede(t, path, 2*perMessage+50)
	p.serve()
	p.stays(t)
}

// TestSuccessorFails: whatever happens to a new process before it is ready, the old one
// continues as if nothing had happened.
func TestSuccessorFails(t *testing.T) {
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	p := precede(t, path, 2, func(p *predecessor) { p.options.Start = time.Second })
	p.serve()

	ends(t, start(t, "exits", path, p.address), false)
	p.stays(t)

	killed := start(t, "hangs", path, p.address)
	says(t, killed, "hanging")
	killed.Kill()
	p.stays(t)

	late := start(t, "is slow", path, p.address)
	ends(t, late, false)
	if !strings.Contains(late.Log(), ErrExpired.Error()) {
		t.Errorf("a process that was too late says\n%s\nwant %q", late.Log(), ErrExpired)
	}
	p.stays(t)

	good := start(t, "serves", path, p.address)
	p.await(t)
	says(t, good, "serving")
}

// TestSuccessorDiesAtTheEnd: the successor has agreed with the predecessor and taken the
// path, and dies before it serves.
func TestSuccessorDiesAtTheEnd(t *testing.T) {
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	p := precede(t, path, 1)
	p.serve()
	s, err := Inherit(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if alone, err := s.agree(); alone || err != nil {
		t.Fatalf("alone: %t, %v", alone, err)
	}
	if err := os.Rename(path+asideSuffix, path); err != nil {
		t.Fatal(err)
	}
	s.Close()
	testkit.Eventually(t, patience, func() error {
		if !strings.Contains(p.log.String(), "did not take over") {
			return errors.New("not noticed")
		}
		return nil
	})
	p.stays(t)
}

// TestPredecessorDies: if the predecessor dies after its offer, the successor continues with the
// sockets.
func TestPredecessorDies(t *testing.T) {
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	first := start(t, "serves", path, "127.0.0.1:0")
	says(t, first, "serving")
	log := &record{}
	s, err := Inherit(t.Context(), Options{Path: path, Log: newLog(log)})
	if err != nil {
		t.Fatal(err)
	}
	named := Named{"http", s.Take("http", "127.0.0.1:0")[0]}
	first.Kill()
	server, err := s.Ready([]Named{named}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer named.Listener.Close()
	if !strings.Contains(log.String(), "does not answer") {
		t.Errorf("no warning about a process that died\n%s", log)
	}
	next := start(t, "serves", path, named.Listener.Addr().String())
	says(t, next, "serving")
}

// TestStalePath: no process listens at the socket that a killed process has left.
func TestStalePath(t *testing.T) {
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	killed := start(t, "serves", path, "127.0.0.1:0")
	says(t, killed, "serving")
	killed.Kill()
	if err := os.WriteFile(path+asideSuffix, nil, 0o600); err != nil { // as one that died while starting
		t.Fatal(err)
	}
	p := precede(t, path, 1)
	p.serve()
	p.stays(t)
	p.server.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the path after an orderly end: %v; want it gone", err)
	}
}

// TestPaths: paths where a process must not meet others are refused.
func TestPaths(t *testing.T) {
	testkit.NoLeaks(t)
	dir := filepath.Dir(meetingPlace(t))
	folder := func(name string, mode os.FileMode, owner int) string { return folderOf(t, dir, name, mode, owner) }
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	type pathCase struct{ path, want string }
	cases := []pathCase{
		{file, "is not a socket"},
		{filepath.Join(dir, "link"), "is not a socket"},
		{filepath.Join(dir, "none", "s"), "no such file"},
		{filepath.Join(file, "s"), "is not a directory"},
		{filepath.Join(dir, strings.Repeat("x", 108)), "expected at most"},
	}
	linked := folder("linked", 0o777, os.Geteuid())
	if err := os.Symlink(dir, filepath.Join(filepath.Dir(linked), safefile.PrivateDir)); err != nil {
		t.Fatal(err)
	}
	cases = append(cases, pathCase{linked, "it is a link"},
		pathCase{filepath.Join(filepath.Dir(folder("long", 0o777, os.Geteuid())), strings.Repeat("x", maxPath-len(dir)-len("/long/"))), "expected at most"})
	if os.Geteuid() == 0 {
		hostile := folder("hostile", 0o775|os.ModeSetgid, os.Geteuid())
		private := filepath.Join(filepath.Dir(hostile), safefile.PrivateDir)
		if err := errors.Join(os.Mkdir(private, 0o700), os.Chown(private, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, pathCase{hostile, "owner 65534"})
	}
	for _, c := range cases {
		s, err := Inherit(t.Context(), Options{Path: c.path})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "keep" {
		t.Errorf("the file: %q, %v", text, err)
	}
}

// folderOf makes a directory and returns a path in it.
func folderOf(t *testing.T, dir, name string, mode os.FileMode, owner int) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.Mkdir(path, 0o700), os.Chown(path, owner, os.Getegid()), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(path, "s")
}

// TestSharedFolders: where others could put their own socket, such as in a Kubernetes volume,
// processes meet in a directory that no other user can enter.
func TestSharedFolders(t *testing.T) {
	testkit.NoLeaks(t)
	dir := filepath.Dir(meetingPlace(t))
	paths := []string{
		folderOf(t, dir, "open", 0o777|os.ModeSticky, os.Geteuid()),
		folderOf(t, dir, "group", 0o775, os.Geteuid()),
		folderOf(t, dir, "volume", 0o775|os.ModeSetgid, os.Geteuid()),
	}
	if os.Geteuid() == 0 {
		paths = append(paths, folderOf(t, dir, "foreign", 0o700, 65534))
	}
	for _, path := range paths {
		private := filepath.Join(filepath.Dir(path), safefile.PrivateDir)
		// A directory that was changed by a mount, with a foreign file in it.
		if err := errors.Join(os.Mkdir(private, 0o700), os.Chmod(private, 0o775|os.ModeSetgid)); err != nil {
			t.Fatal(err)
		}
		planted := filepath.Join(private, "s")
		if os.Geteuid() == 0 {
			if err := errors.Join(os.WriteFile(planted, nil, 0o600), os.Lchown(planted, 65534, 65534)); err != nil {
				t.Fatal(err)
			}
		}
		p := precede(t, path, 2)
		p.serve()
		if about, err := os.Stat(private); err != nil || about.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v, want the mode 0700", private, about, err)
		}
		if about, err := os.Lstat(planted); err != nil || about.Mode() != os.ModeSocket|0o600 {
			t.Errorf("%s: %v, %v; want a socket for its owner only", planted, about, err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v; want nothing there", path, err)
		}
		if !strings.Contains(p.log.String(), "private directory") {
			t.Errorf("%s: nothing in the log says where processes meet\n%s", path, p.log)
		}
		child := start(t, "serves", path, p.address)
		p.await(t)
		says(t, child, "serving")
	}
}

// TestModeOfTheSocket: only this user can access it from the moment at which it has a name.
func TestModeOfTheSocket(t *testing.T) {
	path := meetingPlace(t)
	defer syscall.Umask(syscall.Umask(0))
	l, err := listenAside(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Lstat(path + asideSuffix); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v, %v; want a socket with mode 0600", info.Mode(), err)
	}
}

// TestManyAtOnce: processes that start together replace one another, and one is left.
func TestManyAtOnce(t *testing.T) {
	testkit.NoLeaks(t)
	for _, withPredecessor := range []bool{true, false} {
		path := meetingPlace(t)
		address := "127.0.0.1:0"
		var p *predecessor
		if withPredecessor {
			p = precede(t, path, 2)
			p.serve()
			address = p.address
		}
		var all []*testkit.Process
		for range 5 {
			all = append(all, start(t, "serves", path, address))
		}
		var last *testkit.Process
		testkit.Eventually(t, patience, func() error {
			left := 0
			for _, one := range all {
				if strings.Contains(one.Log(), "left") {
					left++
				} else {
					last = one
				}
			}
			if left != len(all)-1 || !strings.Contains(last.Log(), "serving") {
				return fmt.Errorf("%d have left", left)
			}
			return nil
		})
		for _, one := range all {
			if one != last {
				ends(t, one, true)
			}
		}
		if p != nil {
			p.await(t)
			if answer, err := ask("tcp", address); err != nil || answer != fmt.Sprint(last.PID()) {
				t.Errorf("answer %q, %v; want that of process %d", answer, err, last.PID())
			}
		}
		last.Kill()
	}
}

// TestBusy: a process that connects while another is being served is told so, and one that
// waits for too long gives up.
func TestBusy(t *testing.T) {
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	p := precede(t, path, 1)
	p.serve()
	first, err := Inherit(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if m, err := readMessage(c); err != nil || m.State != stateBusy {
		t.Errorf("a second one that does not look at the lock: %v, %v; want busy", m, err)
	}
	if _, err := Inherit(t.Context(), Options{Path: path, Wait: 100 * time.Millisecond}); !errors.Is(err, ErrBusy) {
		t.Errorf("a second one: %v, want %v", err, ErrBusy)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		s, err := Inherit(t.Context(), Options{Path: path})
		if err != nil {
			t.Errorf("the process that waited: %v", err)
			return
		}
		s.Close()
	})
	time.Sleep(100 * time.Millisecond)
	first.Close()
	waiting.Wait()
	p.stays(t)
}

// TestFirstStartsInTurn: of processes that start without a predecessor, each waits until the previous
// one is ready or has given up.
//
// mutant: handover-starts-together
func TestFirstStartsInTurn(t *testing.T) {
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	first, err := Inherit(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Inherit(t.Context(), Options{Path: path, Wait: 100 * time.Millisecond}); !errors.Is(err, ErrBusy) {
		t.Errorf("while the first one starts: %v, %v; want %v", second, err, ErrBusy)
	}
	first.Close()
	second, err := Inherit(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatalf("after the first one: %v", err)
	}
	second.Close()
}

// TestOtherUser: the path's mode keeps others away, and if it is changed, they are refused.
func TestOtherUser(t *testing.T) {
	for _, c := range []struct {
		own, other uint32
		want       bool
	}{{0, 0, true}, {1000, 1000, true}, {1000, 0, true}, {0, 1000, false}, {1000, 1001, false}} {
		if got := mayTalk(c.own, c.other); got != c.want {
			t.Errorf("user %d with %d: %t, want %t", c.own, c.other, got, c.want)
		}
	}
	if os.Geteuid() != 0 {
		t.Log("only root can be another user")
		return
	}
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	p := precede(t, path, 1)
	p.serve()
	before := start(t, "stranger", path, p.address)
	ends(t, before, false)
	if !strings.Contains(before.Log(), "permission denied") {
		t.Errorf("another user: %s; want permission denied", before.Log())
	}
	for name, mode := range map[string]os.FileMode{path: 0o666, path + lockSuffix: 0o666, filepath.Dir(path): 0o755} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	stranger := start(t, "stranger", path, p.address)
	ends(t, stranger, false)
	if !strings.Contains(stranger.Log(), ErrPeer.Error()) {
		t.Errorf("another user that may connect: %s; want %q", stranger.Log(), ErrPeer)
	}
	p.stays(t)
}

// TestAddressChanges: an inherited socket that is no longer in the configuration is not
// taken, and is closed once the new process is ready.
func TestAddressChanges(t *testing.T) {
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	p := precede(t, path, 2)
	p.serve()
	log := &record{}
	s, err := Inherit(t.Context(), Options{Path: path, Log: newLog(log)})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(p.address)
	if got := s.Take("http", "127.0.0.2:"+port); len(got) != 0 {
		t.Errorf("took %d sockets of another address", len(got))
	}
	if got := s.Take("http", p.address); len(got) != 0 {
		t.Errorf("took %d sockets that were left", len(got))
	}
	if got := strings.Count(log.String(), "is not bound to a configured address"); got != 2 {
		t.Errorf("%d warnings, want 2\n%s", got, log)
	}
	server, err := s.Ready(nil, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p.await(t)
	if _, err := net.Dial("tcp", p.address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the old address: %v, want nothing to listen", err)
	}
}

// TestFlagsOfTheSocket: getting the file of an inherited listener does not make the socket
// blocking, which would make the predecessor hang.
func TestFlagsOfTheSocket(t *testing.T) {
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	u, err := net.Listen("unix", filepath.Join(filepath.Dir(path), "u"))
	if err != nil {
		t.Fatal(err)
	}
	p := precede(t, path, 1, func(p *predecessor) { p.named = append(p.named, Named{"spare", u}) })
	s, err := Inherit(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, l := range append(s.Take("http", p.address), s.Take("spare", "unix:"+u.Addr().String())...) {
		defer l.Close()
		f, err := l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for name, fd := range map[string]int{"inherited": int(f.Fd()), "own": p.server.door.kept[i].fd} {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
				t.Errorf("%s socket %d: flags %#x, %v; want O_NONBLOCK", name, i, flags, err)
			}
		}
	}
}
