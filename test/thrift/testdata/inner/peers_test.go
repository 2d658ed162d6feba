package testpkg

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/test/thrift/walk"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// peer is a program with code that the compiler of Apache Thrift has generated.
type peer struct {
	t        *testing.T
	language string // go, python or thriftpy2
	python   bool   // also true for thriftpy2
	view     walk.View
	in       io.Writer
	out      *bufio.Scanner
}

// startPeer starts the program given in the environment. It ends with the test.
func startPeer(t *testing.T) *peer {
	t.Helper()
	p := &peer{t: t, language: os.Getenv("PEER_LANGUAGE")}
	// In Python, sets are unordered, and optional fields have their defaults from the start, so
	// they are always written. In Go, an optional field with its default value counts as not set.
	p.python = p.language != "go"
	p.view = walk.View{SortSets: p.python, DefaultsAreSet: p.python, DefaultsAreUnset: !p.python}
	words := strings.Fields(os.Getenv("PEER"))
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // the context of the test has ended it, or it has ended itself
	})
	p.in, p.out = in, bufio.NewScanner(out)
	p.out.Buffer(nil, 1<<26)
	return p
}

// ask sends a request and returns the words of the answer, and the bytes that the last word
// represents.
func (p *peer) ask(words ...string) (answer []string, b []byte) {
	p.t.Helper()
	answer, err := p.try(words...)
	if err != nil {
		p.t.Fatal(err)
	}
	b, err = hex.DecodeString(strings.TrimPrefix(answer[len(answer)-1], "-"))
	if err != nil && words[0] != "answer" {
		p.t.Fatal(err)
	}
	return answer, b
}

func (p *peer) try(words ...string) (answer []string, err error) {
	if _, err := fmt.Fprintln(p.in, strings.Join(words, " ")); err != nil {
		return nil, err
	}
	if !p.out.Scan() {
		return nil, fmt.Errorf("%q: no answer: %v", words[:min(3, len(words))], p.out.Err())
	}
	status, text, _ := strings.Cut(p.out.Text(), " ")
	if status != "ok" {
		return nil, fmt.Errorf("%q: %s", words[:min(3, len(words))], text)
	}
	return strings.Fields(text), nil
}

// The peer reads what we write, field by field, and we read what it then writes. If the order is
// defined, it writes the same bytes.
func TestStructsOfPeer(t *testing.T) {
	p := startPeer(t)
	compared, identical := 0, 0
	for _, o := range all(t) {
		for seed := range uint64(30) {
			s, ordered := o.random(seed)
			for _, pr := range protocols {
				compared++
				if p.exchange(t, o, pr, s, ordered) {
					identical++
				}
			}
		}
	}
	t.Logf("%d values, %d of them had to be the same bytes", compared, identical)
	if compared < 1000 || identical < compared/3 {
		t.Errorf("only %d values, of which %d had to be the same bytes", compared, identical)
	}
}

func (p *peer) exchange(t *testing.T, o one, pr protocol, s thrift.CompactStruct, ordered bool) (identical bool) {
	t.Helper()
	b := pr.encode(s)
	s = o.fresh()
	if _, err := pr.decode(new(thrift.Reader), b, s); err != nil {
		t.Fatalf("%s, %s: %v", o.name, pr.name, err)
	}
	answer, theirs := p.ask("read", pr.name, o.name, hex.EncodeToString(b))
	want := o.dump(s, p.view)
	// Generated code (the specs of Python, the tags of Go) does not describe fields with negative
	// IDs, so only what the peer writes back shows what it has read.
	if answer[0] != want && !o.negative() {
		t.Fatalf("%s, %s: the peer has read\n%s, not\n%s", o.name, pr.name, answer[0], want)
	}
	back := o.fresh()
	if n, err := pr.decode(new(thrift.Reader), theirs, back); err != nil || n != len(theirs) {
		t.Fatalf("%s, %s: %d of %d, %v\n%s\n%x", o.name, pr.name, n, len(theirs), err, want, theirs)
	}
	if got := o.dump(back, p.view); got != want {
		t.Fatalf("%s, %s: we have read\n%s, not\n%s", o.name, pr.name, got, want)
	}
	ordered = ordered && want == o.dump(s, walk.View{})
	if p.language == "thriftpy2" && !slices.IsSortedFunc(o.idl.Fields, func(a, b *idl.Field) int { return int(a.ID) - int(b.ID) }) {
		ordered = false // the peer writes fields in the order of the IDL
	}
	if ordered && !bytes.Equal(b, theirs) {
		t.Fatalf("%s, %s: the bytes of the peer are\n%x, not\n%x", o.name, pr.name, theirs, b)
	}
	return ordered
}

