package sentinel

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// replies returns valid replies, which tests change.
func replies() [][]byte {
	return says{master: "6379", epoch: 7, others: []string{"2", "3"}}.frames()
}

const resp3 = "%2\r\n$4\r\nname\r\n$1\r\nm\r\n$12\r\nconfig-epoch\r\n$1\r\n7\r\n"

func TestViewsAreParsed(t *testing.T) {
	asMap := replies()
	asMap[0], asMap[2] = []byte(resp3), []byte(resp3)
	asMap[3] = []byte("*1\r\n%3\r\n+ip\r\n+10.0.0.2\r\n+port\r\n+2\r\n+runid\r\n+id2\r\n")
	ipv6 := replies()
	ipv6[1] = list("fd00::1", "6379")
	named := replies()
	named[1] = list("Redis-1.example.com", "6379")
	local := replies()
	local[1] = list("127.0.0.1", "6379")
	noOthers := replies()
	noOthers[3] = []byte("-NOPERM no\r\n")
	forbidden := replies()
	forbidden[3] = list(list("ip", "169.254.169.254", "port", "80", "runid", "x"), list("ip", "10.0.0.2", "port", "2"), list("ip", "10.0.0.2", "port", "0"), list("odd"))
	for _, c := range []struct {
		name    string
		replies [][]byte
		master  string
		others  []string
		peers   int
	}{
		{"arrays", replies(), "10.0.0.1:6379", []string{"10.0.0.2:2", "10.0.0.2:3"}, 2},
		{"maps", asMap, "10.0.0.1:6379", []string{"10.0.0.2:2"}, 1},
		{"IPv6", ipv6, "[fd00::1]:6379", []string{"10.0.0.2:2", "10.0.0.2:3"}, 2},
		{"a host name", named, "redis-1.example.com:6379", []string{"10.0.0.2:2", "10.0.0.2:3"}, 2},
		{"the host of the Sentinel", local, "10.0.0.9:6379", []string{"10.0.0.2:2", "10.0.0.2:3"}, 2},
		{"no list of others", noOthers, "10.0.0.1:6379", nil, 0},
		{"others that must not be dialed", forbidden, "10.0.0.1:6379", []string{"10.0.0.2:2"}, 4},
	} {
		v, err := ParseView("10.0.0.9:26379", &cluster.Addresses{}, c.replies)
		if err != nil || v.Master != c.master || !v.Dated || v.Epoch != 7 || !slices.Equal(v.Others, c.others) || v.Peers != c.peers {
			t.Errorf("%s: %+v, %v", c.name, v, err)
		}
	}
}

// TestReplicasOfAView: the replicas of a view are those that their Sentinel reaches and that are
// connected to their master.
//
// mutant: sentinel-replica-that-is-down-is-read, sentinel-replica-without-a-link-is-read
func TestReplicasOfAView(t *testing.T) {
	replica := func(port, flags, link string, more ...any) []byte {
		return list(append([]any{"ip", "10.0.0.1", "port", port, "flags", flags, "master-link-status", link}, more...)...)
	}
	var many []any
	for i := range 2 * mostReplicas {
		many = append(many, replica(strconv.Itoa(i+1), "slave", "ok"))
	}
	for _, c := range []struct {
		name     string
		reply    []byte
		replicas []string
		unwell   bool
	}{
		{"well", list(replica("2", "slave", "ok"), replica("1", "slave", "ok", "replica-announced", "1")), []string{"10.0.0.1:1", "10.0.0.1:2"}, false},
		{"down", list(replica("1", "slave", "ok"), replica("2", "slave,s_down", "ok")), []string{"10.0.0.1:1"}, true},
		{"down by agreement", list(replica("1", "s_down,slave,o_down", "ok")), nil, true},
		{"disconnected", list(replica("1", "slave,disconnected", "ok")), nil, true},
		{"without a link", list(replica("1", "slave", "err")), nil, true},
		{"not announced", list(replica("1", "slave", "ok", "replica-announced", "0")), nil, false},
		{"the master itself", list(replica("6379", "slave", "ok")), nil, false},
		{"twice", list(replica("1", "slave", "ok"), replica("1", "slave", "ok")), []string{"10.0.0.1:1"}, false},
		{"a metadata service", list(list("ip", "169.254.169.254", "port", "80", "flags", "slave", "master-link-status", "ok")), nil, false},
		{"no port", list(replica("0", "slave", "ok"), list("odd")), nil, false},
		{"refused", []byte("-NOPERM no\r\n"), nil, false},
		{"no list", []byte("+OK\r\n"), nil, false},
		{"cut off", []byte("*1\r\n$3\r\nab"), nil, false},
	} {
		v, err := ParseView("10.0.0.9:26379", &cluster.Addresses{}, append(replies(), c.reply))
		if err != nil || v.Master != "10.0.0.1:6379" || !slices.Equal(v.Replicas, c.replicas) || v.Unwell != c.unwell {
			t.Errorf("%s: %+v, %v", c.name, v, err)
		}
	}
	if v, err := ParseView("10.0.0.9:26379", &cluster.Addresses{}, append(replies(), list(many...))); err != nil || len(v.Replicas) != mostReplicas {
		t.Errorf("of many replicas: %+v, %v", v, err)
	}
}

