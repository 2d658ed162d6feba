package main

import (
	"fmt"
	"strings"
)

// The values carry their key, so that a reply handed to the wrong caller shows:
// the eight digits of the key at the start, and again at the end if there is
// room.

const keyDigits = 8

// keysOf is how many keys have values of a size: enough that no cache of the
// processor has them all, and 16 MB at most.
func keysOf(size int) int { return max(min(10_000, 16<<20/size), 1) }

func keyName(i int) string { return fmt.Sprintf("key:%0*d", keyDigits, i) }

func valueOf(key string, size int) string {
	digits := key[len(key)-keyDigits:]
	fill := size - keyDigits - 1
	if size < 2*(keyDigits+1) {
		return digits + ":" + strings.Repeat("v", fill)
	}
	return digits + ":" + strings.Repeat("v", fill-keyDigits-1) + ":" + digits
}

// checkValue says what is wrong with the value of key. It looks at the length
// and at both ends: reading all of a large value would cost the caller more than
// some clients cost.
func checkValue(key string, value []byte, size int) error {
	digits := key[len(key)-keyDigits:]
	if len(value) == size && string(value[:keyDigits]) == digits && value[keyDigits] == ':' &&
		(size < 2*(keyDigits+1) || string(value[size-keyDigits:]) == digits) {
		return nil
	}
	return fmt.Errorf("value of %s has %d bytes and begins %.20q, want %d bytes and %s", key, len(value), value, size, digits)
}
