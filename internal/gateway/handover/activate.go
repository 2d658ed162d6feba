package handover

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// firstActivated is the descriptor of the first socket that systemd passes
// (SD_LISTEN_FDS_START).
const firstActivated = 3

// byOrder are the names given to sockets that have none.
var byOrder = []string{"http", "redis"}

// activation reads the variables LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES of
// sd_listen_fds(3) and returns the names of the sockets from descriptor 3 on. It returns none
// if they are for another process than self.
func activation(pid, count, names string, self int) ([]string, error) {
	if pid == "" || count == "" {
		return nil, nil
	}
	if p, err := strconv.Atoi(pid); err != nil || p <= 0 {
		return nil, fmt.Errorf("LISTEN_PID is %.20q; expected a number", pid)
	} else if p != self {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > MaxSockets {
		return nil, fmt.Errorf("LISTEN_FDS is %.20q; expected a number up to %d", count, MaxSockets)
	}
	var given []string
	if names != "" {
		given = strings.Split(names, ":")
		if len(given) != n {
			return nil, fmt.Errorf("LISTEN_FDNAMES has %d names and LISTEN_FDS is %d; expected as many", len(given), n)
		}
	}
	all := make([]string, n)
	unnamed := 0
	for i := range all {
		if given != nil && isName(given[i]) && given[i] != "unknown" {
			all[i] = given[i]
			continue
		}
		// Without FileDescriptorName= the name is that of the unit, which has a dot.
		if unnamed == len(byOrder) {
			return nil, fmt.Errorf("more than %d sockets without a name; expected FileDescriptorName= in the unit, %s",
				len(byOrder), strings.Join(byOrder, " or "))
		}
		all[i] = byOrder[unnamed]
		unnamed++
	}
	return all, nil
}

// takeVariables reads and removes the variables for activation, so that no child of this process
// uses them.
func takeVariables() ([]string, error) {
	names, err := activation(os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES"), os.Getpid())
	for _, variable := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"} {
		if e := os.Unsetenv(variable); e != nil && err == nil {
			err = fmt.Errorf("environment: %w", e)
		}
	}
	return names, err
}

// Notify reports the state of this process to the service manager, in lines such as
// "READY=1", "STOPPING=1" or "MAINPID=42" (sd_notify(3)). Without a NOTIFY_SOCKET in the
// environment it does nothing.
func Notify(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	return nil
}
