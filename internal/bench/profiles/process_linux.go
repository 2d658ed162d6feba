package profiles

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// listening is the state of a listener in /proc/net/tcp.
const listening = "0A"

// listeners returns the TCP addresses at which the listeners of a process can be
// reached from here, by port.
func listeners(pid int) ([]string, error) {
	proc := fmt.Sprintf("/proc/%d", pid)
	entries, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return nil, err
	}
	sockets := map[string]bool{}
	for _, entry := range entries {
		if to, err := os.Readlink(proc + "/fd/" + entry.Name()); err == nil {
			if inode, ok := strings.CutPrefix(to, "socket:["); ok {
				sockets[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	own, ownErr := os.Readlink("/proc/self/ns/net")
	theirs, theirErr := os.Readlink(proc + "/ns/net")
	if ownErr == nil && theirErr == nil && own != theirs {
		return nil, errors.New("it has its own network namespace, as processes in containers do; expected the URL of its profiles")
	}
	var found []netip.AddrPort
	for _, name := range []string{"tcp", "tcp6"} {
		file, err := os.Open(proc + "/net/" + name)
		if err != nil {
			continue // the kernel does not have that version of IP
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || fields[3] != listening || !sockets[fields[9]] {
				continue
			}
			if a, ok := parseAddress(fields[1]); ok {
				found = append(found, a)
			}
		}
		_ = file.Close()
	}
	slices.SortFunc(found, func(x, y netip.AddrPort) int { return int(x.Port()) - int(y.Port()) })
	var all []string
	for _, a := range found {
		if text := a.String(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all, nil
}

// parseAddress parses an address such as 0100007F:1F90: 32-bit words in the byte order of the
// processor, and the port. The address of all interfaces becomes the loopback address.
func parseAddress(text string) (a netip.AddrPort, ok bool) {
	host, port, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	n, portErr := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || portErr != nil || len(raw) != 4 && len(raw) != 16 {
		return a, false
	}
	for word := range slices.Chunk(raw, 4) {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	ip, _ := netip.AddrFromSlice(raw)
	if ip = ip.Unmap(); ip.IsUnspecified() { // including ::, where Go listens on both versions of IP
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrPortFrom(ip, uint16(n)), true
}
