package redisserver

import (
	"fmt"
	"strings"
)

// The values carry their key, so that a reply handed to the wrong caller shows:
// the eight digits of the key at the start, and again at the end if there is
// room.

// KeyDigits is how many digits a key ends with.
const KeyDigits = 8

// Keys is the number of keys that have values of a size: enough that no cache of the
// processor has them all, and 16 MB at most.
func Keys(size int) int { return max(min(10_000, 16<<20/size), 1) }

// Key is the name of key i.
func Key(i int) string { return fmt.Sprintf("key:%0*d", KeyDigits, i) }

// Value is the value of a key, of a size that fits its digits.
func Value(key string, size int) string {
	digits := key[len(key)-KeyDigits:]
	fill := size - KeyDigits - 1
	if size < 2*(KeyDigits+1) {
		return digits + ":" + strings.Repeat("v", fill)
	}
	return digits + ":" + strings.Repeat("v", fill-KeyDigits-1) + ":" + digits
}

// Check returns an error if value is not that of key. It checks the length and both
// ends: reading all of a large value would cost the caller more than some clients
// cost.
func Check(key string, value []byte, size int) error {
	digits := key[len(key)-KeyDigits:]
	if len(value) == size && string(value[:KeyDigits]) == digits && value[KeyDigits] == ':' &&
		(size < 2*(KeyDigits+1) || string(value[size-KeyDigits:]) == digits) {
		return nil
	}
	return fmt.Errorf("value of %s has %d bytes and begins %.20q, want %d bytes and %s", key, len(value), value, size, digits)
}