// mutant: sentinel-epoch-read-once
func TestViewsThatAreWrongAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		index int
		reply string
		want  string
	}{
		{"no such master", 0, "-ERR No such master with that name\r\n", ErrUnknownMaster.Error()},
		{"no such address", 1, "*-1\r\n", ErrUnknownMaster.Error()},
		{"no such address, in version 3", 1, "_\r\n", ErrUnknownMaster.Error()},
		{"an address of three words", 1, string(list("a", "1", "2")), "an array of a host and a port"},
		{"a refused address", 1, "-NOPERM no\r\n", "NOPERM no"},
		{"an empty host", 1, string(list("", "1")), "0 bytes"},
		{"a long host", 1, string(list(strings.Repeat("a", 300), "1")), "300 bytes"},
		{"a wrong port", 1, string(list("a", "65536")), `"65536"`},
		{"port 0", 1, string(list("a", "0")), `"0"`},
		{"a metadata service", 1, string(list("169.254.169.254", "80")), "169.254.169.254"},
		{"a wrong host", 1, string(list("a b", "80")), "host name"},
		{"an invalid epoch", 0, string(list("config-epoch", "-1")), `"-1"`},
		{"invalid fields", 2, "+OK\r\n", "fields and values"},
		{"another epoch", 2, string(list("config-epoch", "8")), errMoving.Error()},
		{"no epoch anymore", 2, "-NOPERM no\r\n", errMoving.Error()},
		{"a reply that is cut off", 0, "*2\r\n$3\r\nabc", "expected"},
		{"no reply", 0, "", "expected"},
		{"two replies", 0, "+OK\r\n+OK\r\n", "5 bytes after the reply"},
	} {
		all := replies()
		all[c.index] = []byte(c.reply)
		if _, err := ParseView("10.0.0.9:26379", &cluster.Addresses{}, all); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestRoles(t *testing.T) {
	for reply, want := range map[string]string{
		string(list("master", "1")):           "",
		string(list("slave", "10.0.0.1")):     `"slave"`,
		string(list("sentinel")):              `"sentinel"`,
		"-NOPERM User has no permissions\r\n": "",
		"-ERR unknown command 'ROLE'\r\n":     "",
		"-LOADING wait\r\n":                   "LOADING wait",
		"+master\r\n":                         "an array that begins with the role",
		"*0\r\n":                              "an array that begins with the role",
	} {
		if err := checkRole([]byte(reply)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", reply, err, want)
		}
	}
	if err := checkRole(list("slave")); !errors.Is(err, RoleError("slave")) {
		t.Error(err)
	}
}

func TestMessagesAboutTheMasterAreRelevant(t *testing.T) {
	for _, c := range []struct {
		channel, payload   string
		relevant, switched bool
	}{
		{"+switch-master", "m 10.0.0.1 1 10.0.0.1 2", true, true},
		{"+switch-master", "other 10.0.0.1 1 10.0.0.1 2", false, false},
		{"+switch-master", "m", false, false},
		{"+switch-master", "", false, false},
		{"+failover-state-reconf-slaves", "master m 10.0.0.1 1", true, true},
		{"+sdown", "master m 10.0.0.1 1", true, false},
		{"+odown", "master m 10.0.0.1 1 #quorum 2/2", true, false},
		{"+sdown", "slave 10.0.0.1:2 10.0.0.1 2 @ m 10.0.0.1 1", false, false},
		{"+sdown", "sentinel m 10.0.0.1 2 @ m 10.0.0.1 1", false, false},
		{"+sdown", "master other 10.0.0.1 1", false, false},
	} {
		if relevant, switched := Relevant("m", c.channel, c.payload); relevant != c.relevant || switched != c.switched {
			t.Errorf("%s %q: %v, %v", c.channel, c.payload, relevant, switched)
		}
	}
}

// FuzzParseView: no reply makes the parser panic, and no address that must be refused is accepted.
func FuzzParseView(f *testing.F) {
	good := replies()
	f.Add(good[0], good[1], good[2], good[3], list("master"))
	f.Add([]byte(resp3), list("169.254.169.254", "80"), []byte(resp3), list(list("ip", "fe80::1", "port", "1")), list("slave"))
	f.Add([]byte("-ERR No such master with that name\r\n"), []byte("*-1\r\n"), []byte("_\r\n"), []byte("*1\r\n*-1\r\n"), []byte("-NOPERM x\r\n"))
	f.Fuzz(func(t *testing.T, master, addr, again, others, role []byte) {
		_ = checkRole(role)
		Relevant("m", string(master), string(addr))
		v, err := ParseView("10.0.0.9:26379", &cluster.Addresses{}, [][]byte{master, addr, again, others, others})
		if err != nil {
			if err.Error() == "" || len(err.Error()) > 4096 {
				t.Errorf("%d bytes of an error", len(err.Error()))
			}
			return
		}
		if len(v.Others) > mostAsked || len(v.Replicas) > mostReplicas {
			t.Errorf("%d others, %d replicas", len(v.Others), len(v.Replicas))
		}
		for _, dialed := range slices.Concat(v.Others, v.Replicas, []string{v.Master}) {
			at, err := netip.ParseAddrPort(dialed)
			if err == nil && !new(cluster.Addresses).Allowed(at.Addr()) || strings.ContainsAny(dialed, " \r\n") || !strings.Contains(dialed, ":") {
				t.Errorf("%q is dialed", dialed)
			}
		}
	})
}
