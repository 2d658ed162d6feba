package ladder

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// nested returns n nested arrays.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// oddBodies are bodies that test special rules of encoding/json.
func oddBodies() []string {
	bodies := []string{
		"", " ", "null", " null\n", "nul", "nulL", "nullx", "null null", "[]", "[\t]", "{}", `"x"`, "1", "true", "[", "]", "[}", "[]]", "[],", "[,]",
		"[null]", "[null,null]", "[null,]", "[{}]", "[{},{}]", "[{}{}]", "[{},]", "[{,}]", `[{"srt_a"}]`, `[{"srt_a":}]`, `[{"srt_a":"x",}]`,
		"[1]", `["x"]`, "[[]]", "[true]", "\xef\xbb\xbf[]", "[]\x00", "\v[]", "[{}\f]",
		// White space in every place.
		" [ { \"srt_a\" : \"foo\" , \"str_b\"\t:\r\n\"bar\" } , { } ] ", "[\n  {\n    \"srt_a\": \"foo\",\n    \"str_b\": \"bar\"\n  }\n]\n",
		// Members in another order, repeated, unknown, null, and of other types.
		`[{"str_b":"bar","srt_a":"foo"}]`, `[{"srt_a":"x","srt_a":"foo"},{"srt_a":"foo","srt_a":null}]`, `[{"srt_a":"foo","SRT_A":"bar"}]`,
		`[{"srt_a":null,"str_b":null}]`, `[{"srt_a":1}]`, `[{"srt_a":true}]`, `[{"srt_a":[]}]`, `[{"srt_a":{}}]`, `[{"str_b":-1}]`, `[{"str_b":false}]`,
		`[{"srt_a":"x","other":[1,{"srt_a":"y"},"z"],"str_b":"w"}]`, `[{"":"x"," ":"y","srt_a ":"z","srt_":"v","srt_ab":"u","srt_aaaaaaaaaaaaaaaaaaaaaa":"t"}]`,
		`[{"srt_a":"foo","other":{"a":{},"b":[],"c":[[],{}],"d":null,"e":true,"f":false}}]`, `[{"other":{"a":1,}}]`, `[{"other":[1,]}]`, `[{"other":[}]}]`, `[{"other":{]}}]`,
		`[{"other":tru}]`, `[{"other":trux}]`, `[{"other":nul}]`, `[{"other":fals}]`, `[{"other":truefalse}]`, `[{"other":{1:2}}]`, `[{"other":{"a" 1}}]`, `[{"other":}]`,
		// Names in other spellings.
		`[{"SRT_A":"foo","Str_B":"bar"}]`, `[{"\u0073rt_a":"foo"}]`, `[{"srt\u005fa":"foo"}]`, "[{\"\u017frt_a\":\"foo\",\"\u017fTR_B\":\"bar\"}]", `[{"\u017ftr_b":"bar"}]`,
		"[{\"sr\u017f_a\":\"foo\"}]", "[{\"srt_a\xff\":\"foo\"}]", "[{\"\xc5rt_a\":\"foo\"}]", `[{"\ud800srt_a":"foo"}]`, `[{"srt_a\n":"foo"}]`, "[{\"srt\ufffda\":\"foo\"}]",
		// Strings with escapes, unpaired surrogates, bytes that are not UTF-8, and control bytes.
		`[{"srt_a":"\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\u0000"}]`, `[{"srt_a":"\x"}]`, `[{"srt_a":"\u12g4"}]`, `[{"srt_a":"\u123"}]`, `[{"srt_a":"\'"}]`, `[{"srt_a":"\U0041"}]`,
		`[{"srt_a":"\ud83d\ude00"}]`, `[{"srt_a":"\ud83d"}]`, `[{"srt_a":"\ude00"}]`, `[{"srt_a":"\ud83dx"}]`, `[{"srt_a":"\ud83d\n"}]`, `[{"srt_a":"\ud83d\u0041"}]`,
		`[{"srt_a":"\ud83d\ud83d\ude00"}]`, `[{"srt_a":"\ude00\ud83d"}]`, `[{"srt_a":"\ud83d\"}]`, `[{"srt_a":"\uDBFF\uDFFF\uE000\ud7ff"}]`, `[{"other":"\ud83d","str_b":"\ude00"}]`,
		"[{\"srt_a\":\"caf\u00e9 \u4e16\u754c \U0001f600\"}]", "[{\"srt_a\":\"\xff\xfe\"}]", "[{\"srt_a\":\"\xe4\xb8\",\"str_b\":\"\x96\"}]", "[{\"srt_a\":\"\xc3\\u00a9\"}]",
		"[{\"srt_a\":\"\\u00c3\xa9\"}]", "[{\"srt_a\":\"\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80\"}]", "[{\"srt_a\":\"\xe2\x82\\ud83d\xac\"}]", "[{\"other\":\"\xff\",\"str_b\":\"\u00e9\xff\"}]",
		"[{\"srt_a\":\"a\nb\"}]", "[{\"srt_a\":\"a\x00b\"}]", "[{\"srt_a\":\"a\x1fb\x7f\"}]", "[{\"srt_a\":\"\x7f\"}]", `[{"srt_a":"x]`, `[{"srt_a":"x"`, `[{"srt_a":"x"}`,
		"[{\"srt_a\":\"12345\x1978901234567890\"}]", "[{\"srt_a\":\"1234567\xe9\"}]",
		// Hashes of more than one block, and of strings that do not fit into the fixed buffer.
		`[{"srt_a":"` + strings.Repeat("a", 200) + `","str_b":"` + strings.Repeat("b", 56) + `"}]`, `[{"srt_a":"` + strings.Repeat("a", 200) + `","str_b":"` + strings.Repeat("b", 57) + `"}]`,
		`[{"str_b":"` + strings.Repeat("b", 5000) + `\n"},{"srt_a":"` + strings.Repeat("\xff", 300) + `"},{"srt_a":"x"}]`,
	}
	for _, number := range []string{"0", "-0", "7", "12.5e+10", "1E5", "1e-7", "-1.0", "01", "-", "+1", ".5", "1.", "1.e1", "1e", "1e+", "0x1", "1.5.5", "1e5e5", "--1", "1e400", "NaN", "00", "-01"} {
		bodies = append(bodies, `[{"other":`+number+`}]`, `[{"other":[`+number+`,1]}]`, `[{"other":{"a":`+number+" }}]")
	}
	for _, n := range []int{1, 2, maxDepth - 2, maxDepth - 1} {
		bodies = append(bodies, `[{"other":`+nested(n)+`,"srt_a":"x"}]`, `[{"other":`+strings.Repeat(`{"a":[`, n/2)+strings.Repeat("]}", n/2)+"}]", nested(n))
	}
	return bodies
}

