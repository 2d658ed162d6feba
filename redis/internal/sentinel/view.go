package sentinel

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// A View is what one Sentinel says about a master.
type View struct {
	// From is the address of the Sentinel.
	From string
	// Master is the address to dial of the master.
	Master string
	// Epoch is the config epoch in which the server became the master. Dated says whether the
	// Sentinel reports one.
	Epoch uint64
	Dated bool
	// Replicas are the addresses to dial of the replicas that can be read, sorted. Unwell says
	// whether there are others.
	Replicas []string
	Unwell   bool
	// Others are the addresses to dial of the other Sentinels.
	Others []string
	// Peers is the number of other Sentinels, including those without a usable address.
	Peers int
	// Self identifies the Sentinel, even if it is queried at two addresses.
	Self string
}

// Commands returns the commands whose replies [ParseView] parses. If replicas is true, they include
// the one for replicas.
func Commands(name string, replicas bool) [][]string {
	commands := [][]string{
		{"SENTINEL", "MASTER", name},
		{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name},
		{"SENTINEL", "MASTER", name},
		{"SENTINEL", "SENTINELS", name},
	}
	if replicas {
		commands = append(commands, []string{"SENTINEL", "REPLICAS", name})
	}
	return commands
}

// ParseView parses the replies of the Sentinel at asked to [Commands]. The error is
// [ErrUnknownMaster], a [*cluster.ReplyError], a [*cluster.RefusedError], or says that the address
// of the master must not be used.
func ParseView(asked string, a *cluster.Addresses, replies [][]byte) (*View, error) {
	v := &View{From: asked}
	host, port, err := parseAddr(replies[1])
	if err != nil {
		return nil, err
	}
	before, err := parseEpoch(replies[0])
	if err != nil {
		return nil, err
	}
	after, err := parseEpoch(replies[2])
	if err != nil {
		return nil, err
	}
	if before != after {
		return nil, errMoving
	}
	v.Epoch, v.Dated = before.epoch, before.dated
	if v.Master, err = a.Announced(asked, host, port); err != nil {
		return nil, err
	}
	v.learnOthers(a, replies[3])
	if len(replies) > 4 {
		v.learnReplicas(a, replies[4])
	}
	return v, nil
}

// mostReplicas bounds the replicas of a view.
const mostReplicas = 64

// learnReplicas parses the reply to SENTINEL REPLICAS. It ignores a malformed reply; reads then use
// the master.
func (v *View) learnReplicas(a *cluster.Addresses, reply []byte) {
	list, err := parse("SENTINEL REPLICAS", reply)
	if err != nil || list.Kind != resp.Array {
		return
	}
	for _, e := range list.Elems {
		f := fieldsOf(e)
		port, ok := portOf(f["port"])
		if !ok || f["replica-announced"] == "0" {
			continue
		}
		addr, err := a.Announced(v.From, f["ip"], port)
		switch {
		case err != nil || addr == v.Master || slices.Contains(v.Replicas, addr):
		case !readable(f):
			v.Unwell = true
		case len(v.Replicas) < mostReplicas:
			v.Replicas = append(v.Replicas, addr)
		}
	}
	slices.Sort(v.Replicas)
}

// readable reports whether a replica can be reached and is connected to its master, according to
// the fields that a Sentinel reports.
func readable(f map[string]string) bool {
	for flag := range strings.SplitSeq(f["flags"], ",") {
		if flag == "s_down" || flag == "o_down" || flag == "disconnected" {
			return false
		}
	}
	return f["master-link-status"] == "ok"
}

// learnOthers parses the reply to SENTINEL SENTINELS. It ignores a malformed reply: the address of
// the master is valid anyway, and the options and other Sentinels name Sentinels as well.
func (v *View) learnOthers(a *cluster.Addresses, reply []byte) {
	list, err := parse("SENTINEL SENTINELS", reply)
	if err != nil || list.Kind != resp.Array {
		return
	}
	v.Peers = len(list.Elems)
	var ids []string
	for _, e := range list.Elems {
		f := fieldsOf(e)
		ids = append(ids, cmp.Or(f["runid"], f["ip"]+":"+f["port"]))
		// A Sentinel that this one does not reach may have the newer view.
		port, ok := portOf(f["port"])
		if !ok {
			continue
		}
		if addr, err := a.Announced(v.From, f["ip"], port); err == nil && len(v.Others) < mostAsked {
			v.Others = append(v.Others, addr)
		}
	}
	slices.Sort(ids)
	// A Sentinel does not list itself, so no two Sentinels list the same others.
	v.Self = strings.Join(ids, " ")
}

// parseAddr parses the reply to SENTINEL GET-MASTER-ADDR-BY-NAME.
func parseAddr(reply []byte) (host string, port int, err error) {
	const command = "SENTINEL GET-MASTER-ADDR-BY-NAME"
	v, err := parse(command, reply)
	switch {
	case err != nil:
		return "", 0, err
	case v.Null:
		return "", 0, ErrUnknownMaster
	case v.Kind != resp.Array || len(v.Elems) != 2:
		return "", 0, wrong(command, v.Kind.String()+" of "+strconv.Itoa(len(v.Elems)), "an array of a host and a port")
	}
	host = string(v.Elems[0].Str)
	if host == "" || len(host) > maxHost {
		return "", 0, wrong(command, "a host of "+strconv.Itoa(len(host))+" bytes", "1 to "+strconv.Itoa(maxHost))
	}
	port, ok := portOf(string(v.Elems[1].Str))
	if !ok {
		return "", 0, wrong(command, "the port "+quoted(string(v.Elems[1].Str)), "a number from 1 to 65535")
	}
	return host, port, nil
}

