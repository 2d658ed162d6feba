package config

// Disk is the tier that keeps documents over restarts. The zero value: there is none.
type Disk struct {
	// Path is the directory of its file, relative to the folder of the configuration
	// file; it is made if it does not exist. See [Config.DiskPath].
	Path string
	// Size is how large the file may become, in bytes: at least 32 MiB.
	Size int64
	// Stay leaves documents that are found there where they are, instead of putting them
	// into memory: "promote: false" in the file.
	Stay bool
}

// Set reports whether there is a disk tier.
func (d *Disk) Set() bool { return d.Path != "" }

// DiskPath returns the directory of the disk tier, made absolute by the folder of the
// configuration file if that is known; "" if there is no such tier.
func (c *Config) DiskPath() string { return c.path(c.Tiers.Disk.Path) }

// leastDisk is what the tier needs to write a batch beside what it replaces.
const leastDisk = 32 << 20

func tierFields() []field[Tiers] {
	def := Default()
	return []field[Tiers]{
		withDefault(one("memory", "the budget of the memory tier",
			size(1<<20, 1<<45), func(t *Tiers) *int64 { return &t.Memory }), &def.Tiers),
		sparse(object("disk", "the tier that keeps documents over restarts; left out: there is none", diskFields,
			func(t *Tiers) *Disk { return &t.Disk })),
	}
}

func diskFields() []field[Disk] {
	return []field[Disk]{
		required(written(one("path", "the directory of its file, which is made if it does not exist",
			fileName("a directory, relative to this file, such as /var/lib/slipstream"), func(d *Disk) *string { return &d.Path }))),
		required(withoutZero(one("size", "how large the file may become",
			size(leastDisk, 1<<45), func(d *Disk) *int64 { return &d.Size }), func(d *Disk) bool { return d.Size == 0 })),
		promoteField(),
	}
}

// promoteField is true in the file for what is false in Go, so that both have the default
// that says nothing.
func promoteField() field[Disk] {
	k := truth()
	return field[Disk]{
		name: "promote", doc: "puts documents that are found there into memory",
		read: func(p *parser, v value, into *Disk) {
			promote := true
			readScalar(p, v, k, &promote)
			into.Stay = !promote
		},
		write: func(from *Disk) any {
			if !from.Set() {
				return nil
			}
			return !from.Stay
		},
		schema: func() schema { return k.schema },
	}
}
