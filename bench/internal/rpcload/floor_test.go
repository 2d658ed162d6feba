package rpcload

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
)

// framed returns a framed message with a struct whose only field is a struct with a text.
func framed(t thrift.MessageType, field byte, seq int32, text string) []byte {
	b := thrift.AppendMessage(make([]byte, 4), "echo", t, seq)
	b = append(b, byte(thrift.TypeStruct), 0, field, byte(thrift.TypeString), 0, 1)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
	b = append(b, byte(thrift.TypeStop), byte(thrift.TypeStop))
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func TestThriftFloorAnswers(t *testing.T) {
	calls := append(framed(thrift.Call, 1, 7, "hello"), framed(thrift.Call, 1, 8, "again")...)
	want := append(framed(thrift.Reply, 0, 7, "hello"), framed(thrift.Reply, 0, 8, "again")...)
	for n := range len(calls) + 1 {
		in := bytes.Clone(calls[:n])
		consumed, answers, err := answerThrift(in, nil)
		if whole := n / (len(calls) / 2) * (len(calls) / 2); err != nil || consumed != whole || !bytes.Equal(bytes.Join(answers, nil), want[:whole]) {
			t.Fatalf("%d bytes: consumed %d, answered %x, %v", n, consumed, answers, err)
		}
	}
	if _, _, err := answerThrift([]byte{0, 0, 0, 8, 0x80, 1, 0, 1, 0, 0, 0, 9}, nil); err == nil {
		t.Error("a message that is shorter than its name was answered")
	}
}
