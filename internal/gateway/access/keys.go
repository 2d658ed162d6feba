package access

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"time"
)

// Bounds of API keys and their file.
const (
	maxKey       = 256     // bytes of a presented key
	minChosenKey = 20      // characters of a key that was made elsewhere
	maxKeyLines  = 10_000  // lines of the file, comments counted
	maxKeysFile  = 4 << 20 // bytes of the file: 400 a line, where 136 are needed
	maxKeyName   = 64      // bytes of a name
)

// keyPrefix lets people and repository scanners recognize a key.
const keyPrefix = "slk_"

// FileError is a mistake in a key file or key set.
type FileError struct {
	File string // as it was configured
	Line int    // from 1; 0 means the whole file
	// Message is what was wrong and what was expected. It never holds a key.
	Message string
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// keySet is the content of a key file. It is immutable.
type keySet struct {
	byHash map[[sha256.Size]byte]apiKey
	dated  []datedKey // those that expire, the earliest first
}

// apiKey is a line of a key file.
type apiKey struct {
	caller *Caller
	until  int64 // when it expires, in Unix nanoseconds; 0 means never
}

// expired reads the clock only for keys that expire.
func (a apiKey) expired(now func() time.Time) bool {
	return a.until != 0 && now().UnixNano() >= a.until
}

// find returns the caller of a presented key. Its time is not constant, which
// reveals nothing: see the package's doc.
func (k *keySet) find(key string, now func() time.Time) (*Caller, *Refusal) {
	if len(key) > maxKey {
		return nil, refusedLongKey
	}
	var text [maxKey]byte // a conversion would allocate
	n := copy(text[:], key)
	a, ok := k.byHash[sha256.Sum256(text[:n])]
	switch {
	case !ok:
		return nil, refusedKey
	case a.expired(now):
		return nil, refusedOldKey
	}
	return a.caller, nil
}

// HashKey returns the hash of an API key, for [Gate.Known].
func HashKey(key string) [sha256.Size]byte { return sha256.Sum256([]byte(key)) }

// Known returns the caller whose API key has the hash, and how long the key is valid from now
// on. The caller is nil if the key was removed or has expired. It is for connections that outlive
// their login, so that they need not keep the key.
func (g *Gate) Known(hash [sha256.Size]byte) (caller *Caller, left time.Duration) {
	keys := g.keys.Load()
	if keys == nil {
		return nil, 0
	}
	a, ok := keys.byHash[hash]
	if !ok {
		return nil, 0
	}
	if a.until == 0 {
		return a.caller, math.MaxInt64
	}
	if left = time.Duration(a.until - g.now().UnixNano()); left <= 0 {
		return nil, 0
	}
	return a.caller, left
}

// idSeed makes the IDs of callers unpredictable: no one can choose a subject that
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
		// A writer that truncates before it writes must not lock everyone out.
		return nil, &FileError{file, 0, "the file is empty; a file without keys must hold a # comment"}
	}
	set := &keySet{byHash: make(map[[sha256.Size]byte]apiKey)}
	lines := make(map[[sha256.Size]byte]int)
	callers := make(map[string]*Caller)
	n := 0
	for line := range strings.Lines(string(data)) {
		if n++; n > maxKeyLines {
			return nil, &FileError{file, n, fmt.Sprintf("too many lines, expected at most %d", maxKeyLines)}
		}
		name, hash, until, message := parseKeyLine(line)
		switch {
		case message != "":
			return nil, &FileError{file, n, message}
		case name == "":
			continue
		case lines[hash] != 0:
			return nil, &FileError{file, n, fmt.Sprintf("the same hash is on line %d; each key has one name", lines[hash])}
		}
		lines[hash] = n
		if callers[name] == nil {
			callers[name] = &Caller{name: "key:" + name, id: callerID("key", name), key: name}
		}
		set.byHash[hash] = apiKey{callers[name], until}
		if until != 0 {
			set.dated = append(set.dated, datedKey{until, name})
		}
	}
	slices.SortStableFunc(set.dated, func(a, b datedKey) int { return cmp.Compare(a.until, b.until) })
	return set, nil
}

// parseKeyLine returns the name "" for an empty line, and a message if the line is
// wrong. The message never quotes text that could be a key.
func parseKeyLine(line string) (name string, hash [sha256.Size]byte, until int64, message string) {
	text, _, _ := strings.Cut(line, "#")
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return "", hash, 0, ""
	}
	const form = "expected: name sha256:<64 hexadecimal digits>, and until:<date> for a key that expires"
	if !validKeyName(fields[0]) {
		return "", hash, 0, "the name must have 1 to 64 characters of A-Z a-z 0-9 . _ -; " + form
	}
	if len(fields) != 2 && len(fields) != 3 {
		return "", hash, 0, fmt.Sprintf("%d words; %s", len(fields), form)
	}
	digits, ok := strings.CutPrefix(fields[1], "sha256:")
	switch {
	case !ok && strings.HasPrefix(fields[1], keyPrefix):
		return "", hash, 0, "this is a key itself, not its hash; slipstream key hash makes the line"
	case !ok:
		return "", hash, 0, "the hash does not begin with sha256:; " + form
	case len(digits) != 2*sha256.Size:
		return "", hash, 0, fmt.Sprintf("the hash has %d digits; %s", len(digits), form)
	}
	if _, err := hex.Decode(hash[:], []byte(digits)); err != nil {
		return "", hash, 0, "the hash has characters other than hexadecimal digits; " + form
	}
	if len(fields) == 3 {
		if until, ok = parseUntil(fields[2]); !ok {
			return "", hash, 0, "the third word is not a time of expiry; expected " + untilForm
		}
	}
	return fields[0], hash, until, ""
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

// KeyLine returns the line of a key file that registers the key under the name,
// without the newline. The key must be 20 to 256 printable ASCII characters
// without spaces, which an HTTP field carries unchanged.
func KeyLine(name, key string) (string, error) {
	if !validKeyName(name) {
		return "", fmt.Errorf("the name %q must have 1 to %d characters of A-Z a-z 0-9 . _ -", name, maxKeyName)
	}
	if len(key) < minChosenKey || len(key) > maxKey {
		return "", fmt.Errorf("the key has %d characters, expected %d to %d", len(key), minChosenKey, maxKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", fmt.Errorf("character %d of the key is a space or not printable ASCII", i+1)
		}
	}
	return fmt.Sprintf("%s sha256:%x", name, sha256.Sum256([]byte(key))), nil
}

// CheckKeysFile reads a key file and returns the number of its keys, and how many of them have
// expired. A mistake is a [*FileError].
func CheckKeysFile(path string) (keys, expired int, err error) {
	_, data, err := readBounded(path, maxKeysFile)
	if err != nil {
		return 0, 0, err
	}
	set, err := parseKeys(path, data)
	if err != nil {
		return 0, 0, err
	}
	return len(set.byHash), set.expiredAt(time.Now()), nil
}
