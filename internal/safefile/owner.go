package safefile

import (
	"os/user"
	"strconv"
	"strings"
)

// LookUpOwner returns the IDs for "user", "user:group" or ":group", with -1 for an omitted part. A
// name may also be a number.
func LookUpOwner(owner string) (uid, gid int, err error) {
	name, group, _ := strings.Cut(owner, ":")
	uid, gid = -1, -1
	if name != "" {
		if uid, err = strconv.Atoi(name); err != nil {
			u, err := user.Lookup(name)
			if err != nil {
				return 0, 0, err
			}
			uid, _ = strconv.Atoi(u.Uid) // a number on all systems that have Unix sockets
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
