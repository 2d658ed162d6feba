package box

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// noAllocs fails if f allocates.
func noAllocs(t *testing.T, name string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s: %v allocations, want none", name, n)
	}
}

func TestReadingDoesNotAllocate(t *testing.T) {
	frames := make(map[string][]byte)
	for name := range captured {
		frames[name] = testkit.Unhex(t, captured[name])
	}
	var s Scanner
	for name, frame := range frames {
		noAllocs(t, "Scan "+name, func() {
			if m, err := s.Scan(frame); m.Len != len(frame) || err != nil {
				t.Fatal(m, err)
			}
			if m, err := s.Scan(frame[:len(frame)-1]); m.Kind != More || err != nil {
				t.Fatal(m, err)
			}
		})
		if strings.Contains(name, "error") || name == "no space" {
			continue
		}
		noAllocs(t, "ParseBody "+name, func() {
			if _, err := ParseBody(0, frame[replyHead:]); err != nil {
				t.Fatal(err)
			}
		})
	}
	general := testkit.Unhex(t, "ce00000009 83 05 01 01 cc80 00 00 80")
	noAllocs(t, "Scan in another encoding", func() {
		if m, err := s.Scan(general); m.Sync != 128 || err != nil {
			t.Fatal(m, err)
		}
	})
	frame := frames["select"]
	noAllocs(t, "a select from its bytes to its fields", func() {
		m, err := s.Scan(frame)
		r, err2 := ParseBody(m.Code, frame[m.BodyAt:m.Len])
		d := iproto.NewDecoder(r.Data)
		for range d.Array() {
			if d.Array() != 2 || d.Uint() != 1 || len(d.StringView()) != 3 {
				t.Fatal("wrong fields")
			}
		}
		if err != nil || err2 != nil || d.Err() != nil || d.Len() != 0 {
			t.Fatal(err, err2, d.Err())
		}
	})
	request := AppendPing(nil)
	noAllocs(t, "ScanRequest", func() {
		if r, err := ScanRequest(request, 0); r.Code != CodePing || err != nil {
			t.Fatal(r, err)
		}
	})
}

func TestAppendersDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	text, data := strings.Repeat("x", 300), make([]byte, 300)
	target := Target{SpaceName: "space", IndexName: "index"}
	sel := Select{Target: target, FetchPosition: true, AfterPosition: data}
	features := []Feature{FeatureStreams, FeatureArrow}
	for name, f := range map[string]func(b []byte) []byte{
		"select": func(b []byte) []byte {
			from := len(b)
			b = EndRequest(iproto.AppendUint(iproto.AppendArray(AppendSelectHead(BeginRequest(b, CodeSelect), 512, 0, 1, 0, 0), 1), 7), from)
			PutSync(b[from:], 5)
			return b
		},
		"select of all": func(b []byte) []byte { return sel.AppendHead(Header{Code: CodeSelect, Stream: 5}.Append(b)) },
		"by name":       func(b []byte) []byte { return target.AppendUpdateHead(target.AppendInsertHead(b)) },
		"call":          func(b []byte) []byte { return AppendEvalHead(AppendCallHead(b, text), text) },
		"begin":         func(b []byte) []byte { return AppendCommit(Begin{1, 2, true}.Append(b), true) },
		"greeting": func(b []byte) []byte {
			return AppendID(AppendAuth(b, text, AuthSHA1, data[:20]), 10, features, AuthSHA1)
		},
		"reply": func(b []byte) []byte { return AppendPush(AppendReply(b, 1, 2), 1, 2, 1, data) },
		"event": func(b []byte) []byte { return AppendEvent(b, text, data) },
	} {
		noAllocs(t, name, func() {
			if len(f(buf)) == 0 {
				t.Fatal(name)
			}
		})
	}
}
