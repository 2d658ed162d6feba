package redisserver

import (
	"fmt"
	"strings"
)

// The values contain their key, so that a reply passed to the wrong caller is detected: the eight
// digits of the key are at the start and, if there is room, at the end.

// KeyDigits is the number of digits at the end of a key.
const KeyDigits = 8

// Keys returns the number of keys with values of a size: enough to exceed the caches of the
// processor, and at most 16 MB of values.
func Keys(size int) int { return max(min(10_000, 16<<20/size), 1) }

// Key returns the name of key i.
func Key(i int) string { return fmt.Sprintf("key:%0*d", KeyDigits, i) }

// Value returns the value of a key, of a size that is large enough for its digits.
func Value(key string, size int) string {
	digits := key[len(key)-KeyDigits:]
	fill := size - KeyDigits - 1
	if size < 2*(KeyDigits+1) {
		return digits + ":" + strings.Repeat("v", fill)
	}
	return digits + ":" + strings.Repeat("v", fill-KeyDigits-1) + ":" + digits
}

// Check returns an error if value is not that of key. It checks the length and both ends: checking
// all of a large value would cost the caller more than some clients.
func Check(key string, value []byte, size int) error {
	digits := key[len(key)-KeyDigits:]
	if len(value) == size && string(value[:KeyDigits]) == digits && value[KeyDigits] == ':' &&
		(size < 2*(KeyDigits+1) || string(value[size-KeyDigits:]) == digits) {
		return nil
	}
	return fmt.Errorf("value of %s has %d bytes and begins %.20q, want %d bytes and %s", key, len(value), value, size, digits)
}
