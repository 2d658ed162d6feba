package thrift_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
)

func TestMessageIsThatOfTheSpecification(t *testing.T) {
	strict := unhex(t, "80010002 00000004 74657374 fffffffe")
	old := unhex(t, "00000004 74657374 02 fffffffe")
	compact := unhex(t, "82 41 feffffff0f 04 74657374")
	if got := thrift.AppendMessage(nil, "test", thrift.Reply, -2); !bytes.Equal(got, strict) || len(got) != thrift.SizeMessage("test") {
		t.Errorf("strict: %x, want %x", got, strict)
	}
	if got := thrift.AppendCompactMessage(nil, []byte("test"), thrift.Reply, -2); !bytes.Equal(got, compact) {
		t.Errorf("compact: %x, want %x", got, compact)
	}
	for _, c := range []struct {
		name string
		in   []byte
		read func(b []byte, off int, m *thrift.Message) int
	}{
		{"strict", strict, thrift.ReadMessage},
		{"old", old, thrift.ReadMessage},
		{"compact", compact, thrift.ReadCompactMessage},
	} {
		var m thrift.Message
		in := append([]byte{1, 2, 3}, c.in...)
		if n := c.read(in, 3, &m); n != len(in) || string(m.Name) != "test" || m.Type != thrift.Reply || m.Seq != -2 {
			t.Errorf("%s: %d, %+v", c.name, n, m)
		}
		_ = append(m.Name, 0xff)
		if !bytes.Equal(in[3:], c.in) {
			t.Errorf("%s: an append to the name changes the input", c.name)
		}
		for n := range c.in {
			if got := c.read(c.in[:n:n], 0, &m); got >= 0 {
				t.Errorf("%s: %d bytes are accepted", c.name, n)
			}
		}
	}
}

func TestForeignMessagesAreErrors(t *testing.T) {
	for _, c := range []struct {
		in            string
		code, compact int
	}{
		{"80020001 00000001 61 00000000", thrift.CodeVersion, thrift.CodeVersion},
		{"80010000 00000001 61 00000000", thrift.CodeMessage, thrift.CodeVersion},
		{"80010005 00000001 61 00000000", thrift.CodeMessage, thrift.CodeVersion},
		{"80010001 ffffffff 61 00000000", thrift.CodeLength, thrift.CodeVersion},
		{"00000001 61 09 00000000", thrift.CodeMessage, thrift.CodeVersion},
		{"474554202f", thrift.CodeLength, thrift.CodeVersion}, // GET /
		{"82 22 00 00 00", thrift.CodeVersion, thrift.CodeVersion},
		{"82 01 00 00 00", thrift.CodeVersion, thrift.CodeMessage},
		{"82 a1 00 00 00", thrift.CodeVersion, thrift.CodeMessage},
		{"82 21 ffffffff1f 00", thrift.CodeVersion, thrift.CodeNumber},
		{"82 21 00 7f 61", thrift.CodeVersion, thrift.CodeLength},
	} {
		var m thrift.Message
		b := unhex(t, c.in)
		if got := thrift.ReadMessage(b, 0, &m); got != c.code {
			t.Errorf("%s: %d, want %d", c.in, got, c.code)
		}
		if got := thrift.ReadCompactMessage(b, 0, &m); got != c.compact {
			t.Errorf("%s as Compact: %d, want %d", c.in, got, c.compact)
		}
	}
	var e *thrift.Error
	if !errors.As(thrift.Err(thrift.CodeVersion, 7), &e) || e.Offset != 7 || thrift.Err(12, 0) != nil {
		t.Error("Err must convert codes, and only codes, to errors")
	}
}

func TestApplicationException(t *testing.T) {
	v := &thrift.ApplicationException{Message: "no", Kind: thrift.UnknownMethod}
	b := v.AppendThrift(nil)
	if want := unhex(t, "0b 0001 00000002 6e6f 08 0002 00000001 00"); !bytes.Equal(b, want) || len(b) != v.SizeThrift() {
		t.Errorf("%x, want %x", b, want)
	}
	c := v.AppendCompact(nil)
	if want := unhex(t, "18 02 6e6f 15 02 00"); !bytes.Equal(c, want) {
		t.Errorf("%x, want %x", c, want)
	}
	unknown := unhex(t, "08 0009 00000009")
	for n := 0; n <= len(b); n++ {
		var got thrift.ApplicationException
		err := thrift.Unmarshal(append(unknown[:7:7], b[:n]...), &got)
		if (err == nil) != (n == len(b)) || err == nil && got != *v {
			t.Errorf("%d bytes of %d: %+v, %v", n, len(b), got, err)
		}
	}
	for n := 0; n <= len(c); n++ {
		var got thrift.ApplicationException
		err := thrift.UnmarshalCompact(c[:n], &got)
		if (err == nil) != (n == len(c)) || err == nil && got != *v {
			t.Errorf("Compact: %d bytes of %d: %+v, %v", n, len(c), got, err)
		}
	}
}

func TestApplicationExceptionSaysWhetherTheServerExecuted(t *testing.T) {
	for kind, want := range map[int32]slipstream.Outcome{
		thrift.UnknownMethod:      slipstream.Refused,
		thrift.InvalidMessageType: slipstream.Refused,
		thrift.InternalError:      slipstream.Executed,
		thrift.MissingResult:      slipstream.Executed,
		20:                        slipstream.Refused, // Kitex: an unknown service
		21:                        slipstream.Refused, // Kitex: no service name
		99:                        slipstream.Executed,
	} {
		err := error(&thrift.ApplicationException{Kind: kind})
		if got := slipstream.OutcomeOf(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
	if got := (&thrift.ApplicationException{Kind: 99, Message: "x"}).Error(); got != "thrift: application exception 99: x" {
		t.Error(got)
	}
}

func TestLargeStringsAreLinked(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 20_000)
	var body slipstream.Body
	thrift.LinkString(&body, 1, "small")
	thrift.LinkString(&body, 2, string(large))
	thrift.LinkBinary(&body, 3, large, nil)
	body.B = append(body.B, thrift.TypeStop)
	want := thrift.AppendString([]byte{thrift.TypeString, 0, 1}, "small")
	want = thrift.AppendString(append(want, thrift.TypeString, 0, 2), large)
	want = thrift.AppendString(append(want, thrift.TypeString, 0, 3), large)
	want = append(want, thrift.TypeStop)
	if got := body.AppendTo(nil); !bytes.Equal(got, want) {
		t.Error("the bytes are not those of AppendString")
	}
	if len(body.Links) != 2 || &body.Links[1].P[0] != &large[0] {
		t.Error("large values are copied")
	}
}
