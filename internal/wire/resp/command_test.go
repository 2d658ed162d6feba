package resp

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

func TestAppendCommand(t *testing.T) {
	got := string(AppendCommand([]byte("before"), "SET", "", "v\r\n"))
	if want := "before*3\r\n$3\r\nSET\r\n$0\r\n\r\n$3\r\nv\r\n\r\n"; got != want {
		t.Errorf("AppendCommand = %q, want %q", got, want)
	}
	long := strings.Repeat("x", 1000)
	got = string(AppendCommand(nil, slices.Repeat([]string{long}, 100)...))
	if want := "*100\r\n" + strings.Repeat("$1000\r\n"+long+"\r\n", 100); got != want {
		t.Errorf("a hundred arguments of 1000 bytes are encoded in %d bytes, want %d", len(got), len(want))
	}
}

// TestReplies compares the output of every append function with the bytes in the specification.
func TestReplies(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{string(AppendSimpleString(nil, "OK")), "+OK\r\n"},
		{string(AppendSimpleString(nil, "a\r\nb")), "+a  b\r\n"},
		{string(AppendError(nil, "ERR no\n")), "-ERR no \r\n"},
		{string(AppendInt(nil, -12)), ":-12\r\n"},
		{string(AppendNull(nil)), "_\r\n"},
		{string(AppendNullBulk(nil)), "$-1\r\n"},
		{string(AppendNullArray(nil)), "*-1\r\n"},
		{string(AppendBool(nil, true)), "#t\r\n"},
		{string(AppendBool(nil, false)), "#f\r\n"},
		{string(AppendDouble(nil, 1.25)), ",1.25\r\n"},
		{string(AppendBigNumber(nil, "-123")), "(-123\r\n"},
		{string(AppendBulkError(nil, []byte("ERR a\r\nb"))), "!8\r\nERR a\r\nb\r\n"},
		{string(AppendVerbatim(nil, [3]byte{'t', 'x', 't'}, []byte("hi"))), "=6\r\ntxt:hi\r\n"},
		{string(AppendArrayHeader(nil, 10)), "*10\r\n"},
		{string(AppendArrayHeader(nil, 12345)), "*12345\r\n"},
		{string(AppendMapHeader(nil, 2)), "%2\r\n"},
		{string(AppendSetHeader(nil, 99)), "~99\r\n"},
		{string(AppendPushHeader(nil, 3)), ">3\r\n"},
		{string(AppendAttributeHeader(nil, 1)), "|1\r\n"},
		{string(AppendStreamedStringEnd(AppendStreamedPart(AppendStreamedPart(AppendStreamedString(nil), []byte("ab")), nil))), "$?\r\n;2\r\nab\r\n;0\r\n"},
		{string(AppendStreamedEnd(AppendStreamedArray(nil))), "*?\r\n.\r\n"},
		{string(AppendStreamedEnd(AppendStreamedMap(nil))), "%?\r\n.\r\n"},
		{string(AppendStreamedEnd(AppendStreamedSet(nil))), "~?\r\n.\r\n"},
		{string(AppendBulkFloat(nil, -0.5)), "$4\r\n-0.5\r\n"},
		// Values that no parser produces must still become valid messages.
		{string(AppendValue(nil, Value{})), "_\r\n"},
		{string(AppendValue(nil, Value{Kind: End})), "_\r\n"},
		{string(AppendValue(nil, Value{Kind: Map, Elems: []Value{{Kind: Integer}}})), "%1\r\n:0\r\n_\r\n"},
		{string(AppendValue(nil, Value{Kind: Integer, Attr: []Value{{Kind: Integer}}})), "|1\r\n:0\r\n_\r\n:0\r\n"},
		{string(AppendValue(nil, Value{Kind: SimpleError, Str: []byte("a\rb")})), "-a b\r\n"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// commands contains commands as a client sends them, and their words.
var commands = []struct {
	in   string
	want []string
}{
	{"*1\r\n$4\r\nPING\r\n", []string{"PING"}},
	{"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n\r\n\r\n", []string{"SET", "", "\r\n\r\n"}},
	{"*0\r\n", nil},
	{"*-1\r\n", nil},
	// Inline commands.
	{"PING\r\n", []string{"PING"}},
	{"PING\n", []string{"PING"}},
	{"\r\n", nil},
	{"\n", nil},
	{"  \t \r\n", nil},
	{"  set  k\tv \r\n", []string{"set", "k", "v"}},
	{"a\rb\r\n", []string{"a", "b"}}, // CR counts as white space
	{`echo "a b"` + "\r\n", []string{"echo", "a b"}},
	{`echo ""` + "\r\n", []string{"echo", ""}},
	{`echo ''` + "\r\n", []string{"echo", ""}},
	{`echo "\x41\x6a\xFf\n\r\t\b\a\\\"\q"` + "\r\n", []string{"echo", "Aj\xff\n\r\t\b\a\\\"q"}},
	{`echo "\xZZ\x4"` + "\r\n", []string{"echo", "xZZx4"}},
	{`echo 'a\'b\n"' x` + "\r\n", []string{"echo", `a'b\n"`, "x"}},
	{`echo pre"fix"` + "\r\n", []string{"echo", "prefix"}},
	{`echo "it's"` + "\r\n", []string{"echo", "it's"}},
	{`echo a\nb` + "\r\n", []string{"echo", `a\nb`}},
	{"a\vb\fc \v d\r\n", []string{"a\vb\fc", "d"}},
	{"$3\r\n", []string{"$3"}}, // not an array, so these are ordinary words
	{strings.Repeat("x", 65536) + "\n", []string{strings.Repeat("x", 65536)}},
}

func TestCommandScanner(t *testing.T) {
	for _, c := range commands {
		for _, behind := range []string{"", "PING\r\n", "*1\r\n", "\x00"} {
			b := []byte(c.in + behind)
			var s CommandScanner
			for range 2 {
				n, args, v, err := s.Scan(b)
				if n != len(c.in) || v != Done || err != nil || !slices.Equal(texts(args), c.want) {
					t.Errorf("Scan(%s) = %d, %q, %v, %v; want %d, %q", short(string(b)), n, texts(args), v, err, len(c.in), c.want)
				}
			}
		}
		var growing CommandScanner
		prefixes(len(c.in), func(cut int) {
			var fresh CommandScanner
			n, args, v, err := growing.Scan([]byte(c.in[:cut]))
			m, _, _, _ := fresh.Scan([]byte(c.in[:cut]))
			if v != More || err != nil || n <= cut || n > len(c.in) || args != nil || m != n {
				t.Errorf("Scan(%s) = %d, %q, %v, %v; at once %d", short(c.in[:cut]), n, args, v, err, m)
			}
			if n, args, v, err := fresh.Scan([]byte(c.in)); n != len(c.in) || v != Done || err != nil || !slices.Equal(texts(args), c.want) {
				t.Errorf("Scan(%s) cut at %d = %d, %q, %v, %v", short(c.in), cut, n, texts(args), v, err)
			}
		})
		if n, args, v, err := growing.Scan([]byte(c.in)); n != len(c.in) || v != Done || err != nil || !slices.Equal(texts(args), c.want) {
			t.Errorf("Scan(%s) byte by byte = %d, %q, %v, %v", short(c.in), n, texts(args), v, err)
		}
	}
}

func texts(args [][]byte) (t []string) {
	for _, a := range args {
		t = append(t, string(a))
	}
	return t
}

func TestInvalidCommands(t *testing.T) {
	for _, c := range []vector{
		{in: "*x\r\n", wrong: `array "x"`},
		{in: "*-2\r\n", wrong: `array "-2"`},
		{in: "*?\r\n", wrong: `array "?"`},
		{in: "*1048577\r\n", wrong: "arguments 1048577"},
		{in: "*9223372036854775807\r\n", wrong: "arguments 9223372036854775807"},
		{in: "*" + strings.Repeat("1", 40), wrong: "after at most 32 bytes"},
		{in: "*1\n$1\r\n", wrong: `"\n" at`, at: 2},
		{in: "*1\r\n:1\r\n", wrong: `byte ":" at offset 4, expected bulk string`, at: 4},
		{in: "*1\r\nPING\r\n", wrong: `byte "P"`, at: 4},
		{in: "*1\r\n$-1\r\n", wrong: `bulk string "-1"`, at: 4},
		{in: "*1\r\n$?\r\n", wrong: `bulk string "?"`, at: 4},
		{in: "*1\r\n$536870913\r\n", wrong: "argument of 536870913", at: 4},
		{in: "*1\r\n$9223372036854775808\r\n", wrong: "argument of 9223372036854775807", at: 4},
		{in: "*2\r\n$1\r\nabc", wrong: `"bc"`, at: 9},
		{in: "*3\r\n", wrong: "arguments 3", limits: Limits{Elements: 2}},
		{in: "*2\r\n", wrong: "command of 16", limits: Limits{Frame: 15}},
		{in: "*2\r\n$10\r\n", wrong: "command of 27", limits: Limits{Frame: 26}, at: 4},
		{in: "*2\r\n$3\r\nabc\r\n", wrong: "command of 19", limits: Limits{Frame: 18}, at: 4},
		{in: "*1\r\n$5\r\nabcde\r\n", wrong: "argument of 5", limits: Limits{Bulk: 4}, at: 4},
		{in: "*1\r\n$5\r\n", wrong: "argument of 5", limits: Limits{Bulk: 4}, at: 4},
		{in: strings.Repeat("x", 65538), wrong: "a line end after at most 65536 bytes"},
		{in: strings.Repeat("x", 65537) + "\n", wrong: "a line end after at most 65536 bytes"},
		{in: "a\x00b\r\n", wrong: "zero byte", at: 1},
		{in: "\x00", wrong: "zero byte"},
		{in: "echo \"a\r\n", wrong: `quotes of "\"a"`, at: 5},
		{in: "echo 'a\r\n", wrong: "quotes", at: 5},
		{in: "echo \"a\"b\r\n", wrong: "quotes", at: 5},
		{in: "echo 'a'b\r\n", wrong: "quotes", at: 5},
		{in: "echo \"\\\r\n", wrong: "quotes", at: 5},
	} {
		s := NewCommandScanner(c.limits)
		_, _, _, err := s.Scan([]byte(c.in))
		checkProtocolError(t, "CommandScanner", c, err)
		if _, _, _, again := s.Scan([]byte("PING\r\n")); again != err {
			t.Errorf("Scan after the error about %s: %v, want the same error", short(c.in), again)
		}
		growing := NewCommandScanner(c.limits)
		var first error
		prefixes(len(c.in)+1, func(cut int) {
			if _, _, _, err := growing.Scan([]byte(c.in[:cut])); first == nil {
				first = err
			}
		})
		checkProtocolError(t, "CommandScanner byte by byte", c, first)
	}
}

// The state of an incomplete line must be discarded together with the line.
func TestCommandScannerInFourPieces(t *testing.T) {
	words := []string{"0123456789", "x", "0123456789"}
	in := AppendCommand(nil, words...)
	for first := range len(in) {
		for second := first; second < len(in); second++ {
			for third := second; third < len(in); third++ {
				var s CommandScanner
				for _, cut := range []int{first, second, third} {
					if n, _, v, err := s.Scan(in[:cut]); v != More || err != nil || n > len(in) {
						t.Fatalf("Scan(%q) = %d, %v, %v", in[:cut], n, v, err)
					}
				}
				if n, args, _, err := s.Scan(in); n != len(in) || err != nil || !slices.Equal(texts(args), words) {
					t.Fatalf("Scan(%q) cut at %d, %d and %d = %d, %q, %v", in, first, second, third, n, texts(args), err)
				}
			}
		}
	}
}

// The tables of a command with many arguments must not be kept forever.
func TestCommandScannerForgetsLargeTables(t *testing.T) {
	var s CommandScanner
	huge := AppendCommand(nil, slices.Repeat([]string{"x"}, 100_000)...)
	if n, args, v, err := s.Scan(huge); n != len(huge) || len(args) != 100_000 || v != Done || err != nil {
		t.Fatalf("Scan = %d, %d arguments, %v, %v", n, len(args), v, err)
	}
	if _, _, _, err := s.Scan([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	kept := cap(s.args)*int(unsafe.Sizeof([]byte{})) + cap(s.ends)*int(unsafe.Sizeof(span{}))
	if kept > 200<<10 {
		t.Errorf("the scanner keeps %d bytes after a command of 100,000 arguments", kept)
	}
}

// quote quotes words so that an inline command is split into the same words.
func quote(words []string, c choices) string {
	var quoted []string
	for _, w := range words {
		if c.IntN(2) == 0 && !strings.ContainsAny(w, "\n\x00") {
			// In single quotes, a backslash is literal unless a quote follows it.
			if !strings.HasSuffix(w, `\`) && !strings.Contains(w, `\'`) {
				quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `\'`)+"'")
				continue
			}
		}
		s := `"`
		for i := range len(w) {
			switch ch := w[i]; {
			case ch == '"' || ch == '\\':
				s += `\` + string(rune(ch))
			case ch < ' ' || ch > '~':
				s += `\x` + strconv.FormatUint(uint64(ch)|0x100, 16)[1:]
			default:
				s += string(rune(ch))
			}
		}
		quoted = append(quoted, s+`"`)
	}
	return strings.Join(quoted, " ") + "\r\n"
}

func TestRandomCommands(t *testing.T) {
	r := testkit.Rand(t)
	var s CommandScanner
	for range 2000 {
		var words []string
		for range 1 + r.IntN(6) {
			words = append(words, strings.ReplaceAll(string(anyBytes(r)), "*", `'"\`))
		}
		for _, in := range []string{string(AppendCommand(nil, words...)), quote(words, r)} {
			cut := r.IntN(len(in))
			if n, _, v, err := s.Scan([]byte(in[:cut])); v != More || err != nil || n > len(in) {
				t.Fatalf("Scan(%q) = %d, %v, %v", in[:cut], n, v, err)
			}
			n, args, v, err := s.Scan([]byte(in))
			if n != len(in) || v != Done || err != nil || !slices.Equal(texts(args), words) {
				t.Fatalf("Scan(%q) = %d, %q, %v, %v; want %q", in, n, texts(args), v, err, words)
			}
		}
	}
}

func TestErrorsSayWhatWhereAndWhatInstead(t *testing.T) {
	var s Scanner
	_, _, err := s.Scan([]byte("*2\r\n:1\r\n:x\r\n"))
	if want := `resp: integer "x" at offset 8, expected a decimal number of 64 bits`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, _, err = Parse([]byte("*2\r\n:1\r\n"), Limits{})
	if want := "resp: the input ends at offset 8, expected array of 2"; err == nil || err.Error() != want || !errors.Is(err, ErrTruncated) {
		t.Errorf("got %v, want %s", err, want)
	}
	long := errUnknownKind(0, 'x')
	long.Wrong = quoted([]byte(strings.Repeat("secret", 100)))
	if len(long.Error()) > 120 {
		t.Errorf("an error quotes %d bytes of what a peer sent", len(long.Error()))
	}
}
