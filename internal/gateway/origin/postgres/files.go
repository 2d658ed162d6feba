package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/slipstream-go/slipstream/internal/safefile"
)

// maxSecret is far more than the size of a private key or a file of passwords.
const maxSecret = 1 << 20

// judgeFiles refuses files with a password or a private key that others could have written, and
// returns a warning for each that others can read. The driver has just read them, by the same
// names.
func judgeFiles(raw string, cfg *pgxpool.Config) (warnings []string, err error) {
	var paths []string
	_, query, _ := strings.Cut(raw, "?")
	given, err := url.ParseQuery(query)
	if err != nil {
		given = nil // the driver has parsed it
	}
	home, _ := os.UserHomeDir() // without one there are no defaults
	conn := cfg.ConnConfig
	if conn.Password != "" && !hasPassword(raw, given) {
		paths = append(paths, cmp.Or(given.Get("passfile"), os.Getenv("PGPASSFILE"), filepath.Join(home, ".pgpass")))
	}
	if given.Get("service") != "" || os.Getenv("PGSERVICE") != "" {
		paths = append(paths, cmp.Or(given.Get("servicefile"), os.Getenv("PGSERVICEFILE"), filepath.Join(home, ".pg_service.conf")))
	}
	if conn.TLSConfig != nil && len(conn.TLSConfig.Certificates) > 0 {
		paths = append(paths, cmp.Or(given.Get("sslkey"), os.Getenv("PGSSLKEY"), filepath.Join(home, ".postgresql", "postgresql.key")))
	}
	for _, path := range paths {
		secret, err := safefile.ReadSecret(path, maxSecret)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the driver continues without it
		}
		if err != nil {
			return nil, fmt.Errorf("postgres: %w", err)
		}
		if secret.Warning != "" {
			warnings = append(warnings, secret.Warning)
		}
	}
	return warnings, nil
}

// hasPassword reports whether the URL or the environment has a password, so that none is looked
// for in a file.
func hasPassword(raw string, given url.Values) bool {
	_, rest, _ := strings.Cut(raw, "://")
	authority := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority = rest[:i]
	}
	user, _, found := strings.Cut(authority, "@")
	return found && strings.Contains(user, ":") || given.Get("password") != "" || os.Getenv("PGPASSWORD") != ""
}
