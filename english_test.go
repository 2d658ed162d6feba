package slipstream_test

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A wording is a phrase that reads as translated, or misleads, and what to write instead.
type wording struct{ phrase, instead string }

// wordings are the phrases that comments, strings and pages must not contain. Case does not
// matter, and a phrase may be broken over lines. A phrase belongs here only if it is always
// wrong: most of what makes a text read as translated depends on its sentence.
var wordings = []wording{
	// Phrases that mean something else in English.
	{"be called at once", "be called concurrently"},
	{"be used at once", "be used concurrently"},
	{"stops to read", "stops reading"},
	{"stops to write", "stops writing"},
	{"stops to send", "stops sending"},
	{"stops to listen", "stops listening"},
	{"stops to serve", "stops serving"},
	{"stopped to read", "stopped reading"},
	{"stopped to listen", "stopped listening"},
	{"come by", "come, or the name of the event"},
	{"came by", "came, or the name of the event"},
	{"as often as not", "about half of the time"},
	{"has it not", "lacks it"},

	// Phrases of a translation.
	{"begin of", "start of"},
	{"in vain", "without success"},
	{"to be had", "available"},
	{"hear of", "learn of"},
	{"hears of", "learns of, or is notified of"},
	{"heard of", "learned of, or was notified of"},
	{"tell of", "report"},
	{"tells of", "reports"},
	{"give back", "return, or release"},
	{"gives back", "returns, or releases"},
	{"given back", "returned, or released"},
	{"gave back", "returned, or released"},
	{"lets go", "releases"},
	{"let go of", "release"},
	{"by turns", "alternately"},
	{"in turns", "alternately"},
	{"but for", "except"},
	{"sign of life", "PING, or the message that is expected"},
	{"what it is asked", "its requests"},
	{"as it stands", "unchanged"},
	{"stands for itself", "is executed separately"},

	// People in place of the program, the caller or the request.
	{"whoever", "a caller, client or goroutine that"},
	{"whomever", "the caller, client or goroutine that"},
	{"somebody", "a caller, client, user or goroutine"},
	{"anybody", "any caller, client, user or goroutine"},
	{"those who", "callers, clients or users that"},
	{"who asks", "the caller, or client"},

	// Old or poetic words.
	{"anew", "again"},
	{"for ever", "forever"},
	{"any more", "no longer, or anymore"},
	{"lately", "recently"},
	{"dearer", "more expensive"},
	{"dearest", "most expensive"},

	// Terms and spelling.
	{"stall time-out", "stall timeout"},
	{"the time-out", "the timeout"},
	{"a time-out", "a timeout"},
	{"hand-over", "handover"},
	{"behaviour", "behavior"},
	{"favour", "favor"},
	{"favours", "favors"},
	{"neighbour", "neighbor"},
	{"neighbours", "neighbors"},
	{"judgement", "judgment"},
	{"recognise", "recognize"},
	{"recognised", "recognized"},
	{"synchronise", "synchronize"},
	{"synchronised", "synchronized"},
	{"initialise", "initialize"},
	{"initialised", "initialized"},
	{"travelled", "traveled"},
}

// badEnglish matches all wordings. Between their words may be a line break with the marker of
// a comment.
var badEnglish = func() *regexp.Regexp {
	alternatives := make([]string, len(wordings))
	for i, w := range wordings {
		alternatives[i] = strings.ReplaceAll(regexp.QuoteMeta(w.phrase), " ", `(?:\s|//)+`)
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(alternatives, "|") + `)\b`)
}()

// wordingIn returns the wording of a match.
func wordingIn(match []byte) wording {
	words := strings.Join(strings.FieldsFunc(strings.ToLower(string(match)), func(r rune) bool {
		return strings.ContainsRune(" \t\n/", r)
	}), " ")
	for _, w := range wordings {
		if w.phrase == words {
			return w
		}
	}
	return wording{phrase: words}
}

// checkEnglish calls found with each wording in text that must not be there.
func checkEnglish(text []byte, found func(line int, w wording)) {
	for _, at := range badEnglish.FindAllIndex(text, -1) {
		found(1+bytes.Count(text[:at[0]], []byte("\n")), wordingIn(text[at[0]:at[1]]))
	}
}

// proseOf returns Go code with everything except comments and strings replaced by periods.
// Lines keep their numbers.
func proseOf(text []byte) []byte {
	prose := bytes.Repeat([]byte("."), len(text))
	for i, c := range text {
		if c == '\n' {
			prose[i] = c
		}
	}
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", files.Base(), len(text)), text, nil, scanner.ScanComments)
	end := 0 // of the last comment
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return prose
		}
		at := files.Position(pos).Offset
		switch {
		case kind == token.COMMENT:
			// White space between two comments belongs to the text.
			if end > 0 && len(bytes.TrimSpace(text[end:at])) == 0 {
				copy(prose[end:], text[end:at])
			}
			end = at + len(literal)
			copy(prose[at:], text[at:min(end, len(text))])
		case kind == token.STRING:
			copy(prose[at:], text[at:min(at+len(literal), len(text))])
			end = 0
		case kind != token.SEMICOLON || literal == ";":
			end = 0
		}
	}
}

// inlineCode is code within a line of a page, which is quoted as it is.
var inlineCode = regexp.MustCompile("`[^`\n]*`")

func TestEnglish(t *testing.T) {
	sources(t, func(path string, text []byte) {
		if path == "english_test.go" || strings.Contains(path, "testdata") {
			return
		}
		checkEnglish(proseOf(text), func(line int, w wording) {
			t.Errorf("%s:%d: %q; write %s", path, line, w.phrase, w.instead)
		})
	})
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "results") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" || path == "CHANGELOG.md" { // which is history
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		quoted := inlineCode.ReplaceAllFunc(text, func(code []byte) []byte { return bytes.Repeat([]byte("."), len(code)) })
		checkEnglish(quoted, func(line int, w wording) {
			t.Errorf("%s:%d: %q; write %s", path, line, w.phrase, w.instead)
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEnglishIsChecked: the check finds phrases in comments, also broken over lines, and in
// strings, but not in identifiers.
func TestEnglishIsChecked(t *testing.T) {
	code := "package p\n\n// It waits For\n// Ever.\nvar anew = \"Whoever asks\" // ü, anew\n\n/* in\nvain */\nvar any, more = 1, 2\n"
	var got []string
	checkEnglish(proseOf([]byte(code)), func(line int, w wording) {
		got = append(got, strings.Repeat("|", line)+w.phrase)
	})
	const want = "|||for ever |||||whoever |||||anew |||||||in vain"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("found %s, want %s", s, want)
	}
	for _, w := range wordings {
		if got := wordingIn([]byte(w.phrase)); got != w || !badEnglish.MatchString("The "+w.phrase+".") {
			t.Errorf("%q is not found", w.phrase)
		}
	}
}
