package box

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// line pads a text to the length of a line of a greeting.
func line(text string) string { return text + strings.Repeat(" ", 63-len(text)) + "\n" }

const (
	firstLine  = "Tarantool 2.6.0 (Binary) dc23cf92-39aa-4611-9c83-87133c29454d"
	secondLine = "duYsCl/1yJNIJ4DqoCAXhQ0JOnc7c1Tbp7fH7pVgoBs="
)

func TestParseGreeting(t *testing.T) {
	g, err := ParseGreeting([]byte(line(firstLine) + line(secondLine)))
	salt, _ := base64.StdEncoding.DecodeString(secondLine)
	if err != nil || g.Version != "2.6.0" || g.Protocol != "Binary" || g.Instance != "dc23cf92-39aa-4611-9c83-87133c29454d" || !bytes.Equal(g.Salt, salt) {
		t.Errorf("%+v, %v", g, err)
	}
	if again := AppendGreeting([]byte("x"), g); string(again) != "x"+line(firstLine)+line(secondLine) {
		t.Errorf("written again: %q", again)
	}
	if g, err := ParseGreeting([]byte(line("Tarantool 1.6.8 (Binary)") + line(base64.StdEncoding.EncodeToString(salt[:20])) + "more")); err != nil || g.Instance != "" || len(g.Salt) != 20 {
		t.Errorf("old: %+v, %v", g, err)
	}
	long := AppendGreeting(nil, Greeting{Version: strings.Repeat("9", 100), Protocol: "Binary", Salt: make([]byte, 100)})
	if len(long) != GreetingLen || long[63] != '\n' || long[127] != '\n' {
		t.Errorf("too long: %q", long)
	}
}

func TestParseGreetingErrors(t *testing.T) {
	for _, in := range []string{
		"",
		(line(firstLine) + line(secondLine))[:127],
		line(firstLine) + strings.Repeat("A", 64),
		strings.Repeat("A", 64) + line(secondLine),
		line("Tarantool") + line(secondLine),
		line("Tarantool 2.6.0") + line(secondLine),
		line("Tarantool 2.6.0 Binary uuid") + line(secondLine),
		line("Tarantool 2.6.0 () uuid") + line(secondLine),
		line("Tarantool 2.6.0 (Lua console) uuid") + line(secondLine),
		line("Tarantool 2.6.0 (Lua) uuid") + line(secondLine),
		line("Tarantool 2.6.0 (Binary) uuid more") + line(secondLine),
		line("Redis 2.6.0 (Binary) uuid") + line(secondLine),
		line(firstLine) + line(""),
		line(firstLine) + line("AAAA"),
		line(firstLine) + line(secondLine+" more"),
		line(firstLine) + line(secondLine[:len(secondLine)-1]),
		line(firstLine) + line("*"+secondLine[1:]),
		line(firstLine) + line(strings.Repeat("=", 44)),
		line(firstLine) + line("AA=="+secondLine),
	} {
		if g, err := ParseGreeting([]byte(in)); !errors.As(err, new(*ProtocolError)) {
			t.Errorf("%q: %+v, %v, want an error", in, g, err)
		}
	}
}

func TestBase64(t *testing.T) {
	r := testkit.Rand(t)
	for n := range 100 {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		text := base64.StdEncoding.EncodeToString(p)
		if got := appendBase64(nil, p); string(got) != text {
			t.Fatalf("%x: %s, want %s", p, got, text)
		}
		if got, ok := decodeBase64([]byte(text)); !ok || !bytes.Equal(got, p) {
			t.Fatalf("%s: %x, %v, want %x", text, got, ok, p)
		}
	}
}

// A server stores the hash of the hash of the password. With that and the salt, it can verify the
// scramble.
func TestScramble(t *testing.T) {
	salt := []byte("0123456789abcdefghijklmnopqrstuv")
	scramble := ScrambleSHA1(sha1.Sum, salt, "secret")
	one := sha1.Sum([]byte("secret"))
	two := sha1.Sum(one[:])
	mask := sha1.Sum(append([]byte("0123456789abcdefghij"), two[:]...))
	for i := range mask {
		mask[i] ^= scramble[i]
	}
	if mask != one {
		t.Errorf("scramble %x", scramble)
	}
}
