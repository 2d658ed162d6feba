//go:build unix

package load

import (
	"strings"
	"testing"
)

func TestNeedDescriptors(t *testing.T) {
	if err := NeedDescriptors(10); err != nil {
		t.Error(err)
	}
	if err := NeedDescriptors(1 << 60); err == nil || !strings.Contains(err.Error(), "may open at most") {
		t.Errorf("2^60 descriptors: %v", err)
	}
}
