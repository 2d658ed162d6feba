// Package config holds configurations to start from. Its test serves each.
package config
