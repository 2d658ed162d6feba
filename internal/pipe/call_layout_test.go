package pipe

import (
	"testing"
	"unsafe"
)

// A call fills whole cache lines, and fields that are used together share a line. The fields that
// the reader uses are in the first line and in the line of the reply; fields that most calls do not
// use are in the second and the last.
func TestCallLayout(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Log("the layout is for 64-bit systems")
		return
	}
	var c Call
	const line = 64
	if size := unsafe.Sizeof(c); size != 6*line {
		t.Errorf("a Call has %d bytes, want %d", size, 6*line)
	}
	for name, at := range map[string][2]uintptr{
		"ending": {unsafe.Offsetof(c.ending), 0}, "charge": {unsafe.Offsetof(c.charge), 0}, "state": {unsafe.Offsetof(c.state), 0},
		"generation": {unsafe.Offsetof(c.generation), 0}, "Whole": {unsafe.Offsetof(c.Whole), 0}, "reply": {unsafe.Offsetof(c.reply), 1},
		"Frame": {unsafe.Offsetof(c.Frame), 2}, "Pin": {unsafe.Offsetof(c.Pin), 2}, "attached": {unsafe.Offsetof(c.attached), 3},
		"frame": {unsafe.Offsetof(c.frame) + inlineFrame - 1, 3}, "large": {unsafe.Offsetof(c.large), 4}, "onInterim": {unsafe.Offsetof(c.onInterim), 5},
	} {
		if at[0]/line != at[1] {
			t.Errorf("%s is at offset %d, want it in line %d", name, at[0], at[1])
		}
	}
}
