package handover

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// version is the version of the messages. Two processes of different versions refuse each
// other: then the old one is drained and the new one started, as without a handover.
const version = 1

// state says what a message means.
type state string

const (
	stateOffer     state = "offer"     // predecessor: these are the sockets
	stateBusy      state = "busy"      // predecessor: another process is being started
	stateRefused   state = "refused"   // predecessor: not permitted
	stateReady     state = "ready"     // successor: all is up
	stateTaken     state = "taken"     // predecessor: it is yours
	stateExpired   state = "expired"   // predecessor: it has stopped waiting
	stateListening state = "listening" // successor: the path is mine
)

// Bounds of a message.
const (
	maxFrame   = 64 << 10
	maxName    = 32
	maxAddress = 256
)

// message is a message between the two processes. The descriptors of an offer are sent
// with its frame, one for each of Sockets in their order.
type message struct {
	Version int      `json:"version"`
	State   state    `json:"state"`
	Sockets []socket `json:"sockets,omitempty"`
	More    bool     `json:"more,omitempty"` // another offer follows
}

// socket describes one descriptor.
type socket struct {
	Name    string `json:"name"`
	Network string `json:"network"`
	Address string `json:"address"`
}

// encode returns the frame of a message.
func encode(m message) ([]byte, error) {
	m.Version = version
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("message: %w", err)
	}
	if len(text) > maxFrame {
		return nil, fmt.Errorf("message of %d bytes; expected at most %d", len(text), maxFrame)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...), nil
}

// readMessage reads one frame.
func readMessage(r io.Reader) (message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return message{}, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxFrame {
		return message{}, fmt.Errorf("message of %d bytes; expected 1 to %d", n, maxFrame)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return message{}, err
	}
	return decode(text)
}

// decode reads the text of a message and refuses messages that this version would not
// write.
func decode(text []byte) (message, error) {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return message{}, fmt.Errorf("message that is not JSON: %w", err)
	}
	if m.Version != version {
		return message{}, fmt.Errorf("the other process uses version %d of the handover, this one %d; "+
			"drain the old one and start the new one", m.Version, version)
	}
	switch m.State {
	case stateOffer, stateBusy, stateRefused, stateReady, stateTaken, stateExpired, stateListening:
	default:
		return message{}, fmt.Errorf("message %.32q; expected one of the handover", m.State)
	}
	if len(m.Sockets) > perMessage || len(m.Sockets) > 0 && m.State != stateOffer || m.More && len(m.Sockets) == 0 {
		return message{}, fmt.Errorf("message %q with %d sockets, more: %t; expected at most %d, only in offers",
			m.State, len(m.Sockets), m.More, perMessage)
	}
	for _, s := range m.Sockets {
		if !isName(s.Name) || s.Network != "tcp" && s.Network != "unix" || len(s.Address) > maxAddress {
			return message{}, fmt.Errorf("socket %.40q at %.10q %.60q; expected a name of a-z, 0-9 and -, tcp or unix, and an address",
				s.Name, s.Network, s.Address)
		}
	}
	return m, nil
}

func isName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}
