// Package clients holds the tests in which third-party programs use the gateway: HTTP
// clients, proxies, browsers, and clients of Redis.
package clients
