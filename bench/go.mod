module github.com/slipstream-go/slipstream/bench

go 1.26.0

replace github.com/slipstream-go/slipstream => ../

replace github.com/slipstream-go/slipstream/examples/foo => ../examples/foo

require (
	github.com/cloudwego/netpoll v0.7.2
	github.com/francoispqt/gojay v1.2.13
	github.com/gomodule/redigo v1.9.3
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe
	github.com/google/uuid v1.6.0
	github.com/gorilla/mux v1.8.1
	github.com/jackc/pgx/v5 v5.12.0
	github.com/joomcode/errorx v0.8.0
	github.com/joomcode/redispipe v0.9.4
	github.com/mediocregopher/radix/v4 v4.1.4
	github.com/ncruces/go-sqlite3 v0.35.3
	github.com/panjf2000/gnet/v2 v2.7.0
	github.com/pascaldekloe/redis/v2 v2.0.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	github.com/slipstream-go/slipstream v0.0.0-00010101000000-000000000000
	github.com/slipstream-go/slipstream/examples/foo v0.0.0-00010101000000-000000000000
	github.com/tarantool/go-iproto v1.1.0
	github.com/tarantool/go-tarantool/v2 v2.4.2
	github.com/tarantool/go-tarantool/v3 v3.0.0
	github.com/valyala/fasthttp v1.70.0
	github.com/vmihailenco/msgpack/v5 v5.4.1
	go.etcd.io/bbolt v1.5.0
	golang.org/x/net v0.59.0
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/andybalholm/brotli v1.2.1 // indirect
	github.com/bytedance/gopkg v0.1.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cloudwego/gopkg v0.1.4 // indirect
	github.com/go-jose/go-jose/v4 v4.1.8 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/josharian/intern v1.0.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/mailru/easyjson v0.9.2 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/ncruces/go-sqlite3-wasm/v3 v3.2.35304 // indirect
	github.com/ncruces/julianday v1.0.0 // indirect
	github.com/panjf2000/ants/v2 v2.10.0 // indirect
	github.com/shopspring/decimal v1.3.1 // indirect
	github.com/tarantool/go-option v1.1.0 // indirect
	github.com/tilinna/clock v1.0.2 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/multierr v1.6.0 // indirect
	go.uber.org/zap v1.21.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	gopkg.in/natefinch/lumberjack.v2 v2.2.1 // indirect
)