// date is a config epoch, if known.
type date struct {
	epoch uint64
	dated bool
}

// parseEpoch parses the reply to SENTINEL MASTER. If a Sentinel refuses or does not know the
// command, there is no epoch.
func parseEpoch(reply []byte) (date, error) {
	const command, field = "SENTINEL MASTER", "config-epoch"
	v, err := parse(command, reply)
	var refused *cluster.RefusedError
	switch {
	case errors.As(err, &refused):
		return date{}, nil
	case err != nil:
		return date{}, err
	}
	f := fieldsOf(v)
	if f == nil {
		return date{}, wrong(command, v.Kind.String(), "fields and values")
	}
	text, known := f[field]
	if !known {
		return date{}, nil
	}
	epoch, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return date{}, wrong(command, "the "+field+" "+quoted(text), "a number")
	}
	return date{epoch, true}, nil
}

// checkRole parses the reply to ROLE. If the user may not send the command, or the server is too old to
// know it, the Sentinels are trusted.
func checkRole(reply []byte) error {
	const command = "ROLE"
	v, err := parse(command, reply)
	var refused *cluster.RefusedError
	if errors.As(err, &refused) {
		text := strings.ToLower(refused.Text)
		if strings.HasPrefix(text, "noperm ") || strings.HasPrefix(text, "err unknown command") {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if v.Kind != resp.Array || len(v.Elems) == 0 {
		return wrong(command, v.Kind.String(), "an array that begins with the role")
	}
	if role := string(v.Elems[0].Str); role != "master" {
		return RoleError(role)
	}
	return nil
}

// Channels are the channels whose messages indicate that a master may have changed. Sentinels that follow
// a failover publish +switch-master when they learn of it. The leader publishes
// +failover-state-reconf-slaves when the new master is promoted, and +switch-master only when all
// replicas follow it.
var Channels = []string{"+switch-master", "+failover-state-reconf-slaves", "+sdown", "+odown", "-sdown", "-odown"}

// Relevant reports whether a message on one of [Channels] concerns the master with the given name,
// and whether it says that another server has become the master.
func Relevant(name, channel, payload string) (relevant, switched bool) {
	words := strings.Fields(payload)
	if channel == "+switch-master" {
		is := len(words) >= 5 && words[0] == name
		return is, is
	}
	// The payload contains a type, a name and an address. If the type is not master, "@" and the
	// name of the master follow.
	is := len(words) >= 4 && words[0] == "master" && words[1] == name
	return is, is && channel == "+failover-state-reconf-slaves"
}

// parse parses a reply. An error reply becomes a [*cluster.RefusedError] or [ErrUnknownMaster].
func parse(command string, reply []byte) (resp.Value, error) {
	v, rest, err := resp.Parse(reply, resp.Limits{Bulk: MaxReply, Line: 64 << 10, Elements: MaxElements, Depth: 8, Frame: MaxReply, Streamed: MaxReply})
	switch {
	case err != nil:
		var p *resp.ProtocolError
		if errors.As(err, &p) {
			return v, wrong(command, p.Wrong+" at byte "+strconv.Itoa(p.Offset), p.Expected)
		}
		return v, err
	case len(rest) > 0:
		return v, wrong(command, strconv.Itoa(len(rest))+" bytes after the reply", "none")
	case v.Kind == resp.SimpleError || v.Kind == resp.BulkError:
		text := string(v.Str[:min(len(v.Str), 1024)])
		if strings.HasPrefix(strings.ToLower(text), "err no such master") {
			return v, ErrUnknownMaster
		}
		return v, &cluster.RefusedError{Command: command, Text: text}
	}
	return v, nil
}

// fieldsOf returns the contents of a map, which is an array of names and values in version 2 of the
// protocol, or nil if v is not a map.
func fieldsOf(v resp.Value) map[string]string {
	if v.Kind != resp.Map && v.Kind != resp.Array || v.Null || len(v.Elems)%2 != 0 {
		return nil
	}
	m := make(map[string]string, len(v.Elems)/2)
	for i := 0; i < len(v.Elems); i += 2 {
		if name := v.Elems[i].Str; len(name) > 0 && len(name) <= maxName {
			m[string(name)] = string(v.Elems[i+1].Str)
		}
	}
	return m
}

func portOf(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil && n > 0
}

func wrong(command, what, expected string) error {
	return &cluster.ReplyError{Command: command, Wrong: what, Expected: expected}
}

// quoted returns the start of a string as a Go string literal.
func quoted(text string) string {
	const enough = 64
	if len(text) > enough {
		return strconv.Quote(text[:enough]) + "..."
	}
	return strconv.Quote(text)
}
