package cluster

import (
	"bytes"
	"strconv"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// parseNodes parses a reply to CLUSTER NODES, which contains a line for each node:
//
//	id ip:port@busport,hostname flags master ping pong epoch link slot first-last [slot->-id] [slot-<-id]
//
// Redis 3 has no bus port, and host names were added in Redis 7. Further fields that are separated
// by commas are skipped.
func parseNodes(frame []byte) (*view, error) {
	r, err := newReader(Nodes, frame)
	if err != nil {
		return nil, err
	}
	text, err := r.body()
	if err != nil {
		return nil, err
	}
	v := &view{command: Nodes}
	for i := 0; len(text) > 0; i++ {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		line = bytes.TrimRight(line, "\r ")
		if len(line) == 0 {
			continue
		}
		r.in("line", i)
		if err := v.nodeLine(r, line); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *view) nodeLine(r *reader, line []byte) error {
	var fields [8][]byte
	for i := range fields {
		if len(line) == 0 {
			return r.wrong(strconv.Itoa(i)+" fields", "at least "+strconv.Itoa(len(fields)))
		}
		fields[i], line, _ = bytes.Cut(line, []byte{' '})
	}
	m, err := readNode(r, &fields)
	if err != nil {
		return err
	}
	index, err := v.add(r, m)
	if err != nil {
		return err
	}
	for len(line) > 0 {
		var slots []byte
		slots, line, _ = bytes.Cut(line, []byte{' '})
		if len(slots) == 0 {
			continue
		}
		if err := v.nodeSlots(r, slots, index); err != nil {
			return err
		}
	}
	return nil
}

func readNode(r *reader, fields *[8][]byte) (m member, err error) {
	m.offset, m.master = -1, -1
	if m.id, err = checkID(r, fields[0]); err != nil {
		return m, err
	}
	if err := m.readAddress(r, fields[1]); err != nil {
		return m, err
	}
	m.readFlags(fields[2])
	if master := fields[3]; !bytes.Equal(master, []byte{'-'}) {
		if m.masterID, err = checkID(r, master); err != nil {
			return m, err
		}
	}
	if m.epoch, err = strconv.ParseUint(string(fields[6][:min(len(fields[6]), 32)]), 10, 64); err != nil {
		return m, r.wrong("the config epoch "+quoted(fields[6]), "a number")
	}
	if !bytes.Equal(fields[7], []byte("connected")) {
		m.flags |= Disconnected
	}
	return m, nil
}

// readAddress parses ip:port@busport,hostname.
func (m *member) readAddress(r *reader, field []byte) error {
	addr, extra, _ := bytes.Cut(field, []byte{','})
	name, _, _ := bytes.Cut(extra, []byte{','})
	addr, _, _ = bytes.Cut(addr, []byte{'@'})
	if len(addr) > maxHost+8 || len(name) > maxHost {
		return r.wrong("an address of "+strconv.Itoa(len(field))+" bytes", "a host of at most "+strconv.Itoa(maxHost))
	}
	host, port, ok := splitAddr(string(addr))
	if !ok {
		return r.wrong("the address "+quoted(field), "ip:port@busport")
	}
	m.ip, m.endpoint = host, host
	m.port, m.tlsPort = port, port // the port that this client should use
	if bytes.IndexByte(name, '=') < 0 {
		m.hostname = string(name)
	}
	if m.ip == "" && m.hostname != "" {
		m.endpoint = m.hostname
	}
	return nil
}

func (m *member) readFlags(field []byte) {
	for len(field) > 0 {
		var flag []byte
		flag, field, _ = bytes.Cut(field, []byte{','})
		switch string(flag) {
		case "slave", "replica":
			m.replica = true
		case "fail":
			m.flags |= Failed
		case "fail?":
			m.flags |= MaybeFailed
		case "handshake":
			m.flags |= Handshake
		case "noaddr":
			m.flags |= NoAddress
		}
	}
}

// nodeSlots parses slot, first-last, [slot->-id] or [slot-<-id].
func (v *view) nodeSlots(r *reader, field []byte, index int) error {
	if field[0] == '[' {
		return v.movingSlot(r, field, index)
	}
	from, to, isRange := bytes.Cut(field, []byte{'-'})
	if !isRange {
		to = from
	}
	first, ok := number(from, slot.Count-1)
	last, ok2 := number(to, slot.Count-1)
	if !ok || !ok2 {
		return r.wrong("the slots "+quoted(field), "numbers from 0 to "+strconv.Itoa(slot.Count-1))
	}
	if err := v.countRange(r, int64(first), int64(last)); err != nil {
		return err
	}
	return v.own(r, int64(first), int64(last), index)
}

func (v *view) movingSlot(r *reader, field []byte, index int) error {
	inner, closed := bytes.CutSuffix(field[1:], []byte{']'})
	digits, peer, out := bytes.Cut(inner, []byte("->-"))
	if !out {
		var in bool
		if digits, peer, in = bytes.Cut(inner, []byte("-<-")); !in {
			closed = false
		}
	}
	s, ok := number(digits, slot.Count-1)
	if !closed || !ok {
		return r.wrong("the slot "+quoted(field), "[slot->-id] or [slot-<-id]")
	}
	id, err := checkID(r, peer)
	if err != nil {
		return err
	}
	if err := v.countRange(r, int64(s), int64(s)); err != nil {
		return err
	}
	v.moving = append(v.moving, move{slot: uint16(s), importing: !out, self: index, peer: id})
	return nil
}
