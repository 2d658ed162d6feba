package gateway

import "github.com/slipstream-go/slipstream/gateway/config"

// listening says which listeners a gateway has if its configuration names none: see
// [Options.NoDefaultListeners].
type listening struct {
	// Immutable.
	noDefaults            bool
	givenHTTP, givenAdmin bool // in Options.Listeners
}

// somewhere is an address that collides with no other.
const somewhere = "127.0.0.1:0"

// withDefaults is [config.Config.WithDefaults] without the listeners that the gateway does not
// have.
func (l listening) withDefaults(cfg *config.Config) config.Config {
	full := cfg.WithDefaults()
	if l.noHTTP(cfg) {
		full.Frontends.HTTP = nil
	}
	if l.noAdmin(cfg) {
		full.Admin.Address = ""
	}
	return full
}

// complete returns the configuration with its defaults if it is valid.
func (l listening) complete(cfg *config.Config) (config.Config, error) {
	return l.withDefaults(cfg), l.validate(*cfg)
}

// validate is [config.Config.Validate]. The defaults of listeners that the gateway does not
// have cannot collide with those that it has.
func (l listening) validate(cfg config.Config) error {
	if l.noHTTP(&cfg) {
		cfg.Frontends.HTTP = config.ListenAt(somewhere)
	}
	if l.noAdmin(&cfg) {
		cfg.Admin.Address = somewhere
	}
	full := cfg.WithDefaults()
	return full.Validate()
}

func (l listening) noHTTP(cfg *config.Config) bool {
	return l.noDefaults && !l.givenHTTP && len(cfg.Frontends.HTTP) == 0
}

func (l listening) noAdmin(cfg *config.Config) bool {
	return l.noDefaults && !l.givenAdmin && cfg.Admin.Address == ""
}
