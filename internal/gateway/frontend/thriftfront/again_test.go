package thriftfront

import (
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// recalls is a turn with a table of recent answers.
type recalls struct {
	*turn
	f *fixture
}

func newRecalls(t testing.TB) *recalls {
	f := newFixture(t, echo, Config{})
	return &recalls{&turn{server: f.server, recent: recent.New[*subject]()}, f}
}

// call begins a call for a document.
func (r *recalls) begin(name, key string) {
	r.view, r.start = r.server.live.Load(), r.f.cache.Now()
	r.call = call{session: &session{server: r.server}, view: r.view, method: r.view.methods[name], start: r.start, keys: [][]byte{[]byte(key)}}
}

// answer finds and remembers the document of the call, as a turn does.
func (r *recalls) answerOnce(t testing.TB) {
	t.Helper()
	k := &r.call
	if f := k.parse(); f != nil {
		t.Fatal(f.text)
	}
	key := k.slots[0].key
	a, ok := r.f.cache.Peek(key, k.start)
	if !ok {
		var err error
		key.ID = strings.Clone(key.ID)
		if a, err = r.f.cache.Get(t.Context(), key, k.start); err != nil {
			t.Fatal(err)
		}
	}
	k.slots[0].doc = a.Doc
	if f := k.encode(false); f != nil {
		t.Fatal(f.text)
	}
	r.remember()
}

// known reports whether a document is recalled, within as many calls as that takes at most.
func (r *recalls) known(t testing.TB, name, key string) *recent.Entry[*subject] {
	t.Helper()
	for range 64 {
		r.begin(name, key)
		if e := r.recall(); e != nil {
			return e
		}
		r.answerOnce(t)
	}
	return nil
}

// refuses checks that the next calls do not get the answer that was remembered.
func (r *recalls) refuses(t *testing.T, why, name, key string) {
	t.Helper()
	for range 8 {
		r.begin(name, key)
		if r.recall() != nil {
			t.Errorf("%s: the earlier answer is given", why)
			return
		}
	}
}

// TestRecentAnswers checks what is remembered, and that it is used only while it is the answer of the call.
func TestRecentAnswers(t *testing.T) {
	r := newRecalls(t)
	must := func(why string) *recent.Entry[*subject] {
		t.Helper()
		e := r.known(t, "get_depts", "42")
		if e == nil {
			t.Fatalf("%s: the answer is not remembered", why)
		}
		return e
	}
	e := must("at first")
	if kept := e.Document().Form(cache.FormThrift).Value.(*form); &e.Body[0] != &kept.body[0] {
		t.Error("the entry does not have the form that the cache keeps")
	}
	r.refuses(t, "another resource", "get_totals", "42")
	must("after another resource")

	r.call = call{method: r.view.methods["get_depts"], keys: [][]byte{[]byte("42")}, format: frame.Format{Compact: true}}
	if r.recall() != nil {
		t.Error("a call in the Compact protocol gets a form of the Binary protocol")
	}

	e.Document().DropForms()
	r.refuses(t, "a form that is not charged", "get_depts", "42")
	must("with a new form")

	shape := shapeOf()
	slices.Reverse(shape.Fields)
	r.f.shape.Store(shape)
	r.refuses(t, "another shape", "get_depts", "42")
	must("with another shape")

	if err := r.server.SetColumns(0, keys[0]); err != nil {
		t.Fatal(err)
	}
	r.refuses(t, "other columns", "get_depts", "42")
	must("with other columns")

	v, err := r.server.Next(withColumns(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	r.server.Swap(v)
	r.refuses(t, "a reload", "get_depts", "42")
	must("after a reload")

	r.f.cache.Apply([]cache.Event{{Key: cache.Key{ID: "42"}, Tx: 5}})
	r.refuses(t, "a change", "get_depts", "42")
}

// TestFormsThatAreNotKept checks that bytes that the cache does not charge are not remembered.
func TestFormsThatAreNotKept(t *testing.T) {
	r := newRecalls(t)
	if r.known(t, "get_depts", "42") == nil || r.known(t, "get_totals", "42") == nil {
		t.Fatal("an answer is not remembered")
	}
	for range 64 {
		r.begin("get_depts", "43")
		if r.recall() != nil {
			t.Fatal("an answer without a kept form is remembered")
		}
		table := r.turn.recent
		r.turn.recent = nil
		r.answerOnce(t)
		r.turn.recent = table
		r.call.slots[0].body = slices.Clone(r.call.slots[0].body) // as if there had been no room for it
		r.remember()
	}
	for _, key := range []string{"0", strings.Repeat("1", maxAgainKey+1)} {
		r.begin("get_depts", key)
		if len(key) == 1 {
			r.answerOnce(t)
		}
		if r.remember(); r.recall() != nil {
			t.Errorf("the key %.10s is remembered", key)
		}
	}
}

// TestRecentAnswersAreAuthorized checks that a document that was answered often is not given to a caller that may not
// read it, and that the hits are counted.
func TestRecentAnswersAreAuthorized(t *testing.T) {
	config := Config{}
	config.Gate = gate(t)
	f := newFixture(t, echo, config)
	f.listen(t)
	c := f.raw(t)
	before := f.cache.Stats().Resources[2].Hits
	for range 100 {
		c.send(message("get_secrets", 1, keyArgument("42"), header{authorization: webKey}))
		if got := c.reply(); !strings.Contains(got, "\x0242") {
			t.Fatalf("got %q", got)
		}
	}
	for range 10 {
		c.send(message("get_secrets", 1, keyArgument("42"), header{}))
		if got := c.reply(); strings.Contains(got, "\x0242") || !strings.Contains(got, "credentials") && !strings.Contains(got, "required") {
			t.Fatalf("without credentials: %q", got)
		}
	}
	eventually(t, func() bool { return f.cache.Stats().Resources[2].Hits-before >= 99 })
}