// FuzzHandler compares Handler with version 1.0 for two consecutive requests, so that the answer to
// the second must contain nothing of the first.
func FuzzHandler(f *testing.F) {
	bodies := oddBodies()
	example, _ := Example(1, 5, "srt_a")
	bodies = append(bodies, string(example))
	for i, body := range bodies {
		f.Add([]byte(body), []byte(bodies[(i+7)%len(bodies)]), uint16(i%97), i%2 == 0)
	}
	plain := service(f, "1.0")
	f.Fuzz(func(t *testing.T, first, second []byte, most uint16, announced bool) {
		ours := new(Handler)
		for _, body := range [][]byte{first, second} {
			if len(body) > DefaultMaxBody {
				continue
			}
			want := ask(plain, string(body))
			for _, most := range []int{int(most) + 1, pieceSize} {
				if got := askInPieces(ours, body, most, announced); got != want {
					t.Errorf("%.300q in pieces of %d: %v, want %v", body, most, got, want)
				}
			}
		}
	})
}

func TestOddBodiesInPiecesOfEverySize(t *testing.T) {
	plain, ours := service(t, "1.0"), new(Handler)
	for _, body := range oddBodies() {
		if len(body) > 1000 {
			continue
		}
		want := ask(plain, body)
		for most := 1; most <= min(len(body), 40); most++ {
			if got := askInPieces(ours, []byte(body), most, most%2 == 0); got != want {
				t.Fatalf("%q in pieces of %d: %v, want %v", body, most, got, want)
			}
		}
	}
}

// State left over from one request must not affect the next one.
func TestHandlerKeepsNothingOfARequest(t *testing.T) {
	ours := new(Handler)
	for _, secret := range []string{`[{"srt_a":"secret","str_b":"yours"}]`, `[{"srt_a":"s\u0065cret","str_b":"y\u006furs"}]`, `[{"srt_a":"s\u0065cret`, `[{"srt_a":"\ud83d`} {
		for body, want := range map[string]outcome{`[{"str_b":"mine"}]`: hashes("mine"), `[null]`: hashes(""), `[{}]`: hashes(""), `[{"str_b":"m\u0069ne","srt_a":null}]`: hashes("mine")} {
			ask(ours, secret)
			if got := ask(ours, body); got != want {
				t.Errorf("%s after %s: %v, want %v", body, secret, got, want)
			}
		}
	}
}

func TestHandlerAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops objects from pools")
	}
	plain, want := Example(1, ExampleItems, "srt_a")
	odd := bytes.ReplaceAll(plain, []byte(`"srt_a":"`), []byte(`"srt\u005fA" : "\u00e9\ud83d\ude00`))
	for name, body := range map[string][]byte{"the article's request": plain, "with escapes": odd} {
		service, q := new(Handler), newQuestion(body)
		if n := testing.AllocsPerRun(100, func() { service.ServeHTTP(q.again()) }); n != 0 {
			t.Errorf("%s: %v allocations for a request, want none", name, n)
		}
		if q.status != http.StatusOK || len(q.answer) != len(want) {
			t.Errorf("%s: status %d, %d bytes", name, q.status, len(q.answer))
		}
	}
}

