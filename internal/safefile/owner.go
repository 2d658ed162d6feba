package safefile

import (
	"os/user"
	"strconv"
	"strings"
)

// LookUpOwner returns the numbers of "user", "user:group" or ":group", with -1 for an omitted
// part. Names may be numbers.
func LookUpOwner(owner string) (uid, gid int, err error) {
	name, group, _ := strings.Cut(owner, ":")
	uid, gid = -1, -1
	if name != "" {
		if uid, err = strconv.Atoi(name); err != nil {
			u, err := user.Lookup(name)
			if err != nil {
				return 0, 0, err
			}
			uid, _ = strconv.Atoi(u.Uid) // a number on systems with such sockets
		}
	}
	if group != "" {
		if gid, err = strconv.Atoi(group); err != nil {
			g, err := user.LookupGroup(group)
			if err != nil {
				return 0, 0, err
			}
			gid, _ = strconv.Atoi(g.Gid)
		}
	}
	return uid, gid, nil
}
