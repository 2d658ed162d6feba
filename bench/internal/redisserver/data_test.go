package redisserver

import "testing"

// A wrong value must never be accepted.
func TestCheck(t *testing.T) {
	for _, size := range []int{16, 768, 65536} {
		key := Key(42)
		right := Value(key, size)
		if len(right) != size {
			t.Errorf("size %d: %d bytes", size, len(right))
		}
		if err := Check(key, []byte(right), size); err != nil {
			t.Error(err)
		}
		other := Value(Key(43), size)
		for name, wrong := range map[string]string{
			"other": other, "short": right[1:], "long": right + "x", "empty": "",
		} {
			if Check(key, []byte(wrong), size) == nil {
				t.Errorf("size %d: %s value is accepted", size, name)
			}
		}
		if size > 16 && Check(key, []byte(right[:size-8]+other[size-8:]), size) == nil {
			t.Errorf("size %d: a value with the end of another is accepted", size)
		}
	}
}
