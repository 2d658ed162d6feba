package redis

import (
	"context"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

var infoGEOADD = known("GEOADD")

// A Location is a member of a geospatial set and its coordinates, in degrees.
type Location struct {
	Name                string
	Longitude, Latitude float64
}

// GeoAdd adds or moves members, and returns the number of new members.
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

// A Position is the coordinates of a member of a geospatial set, in degrees. It may be missing.
type Position struct {
	Longitude, Latitude float64
	Found               bool
}

// A Place is a member that a query has found. Fields that the query did not request are
// zero.
type Place struct {
	// Location has a longitude and a latitude if the query was WITHCOORD.
	Location
	// Distance is the distance from the center, in the unit of the query, if it was WITHDIST.
	Distance float64
	// Hash is the geohash as a number of 52 bits, if it was WITHHASH.
	Hash int64
}

func (c *Client) positions(ctx context.Context, r *request) ([]Position, error) {
	return reply(ctx, c, r, func(d *resp.Decoder, tok resp.Token) ([]Position, error) {
		return listOf(d, tok, positionOf)
	})
}

func (c *Client) places(ctx context.Context, r *request) ([]Place, error) {
	return reply(ctx, c, r, func(d *resp.Decoder, tok resp.Token) ([]Place, error) { return listOf(d, tok, placeOf) })
}

// positionOf decodes a pair of a longitude and a latitude.
func positionOf(d *resp.Decoder, tok resp.Token) (p Position, err error) {
	if tok.Null {
		return p, nil
	}
	if !isTuple(tok, 2) {
		return p, mismatch[Position](tok, errMismatch)
	}
	if err = next(d, &p.Longitude); err == nil {
		err = next(d, &p.Latitude)
	}
	p.Found = err == nil
	return p, err
}

// placeOf decodes a name, or a name and the requested fields, each of which has its own form.
func placeOf(d *resp.Decoder, tok resp.Token) (p Place, err error) {
	if tok.Kind != resp.Array || tok.Null {
		p.Name, err = scalarOf(tok, stringOf)
		return p, err
	}
	e := elements{d, tok.Len}
	first, ok, err := e.next()
	switch {
	case err != nil:
		return p, err
	case !ok:
		return p, mismatch[Place](tok, errMismatch)
	}
	if p.Name, err = scalarOf(first, stringOf); err != nil {
		return p, err
	}
	for {
		tok, ok, err := e.next()
		if err != nil || !ok {
			return p, err
		}
		switch {
		case isAggregate(tok):
			var at Position
			at, err = positionOf(d, tok)
			p.Longitude, p.Latitude = at.Longitude, at.Latitude
		case tok.Kind == resp.Integer:
			p.Hash = tok.Int
		default:
			p.Distance, err = scalarOf(tok, floatOf)
		}
		if err != nil {
			return p, err
		}
	}
}
