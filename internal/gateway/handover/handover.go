package handover

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of a handover.
const (
	// MaxSockets is the maximum number of sockets that a process hands over.
	MaxSockets = 1024

	perMessage = 200 // sockets; the kernel takes 253 descriptors in one (SCM_MAX_FD)
)

// Errors of a handover. Others are system errors, or say what is wrong with a
// message.
var (
	// ErrBusy is returned when other processes start at the same path for longer than
	// Options.Wait.
	ErrBusy = errors.New("another process is being started there")
	// ErrExpired is returned when the predecessor has given up waiting.
	ErrExpired = errors.New("the running process stopped waiting and continues to serve")
	// ErrPeer is returned when the process at the other end belongs to another
	// user.
	ErrPeer = errors.New("the process at the other end belongs to another user")
	// ErrUnsupported is returned on systems other than Linux.
	ErrUnsupported = errors.New("sockets can be handed over only on Linux")
)

// Options configure a handover. The zero value accepts sockets from systemd, and waits for
// no successor.
type Options struct {
	// Path is the unix socket at which processes meet, at most 103 bytes. If its directory belongs
	// to another user, except root, or others can write to it, they meet at that name in the
	// directory slipstream-private there, which has mode 0700. If empty, there is no handover.
	Path string
	// Wait bounds how long the process waits for others that start. If zero, it
	// defaults to 30 s.
	Wait time.Duration
	// Start bounds the time that a successor may take from its offer to ready. If zero,
	// it defaults to 60 s.
	Start time.Duration
	// Reply bounds every other wait for the process at the other end. If zero, it
	// defaults to 5 s.
	Reply time.Duration
	// Log receives what operators should know. If nil, it is discarded.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.Wait, 30 * time.Second},
		{&o.Start, 60 * time.Second},
		{&o.Reply, 5 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Named is a listening socket and its purpose: "http", "redis", "admin", "metrics". Several may have
// one name.
type Named struct {
	Name     string // 1 to 32 of a-z, 0-9 and -
	Listener net.Listener
}

// Sockets are the sockets that a process has inherited. They are not safe for concurrent use.
// Close may be called after Ready.
type Sockets struct {
	// Immutable after Inherit.
	options Options
	meeting meeting

	// Owned by the goroutine that starts the process.
	all []inherited
}

// inherited is a socket that was not taken yet.
type inherited struct {
	named Named
	from  string // its source, for logs
	inode uint64 // of the socket: systemd may pass the same sockets as the predecessor
}

// Take returns the inherited sockets of that name that are bound to one of the addresses, each
// of which is host:port as for [net.Listen], with port 0 for any, or "unix:" and a path. The
// caller owns them. Sockets of the name that are bound elsewhere remain, with a warning, and are
// closed by Ready.
func (s *Sockets) Take(name string, addresses ...string) []net.Listener {
	var taken []net.Listener
	var rest []inherited
	for _, one := range s.all {
		if one.named.Name != name {
			rest = append(rest, one)
			continue
		}
		if !slices.ContainsFunc(addresses, func(a string) bool { return Fits(one.named.Listener.Addr(), a) }) {
			s.options.Log.Warn("an inherited socket is not bound to a configured address; it is closed once this process is ready", "socket", name, "bound", one.named.Listener.Addr().String(),
				"configured", strings.Join(addresses, ", "), "from", one.from)
			one.named.Name = "" // logged; it can no longer be taken
			rest = append(rest, one)
			continue
		}
		taken = append(taken, one.named.Listener)
	}
	s.all = rest
	return taken
}

// closeRest closes the sockets that were not taken.
func (s *Sockets) closeRest() {
	for _, one := range s.all {
		if one.named.Name != "" {
			s.options.Log.Warn("an inherited socket is not used by the configuration; it is closed",
				"socket", one.named.Name, "bound", one.named.Listener.Addr().String(), "from", one.from)
		}
		_ = one.named.Listener.Close() // nothing was accepted from it
	}
	s.all = nil
}

// Server waits for the successor of this process. A nil Server waits for none.
type Server struct {
	// Immutable after start.
	options Options
	leave   func()
	quit    chan struct{} // closed by Close
	ended   sync.WaitGroup

	door door
}
