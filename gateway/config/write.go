package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Marshal writes the configuration as YAML, in the order of the documentation,
// with everything that [Parse] would fill in. Parsing it gives the same
// configuration. It holds secrets: see [Config.Redacted].
func (c *Config) Marshal() []byte {
	var b strings.Builder
	full := c.WithDefaults()
	writeMembers(&b, writeObject(full.fields()), 0)
	return []byte(b.String())
}

// Redacted is Marshal with passwords hidden: what logs and pages may show.
func (c *Config) Redacted() []byte {
	shown := *c
	shown.Origin.URL = redactURL(c.Origin.URL)
	shown.Origin.StreamURL = redactURL(c.Origin.StreamURL)
	shown.Tracing.Endpoint = redactEndpoint(c.Tracing.Endpoint)
	// A digest reveals nothing about a password that cannot be guessed, but users may
	// have chosen one that can.
	shown.Redis.Users = slices.Clone(c.Redis.Users)
	for i := range shown.Redis.Users {
		shown.Redis.Users[i].Password = hidden
	}
	return shown.Marshal()
}

func writeMembers(b *strings.Builder, m members, indent int) {
	for _, one := range m {
		b.WriteString(strings.Repeat("  ", indent))
		writeText(b, one.name)
		b.WriteByte(':')
		switch v := one.value.(type) {
		case members:
			if len(v) == 0 {
				b.WriteString(" {}\n")
				continue
			}
			b.WriteByte('\n')
			writeMembers(b, v, indent+1)
		case []members:
			b.WriteByte('\n')
			for _, item := range v {
				// "- " replaces two spaces of the indent of the first name.
				var element strings.Builder
				writeMembers(&element, item, indent+2)
				b.WriteString(strings.Repeat("  ", indent+1) + "- " + strings.TrimLeft(element.String(), " "))
			}
		case []any:
			b.WriteString(" [")
			for i, item := range v {
				if i > 0 {
					b.WriteString(", ")
				}
				writeScalar(b, item)
			}
			b.WriteString("]\n")
		default:
			b.WriteByte(' ')
			writeScalar(b, v)
			b.WriteByte('\n')
		}
	}
}

func writeScalar(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		writeText(b, strings.ReplaceAll(v, "${", "$${"))
	case float64:
		// Without an exponent, which not every YAML reader accepts as a number.
		b.WriteString(strconv.FormatFloat(v, 'f', -1, 64))
	default: // numbers and Booleans
		fmt.Fprint(b, v)
	}
}

// plain matches texts that mean themselves without quotes, in any YAML version, unless they are
// numbers such as 1e3 or 0x1f, or words of YAML.
var plain = regexp.MustCompile(`^(-?[A-Za-z_][A-Za-z0-9_./-]*|[0-9]+[A-Za-z]+)$`)

var yamlWords = []string{"true", "false", "null", ".inf", ".nan", "-.inf"}

func writeText(b *strings.Builder, s string) {
	_, notFloat := strconv.ParseFloat(s, 64)
	_, notInt := strconv.ParseInt(s, 0, 64)
	if plain.MatchString(s) && notFloat != nil && notInt != nil && !slices.Contains(yamlWords, strings.ToLower(s)) {
		b.WriteString(s)
		return
	}
	// A JSON string is a double-quoted YAML string.
	var quoted strings.Builder
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		b.WriteString(strconv.QuoteToASCII(s))
		return
	}
	b.WriteString(strings.TrimSuffix(quoted.String(), "\n"))
}
