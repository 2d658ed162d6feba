package gateway

import (
	"fmt"
	"slices"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
)

// dropped is a store that remembers what it must drop.
type dropped struct {
	cache.Store
	what []string
}

func (d *dropped) Remove(key cache.Key) {
	d.what = append(d.what, fmt.Sprint(key.Resource, "/", key.ID))
}
func (d *dropped) Flush(r cache.ResourceID) { d.what = append(d.what, fmt.Sprint(r)) }

// A document that is purged before the disk tier is open is dropped from it when it
// opens, once.
func TestPurgesBeforeTheDiskTierOpensAreNotForgotten(t *testing.T) {
	g := &Gateway{config: &config.Config{Tiers: config.Tiers{Disk: config.Disk{Path: "tier"}}}}
	for range 2 {
		for _, p := range []purge{{key: cache.Key{Resource: 1, ID: "7"}}, {key: cache.Key{Resource: 2}, all: true}} {
			if !g.purgeLater(p) {
				t.Errorf("%v is not remembered", p)
			}
		}
	}
	var d dropped
	g.dropUnattached(&d)
	g.dropUnattached(&d)
	slices.Sort(d.what)
	if want := []string{"1/7", "2"}; !slices.Equal(d.what, want) {
		t.Errorf("dropped %q, want %q", d.what, want)
	}
	for i := range 2 * maxUnattached {
		g.purgeLater(purge{key: cache.Key{Resource: 3, ID: fmt.Sprint(i)}})
	}
	d.what = nil
	g.dropUnattached(&d)
	if len(d.what) != maxUnattached+1 || !slices.Contains(d.what, "3") {
		t.Errorf("%d drops for %d purges, expected at most %d and all of the resource", len(d.what), 2*maxUnattached, maxUnattached)
	}
	g.config = &config.Config{}
	if g.purgeLater(purge{}) {
		t.Error("a purge waits for a disk tier that does not exist")
	}
}
