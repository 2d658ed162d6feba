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
	return []field[Tiers]{
		{Name: "memory", Doc: "the budget of the memory tier",
			Value: scalar(size(1<<20, 1<<45), func(t *Tiers) *int64 { return &t.Memory }), Default: int64(256 << 20)},
		{Name: "disk", Doc: "the tier that keeps documents over restarts; left out: there is none",
			Value: object(diskFields, func(t *Tiers) *Disk { return &t.Disk }), Omit: ifZero},
	}
}

func diskFields() []field[Disk] {
	return []field[Disk]{
		{Name: "path", Doc: "the directory of its file, which is made if it does not exist",
			Value: scalar(fileName("a directory, relative to this file, such as /var/lib/slipstream"), func(d *Disk) *string { return &d.Path }),
			Omit:  ifZero, Required: true},
		{Name: "size", Doc: "how large the file may become",
			Value: scalar(size(leastDisk, 1<<45), func(d *Disk) *int64 { return &d.Size }), Omit: ifZero, Required: true},
		{Name: "promote", Doc: "puts documents that are found there into memory",
			Value: scalar(inverted(), func(d *Disk) *bool { return &d.Stay }), If: (*Disk).Set},
	}
}
