package redisload

import (
	"context"

	"github.com/mediocregopher/radix/v4"
)

func (c *ourClient) Push(ctx context.Context, key, value string) error {
	_, err := c.client.RPush(ctx, key, value)
	return err
}

func (c *rueidisClient) Push(ctx context.Context, key, value string) error {
	return c.client.Do(ctx, c.client.B().Rpush().Key(key).Element(value).Build()).Error()
}

func (c *goRedisClient) Push(ctx context.Context, key, value string) error {
	return c.commands.RPush(ctx, key, value).Err()
}

func (c *redispipeClient) Push(ctx context.Context, key, value string) error {
	_, err := c.do(ctx, "RPUSH", key, value)
	return err
}

func (c *radixClient) Push(ctx context.Context, key, value string) error {
	return c.client.Do(ctx, radix.Cmd(nil, "RPUSH", key, value))
}
