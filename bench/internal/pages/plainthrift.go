package pages

import (
	"context"
	"encoding/binary"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

func openThrift(ctx context.Context, s loadproc.Spec) (load.Target, error) {
	t := &plainTarget{address: s.Address, seed: s.Seed}
	for n := range Count {
		t.keys, t.values = append(t.keys, callOf(n)), append(t.values, answerOf(n))
	}
	return t, t.learn(ctx, s)
}

// Framed messages of the Binary protocol, as the gateway's IDL has the method of the resource:
//
//	Pages get_pages(1: string key)
//	struct Pages { 1: string code, 2: string body }

// callOf returns the call for document n.
func callOf(n int) []byte { return message(1, field(nil, 1, Code(n))) }

// answerOf returns the answer with document n.
func answerOf(n int) []byte {
	document := field(field([]byte{structField, 0, 0}, 1, Code(n)), 2, text(n))
	return message(2, append(document, 0))
}

// Types of fields.
const (
	stringField = 11
	structField = 12
)

// message returns a message with its frame. Its number is zero; answers have the order of calls.
func message(kind byte, fields []byte) []byte {
	const method = "get_" + Resource
	b := append([]byte{0x80, 1, 0, kind, 0, 0, 0, byte(len(method))}, method...)
	b = append(append(append(b, 0, 0, 0, 0), fields...), 0)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func field(b []byte, id byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(append(b, stringField, 0, id), uint32(len(text))), text...)
}
