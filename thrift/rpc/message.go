package rpc

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

func readMessage(b []byte, f frame.Format, m *thrift.Message) (next int) {
	switch {
	case f.Compact:
		return thrift.ReadCompactMessage(b, 0, m)
	case f.Protobuf:
		return readProtobufHead(b, m)
	}
	return thrift.ReadMessage(b, 0, m)
}

func appendMessage(b []byte, compact bool, name string, t thrift.MessageType, seq int32) []byte {
	if compact {
		return thrift.AppendCompactMessage(b, name, t, seq)
	}
	return thrift.AppendMessage(b, name, t, seq)
}

// endMessage sets the lengths of a message that starts at start and whose inner frame starts at inner.
func endMessage(b []byte, f frame.Format, start, inner int) error {
	if f.Transport == frame.HeaderFramed {
		if err := frame.EndMessage(b, inner, 0); err != nil {
			return err
		}
	}
	if f.Transport == frame.Buffered {
		return nil
	}
	return frame.EndMessage(b, start, 0)
}

func unexpected(t thrift.MessageType) error {
	return fmt.Errorf("a message of type %v; expected a call", t)
}

// readDetails decodes the details of a status; it returns nil if they are invalid.
func readDetails(text []byte) (details map[string]string) {
	if len(text) > 0 && json.Unmarshal(text, &details) != nil {
		return nil
	}
	return details
}

// writeStatus writes a status into a header.
func writeStatus(w *frame.Writer, s *StatusError) {
	w.String(frame.KeyStatus, strconv.Itoa(int(s.Code)))
	w.String(frame.KeyStatusMessage, s.Message)
	if len(s.Details) > 0 {
		text, _ := json.Marshal(s.Details) // encoding strings cannot fail
		w.String(frame.KeyStatusExtra, string(text))
	}
}