func TestHandlerRefusesLargeBodies(t *testing.T) {
	body := `[{"srt_a":"` + strings.Repeat("x", 1000) + `"}]`
	for most, status := range map[int64]int{int64(len(body)): http.StatusOK, int64(len(body)) - 1: http.StatusRequestEntityTooLarge, 10: http.StatusRequestEntityTooLarge} {
		for _, announced := range []bool{true, false} {
			got := askInPieces(&Handler{MaxBody: most}, []byte(body), 100, announced)
			if got.status != status || (got.body != "") != (status == http.StatusOK) {
				t.Errorf("at most %d of %d bytes, announced: %v: %v, want status %d", most, len(body), announced, got, status)
			}
		}
	}
	if got := ask(new(Handler), "["+strings.Repeat(" ", DefaultMaxBody)+"]"); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("more than DefaultMaxBody: %v", got)
	}
}

// A body that is shorter than announced is not complete, even if it looks complete.
func TestHandlerWantsTheAnnouncedLength(t *testing.T) {
	q := newQuestion([]byte("[]"))
	q.request.ContentLength = 3
	new(Handler).ServeHTTP(q.again())
	if q.status != http.StatusInternalServerError || len(q.answer) > 0 {
		t.Errorf("status %d, %q", q.status, q.answer)
	}
}

func TestHandlerNamesTypeAndLength(t *testing.T) {
	s := new(Handler)
	for range 2 {
		for items := range 3 {
			body, want := Example(1, items, "srt_a")
			q := newQuestion(body)
			s.ServeHTTP(q.again())
			if q.header.Get("Content-Length") != fmt.Sprint(len(want)) || q.header.Get("Content-Type") != "application/json" {
				t.Errorf("header %v, want a length of %d", q.header, len(want))
			}
		}
	}
}

// Memory for a large answer or string is not kept.
func TestHasherKeepsNoLargeMemory(t *testing.T) {
	var h Hasher
	for _, body := range []string{
		"[" + strings.Repeat("{},", DefaultMaxBody/3-1) + "{}]",
		`[{"srt_a":"\n` + strings.Repeat("x", DefaultMaxBody/2) + `"}]`,
		`[{"str_b":"\n` + strings.Repeat("\xff", DefaultMaxBody/2) + `"}]`,
		`[{"` + strings.Repeat("x", DefaultMaxBody/2) + `\n":1}]`,
	} {
		h.Reset()
		if _, err := h.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Answer(); err != nil {
			t.Fatal(err)
		}
		h.Reset()
		if n := cap(h.answer) + cap(h.a) + cap(h.b) + cap(h.spare) + cap(h.name); n > 5*kept {
			t.Errorf("%.20s...: %d bytes are kept", body, n)
		}
	}
}

func TestEncodeIsBase64(t *testing.T) {
	var sum [sha256.Size]byte
	var text [textSize]byte
	for i := range 1 << 12 {
		for at := range sum { // over time, all values of 12 bits in all positions
			sum[at] = byte(i >> (at % 5))
		}
		if i%2 == 0 {
			sum = sha256.Sum256(sum[:])
		}
		if encode(&text, &sum); string(text[:]) != base64.StdEncoding.EncodeToString(sum[:]) {
			t.Fatalf("%x is %s", sum, text)
		}
	}
}

func TestPlainStopsAtTheFirst(t *testing.T) {
	b := []byte("0123456789abcdefghijk")
	for at := range b {
		for c := range 256 {
			for next := range 256 {
				text := bytes.Clone(b)
				text[at] = byte(c)
				if at+1 < len(b) {
					text[at+1] = byte(next)
				}
				want := 0
				for want < len(text) && text[want] >= ' ' && text[want] != '"' && text[want] != '\\' {
					want++
				}
				high := slices.ContainsFunc(text[:want], func(c byte) bool { return c >= 0x80 })
				if n, found := plain(text); n != want || found != high {
					t.Fatalf("%q: %d bytes, %v; want %d, %v", text, n, found, want, high)
				}
			}
		}
	}
}

func TestBodyErrorNamesThePlace(t *testing.T) {
	for body, want := range map[string]int64{
		"":                               0,
		"[":                              1,
		"[{}":                            3,
		"{":                              0,
		`[{"srt_a":1}]`:                  10,
		"[{\"srt_a\":\"abc\n\"}]":        14,
		`[{"srt_a":"a","str_b":"b"},x]`:  27,
		`[{"srt_a":"a","str_b":"\u00x"}`: 27,
		"[] x":                           3,
	} {
		var h Hasher
		h.Reset()
		n, err := h.Write([]byte(body))
		if again, _ := h.Write([]byte("[]")); err != nil && again != 0 {
			t.Errorf("%q: %d more bytes are accepted", body, again)
		}
		if err == nil {
			if n != len(body) {
				t.Errorf("%q: %d bytes are accepted", body, n)
			}
			h.Reset()
			_, _ = h.Write([]byte(body))
			_, err = h.Answer()
		}
		var wrong *BodyError
		if !errors.As(err, &wrong) || wrong.Offset != want {
			t.Errorf("%q: %v, want offset %d", body, err, want)
		}
	}
}
