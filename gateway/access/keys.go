package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"strings"
)

// Bounds of API keys and their file.
const (
	maxKey       = 256     // bytes of a presented key
	minChosenKey = 20      // characters of a key that somebody else made
	maxKeyLines  = 10_000  // lines of the file, comments counted
	maxKeysFile  = 4 << 20 // bytes of the file: 400 a line, where 136 are needed
	maxKeyName   = 64      // bytes of a name
)

// keyPrefix lets people and scanners of repositories recognise a key.
const keyPrefix = "slk_"

// FileError is a mistake in a key file or key set.
type FileError struct {
	File string // as it was configured
	Line int    // from 1; 0: the file as a whole
	// Message is what was wrong and what was expected. It never holds a key.
	Message string
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// keySet is what a key file says. It is immutable.
type keySet struct {
	byHash map[[sha256.Size]byte]*Caller
}

// find returns the caller of a presented key. That this takes no constant time
// tells nothing: see the package's doc.
func (k *keySet) find(key string) (*Caller, *Refusal) {
	if len(key) > maxKey {
		return nil, refusedLongKey
	}
	var text [maxKey]byte // a conversion would allocate
	n := copy(text[:], key)
	if c := k.byHash[sha256.Sum256(text[:n])]; c != nil {
		return c, nil
	}
	return nil, refusedKey
}

// HashKey returns the hash that an API key is known by, for [Gate.Known].
func HashKey(key string) [sha256.Size]byte { return sha256.Sum256([]byte(key)) }

// Known returns the caller whose API key has the hash, nil if there is none any more: for
// connections that outlive their login and need not keep the key.
func (g *Gate) Known(hash [sha256.Size]byte) *Caller {
	if keys := g.keys.Load(); keys != nil {
		return keys.byHash[hash]
	}
	return nil
}

// idSeed makes the IDs of callers unforeseeable: nobody can choose a subject that
// shares another's rate limit.
var idSeed = maphash.MakeSeed()

// callerID hashes the parts that identify a caller.
func callerID(parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(idSeed)
	for _, p := range parts {
		maphash.WriteComparable(&h, len(p)) // "ab","c" is not "a","bc"
		_, _ = h.WriteString(p)             // cannot fail
	}
	return max(1, h.Sum64())
}

// parseKeys reads a key file.
func parseKeys(file string, data []byte) (*keySet, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		// A writer that truncates before it writes must not lock everybody out.
		return nil, &FileError{file, 0, "the file is empty; a file without keys must hold a # comment"}
	}
	set := &keySet{byHash: make(map[[sha256.Size]byte]*Caller)}
	lines := make(map[[sha256.Size]byte]int)
	callers := make(map[string]*Caller)
	n := 0
	for line := range strings.Lines(string(data)) {
		if n++; n > maxKeyLines {
			return nil, &FileError{file, n, fmt.Sprintf("too many lines, expected at most %d", maxKeyLines)}
		}
		name, hash, message := parseKeyLine(line)
		switch {
		case message != "":
			return nil, &FileError{file, n, message}
		case name == "":
			continue
		case lines[hash] != 0:
			return nil, &FileError{file, n, fmt.Sprintf("the same hash is in line %d; each key has one name", lines[hash])}
		}
		lines[hash] = n
		if callers[name] == nil {
			callers[name] = &Caller{name: "key:" + name, id: callerID("key", name), key: name}
		}
		set.byHash[hash] = callers[name]
	}
	return set, nil
}

// parseKeyLine returns the name "" for a line that holds nothing, and a message
// if the line is wrong. The message never quotes what could be a key.
func parseKeyLine(line string) (name string, hash [sha256.Size]byte, message string) {
	text, _, _ := strings.Cut(line, "#")
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return "", hash, ""
	}
	const form = "expected: name sha256:<64 hexadecimal digits>"
	if !validKeyName(fields[0]) {
		return "", hash, "the name is not 1 to 64 of A-Z a-z 0-9 . _ -; " + form
	}
	if len(fields) != 2 {
		return "", hash, fmt.Sprintf("%d words; %s", len(fields), form)
	}
	digits, ok := strings.CutPrefix(fields[1], "sha256:")
	switch {
	case !ok && strings.HasPrefix(fields[1], keyPrefix):
		return "", hash, "this is a key itself, not its hash; slipstream key hash makes the line"
	case !ok:
		return "", hash, "the hash does not begin with sha256:; " + form
	case len(digits) != 2*sha256.Size:
		return "", hash, fmt.Sprintf("the hash has %d digits; %s", len(digits), form)
	}
	if _, err := hex.Decode(hash[:], []byte(digits)); err != nil {
		return "", hash, "the hash holds something else than hexadecimal digits; " + form
	}
	return fields[0], hash, ""
}

func validKeyName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return 1 <= len(name) && len(name) <= maxKeyName
}

// NewKey returns a new API key: "slk_" and 32 random bytes in base64url, 47
// characters.
func NewKey() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails; the program ends if there is no randomness
	return keyPrefix + base64.RawURLEncoding.EncodeToString(random[:])
}

// KeyLine returns the line of a key file that makes the key known by the name,
// without the newline. The key must be 20 to 256 printable ASCII characters
// without blanks: what a field of HTTP carries unchanged.
func KeyLine(name, key string) (string, error) {
	if !validKeyName(name) {
		return "", fmt.Errorf("the name %q is not 1 to %d of A-Z a-z 0-9 . _ -", name, maxKeyName)
	}
	if len(key) < minChosenKey || len(key) > maxKey {
		return "", fmt.Errorf("the key has %d characters, expected %d to %d", len(key), minChosenKey, maxKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", fmt.Errorf("character %d of the key is a blank or not printable ASCII", i+1)
		}
	}
	return fmt.Sprintf("%s sha256:%x", name, sha256.Sum256([]byte(key))), nil
}

// CheckKeysFile reads a key file and returns the number of its keys. A mistake is
// a [*FileError].
func CheckKeysFile(path string) (keys int, err error) {
	_, data, err := readBounded(path, maxKeysFile)
	if err != nil {
		return 0, err
	}
	set, err := parseKeys(path, data)
	if err != nil {
		return 0, err
	}
	return len(set.byHash), nil
}
