package openapi

import (
	"net/url"
	"regexp"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// TestKeyPatternIsWhatIsAccepted: the pattern in the description matches exactly
// the keys that are accepted.
func TestKeyPatternIsWhatIsAccepted(t *testing.T) {
	for kind, values := range map[resource.Kind][]string{
		resource.Integer: {"0", "-1", "9223372036854775807", "1541815603606036480", "9223372036854775806", "9223372036854775799", "8999999999999999999",
			"-9223372036854775807", "-9223372036854775808", "-9223372036854775809", "9223372036854775808", "9223372036854775810", "9300000000000000000", "12345678901234567890", "-0", "+1", "01", "", "x", "1.0"},
		resource.Text: {"a", "a b", "Zürich", "Z%C3%BCrich", "Z%c3%bcrich", "a%2Fb", "%25", "%7f", "a+b", "..", "%E2%82%AC", "%e2%82%ac", "%F0%9F%98%80",
			"%ED%9F%BF", "%F4%8F%BF%BF", "%EE%80%80", "%DF%BF", "%CF%80",
			"", "%", "%4", "%zz", "%00", "a\x00", "%FF", "%C3", "%C3%28", "%C0%AF", "%E0%80%AF", "%ED%A0%80", "%F0%80%80%AF", "%F4%90%80%80", "%80", "%F8%80%80%80"},
		resource.Bytes:       {"00ff", "a", "AA", "", "0x"},
		resource.Decimal:     {"0", "-0.5", "12.5", "10", "1.", ".5", "1.50", "-0", "00", "1e3"},
		resource.UUID:        {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"},
		resource.Date:        {"2024-02-29", "2024-2-29", "20240229", "2024-02-29T"},
		resource.Timestamp:   {"2024-02-29T12:30:00.000000", "2024-02-29T12%3A30%3a00.000000", "2024-02-29T12:30:00", "2024-02-29 12:30:00.000000", "2024-02-29T12:30:00.000000Z"},
		resource.TimestampTZ: {"2024-02-29T12:30:00.000000Z", "2024-02-29T12:30:00.000000", "2024-02-29T12:30:00.000000z"},
		resource.Boolean:     {"true", "false", "t", "True", "1", ""},
	} {
		columns := []resource.KeyColumn{{Name: "a", Kind: kind}, {Name: "b", Kind: resource.Integer}}
		pattern := regexp.MustCompile(keyPattern(columns))
		for _, v := range values {
			decoded, err := url.PathUnescape(v)
			accepted := err == nil && columns[0].Check(decoded) == nil
			if got := pattern.MatchString(v + "/7"); got != accepted {
				t.Errorf("kind %v, value %q: the pattern says %v, the key's reader %v", kind, v, got, accepted)
			}
		}
		if len(segments[kind]) == 0 || pattern.MatchString("7") || pattern.MatchString(values[0]+"/7/7") {
			t.Errorf("kind %v: %s", kind, pattern)
		}
	}
}
