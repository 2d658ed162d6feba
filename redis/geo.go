package redis

import (
	"context"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

var infoGEOADD = known("GEOADD")

// A Location is a member of a geospatial set and where it is, in degrees.
type Location struct {
	Name                string
	Longitude, Latitude float64
}

// GeoAdd adds members or moves them, and returns how many are new.
func (c *Client) GeoAdd(ctx context.Context, key string, locations ...Location) (int64, error) {
	r := c.typed(infoGEOADD, key)
	b := append(resp.AppendArrayHeader(r.call.Frame[:0], 2+3*len(locations)), "$6\r\nGEOADD\r\n"...)
	b = resp.AppendBulkString(b, key)
	for i := range locations {
		l := &locations[i]
		b = resp.AppendBulkString(resp.AppendBulkFloat(resp.AppendBulkFloat(b, l.Longitude), l.Latitude), l.Name)
	}
	r.call.Frame = b
	return c.number(ctx, &r)
}