// negative reports whether the struct has fields with negative IDs.
func (o one) negative() bool {
	return slices.ContainsFunc(o.idl.Fields, func(f *idl.Field) bool { return f.ID < 0 })
}

func find(t *testing.T, name string) one {
	t.Helper()
	for _, o := range all(t) {
		if o.name == name {
			return o
		}
	}
	t.Fatalf("no struct %s", name)
	return one{}
}

func TestDefaultsOfPeer(t *testing.T) {
	p := startPeer(t)
	o := find(t, "types.WithDefaults")
	for _, pr := range protocols {
		answer, theirs := p.ask("new", pr.name, o.name)
		s := o.fresh()
		if want := o.dump(s, p.view); answer[0] != want {
			t.Errorf("%s: the defaults of the peer are\n%s, ours\n%s", pr.name, answer[0], want)
		}
		if _, err := pr.decode(new(thrift.Reader), theirs, s); err != nil || o.dump(s, p.view) != answer[0] {
			t.Errorf("%s: %v, we have read\n%s, not\n%s", pr.name, err, o.dump(s, p.view), answer[0])
		}
	}
}

// A program with an old version of a struct reads and writes the new one.
func TestVersionsOfPeer(t *testing.T) {
	p := startPeer(t)
	older, newer := find(t, "evolve.OldTree"), find(t, "evolve.LaterTree")
	for seed := range uint64(30) {
		// To skip a binary, Python decodes it as text, and fails if it is not UTF-8.
		s, _ := newer.randomText(seed, p.python)
		for _, pr := range protocols {
			b := pr.encode(s)
			ours := older.fresh()
			if _, err := pr.decode(new(thrift.Reader), b, ours); err != nil {
				t.Fatal(err)
			}
			want := older.dump(ours, p.view)
			answer, theirs := p.ask("read", pr.name, older.name, hex.EncodeToString(b))
			if answer[0] != want {
				t.Fatalf("%s: the peer has read\n%s, not\n%s", pr.name, answer[0], want)
			}
			// We keep fields that the peer does not know.
			kept, _ := p.ask("read", pr.name, newer.name, hex.EncodeToString(pr.encode(ours)))
			if all := newer.dump(s, p.view); kept[0] != all {
				t.Fatalf("%s: we have kept\n%s, not\n%s", pr.name, kept[0], all)
			}
			back := older.fresh()
			if _, err := pr.decode(new(thrift.Reader), theirs, back); err != nil || older.dump(back, p.view) != want {
				t.Fatalf("%s: %v, we have read\n%s, not\n%s", pr.name, err, older.dump(back, p.view), want)
			}
			if p.python {
				continue // fields that are absent are None, not empty
			}
			wide := newer.fresh()
			if _, err := pr.decode(new(thrift.Reader), theirs, wide); err != nil {
				t.Fatal(err)
			}
			if answer, _ := p.ask("read", pr.name, newer.name, hex.EncodeToString(theirs)); answer[0] != newer.dump(wide, p.view) {
				t.Fatalf("%s: the peer has read\n%s, we\n%s", pr.name, answer[0], newer.dump(wide, p.view))
			}
		}
	}
}
