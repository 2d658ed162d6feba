// Package config contains configurations to start from. Its tests serve each of them.
package config
