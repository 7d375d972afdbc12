package server

import (
	"reflect"
	"runtime"
	"time"
)

const (
	// MaxHeaderBytes bounds the metadata of one call.
	MaxHeaderBytes = 64 * kib
	// IdleTimeout closes a connection without a call; clients connect again by
	// themselves.
	IdleTimeout = 30 * time.Minute
	// keepaliveTime is the silence after which a connection is pinged.
	keepaliveTime = time.Minute
	// keepaliveTimeout is how long the answer to a ping may take before the
	// connection is closed.
	keepaliveTimeout = 20 * time.Second
	// keepaliveMinTime is the shortest interval at which clients may ping.
	keepaliveMinTime = 5 * time.Second
	// recentSteps is how many steps ListSteps returns when the request has no
	// page_size.
	recentSteps = 5
)

// Limits bound what callers can make the server hold or wait for. A zero field
// takes its default.
type Limits struct {
	// MaxReceiveBytes bounds one request message. Default 4 MiB, gRPC's custom.
	MaxReceiveBytes int
	// MaxSendBytes bounds one response message. Default 4 MiB - 64 KiB, because
	// clients refuse more than 4 MiB.
	MaxSendBytes int
	// MaxCalls bounds the unary calls that run at once in the whole process, those
	// aside that wait for another agent. Tenants and agents share them; more wait.
	// Default 1,024.
	MaxCalls int
	// MaxWaitingCalls bounds the calls that wait to run, shared in the same way; more
	// are OVERLOADED, and so is one that waited for callWait. Negative: none
	// waits. Default 1,024.
	MaxWaitingCalls int
	// ContendedCalls bounds the calls that run at once while several tenants call: each has
	// its share, at least one, plus what others leave. It keeps a tenant with many calls
	// from filling the processors at the expense of one with few. Default two for each
	// processor that Go uses.
	ContendedCalls int
	// ContendedEventBytes bounds the bytes of events that are emitted and delivered in
	// a second while several tenants are there: each has its part. One that has more
	// waits. Default 32 MiB.
	ContendedEventBytes int
	// MaxSearches bounds the queries, lists and counts that run at once, which tenants and
	// agents share; more wait. While several tenants are there, together they get half of
	// the processors, and each one at least. Default 64.
	MaxSearches int
	// MaxRequestBytes bounds the requests in memory of all calls that wait, run, or
	// wait for another agent; more are OVERLOADED. Default 256 MiB.
	MaxRequestBytes int
	// MaxAnswerBytes bounds the answers and events over 4 KiB that wait for their readers.
	// Further ones wait for room, and fail with OVERLOADED after callWait. A connection
	// whose reader took nothing for StallTimeout, longer for a large answer, is closed when
	// others need the room. Default 256 MiB.
	MaxAnswerBytes int
	// MaxStreams bounds the open streams of the whole process, which tenants and
	// agents share; more are OVERLOADED. Default 8,192: each agent has one, each
	// subscriber another.
	MaxStreams int
	// MaxStreamsPerConnection bounds calls and streams on one connection; a
	// client waits with more. Default 256.
	MaxStreamsPerConnection int
	// MaxConnections bounds open connections: beyond it the oldest on which no call
	// was authenticated makes room for the next, and without one more wait in the
	// backlog. One other machine gets seven eighths of them. Default 4,096: each
	// agent has its own.
	MaxConnections int
	// SilentTimeout closes a connection on which no call was authenticated and no
	// health check is under way. Default 30 s.
	SilentTimeout time.Duration
	// ConnectionTimeout bounds the handshake of a new connection, and the wait for
	// the first message of an Attach. Default 10 s.
	ConnectionTimeout time.Duration
	// StallTimeout is how long a stream may wait for its reader before it ends
	// with SLOW_CONSUMER. Default 60 s.
	StallTimeout time.Duration
	// DrainTimeout is how long calls in flight may take to finish at shutdown.
	// Default 1 s: tools have half a second more once they are cancelled, and
	// the store is closed within 2 s.
	DrainTimeout time.Duration
}

// DefaultLimits returns the default of every limit.
func DefaultLimits() Limits {
	return Limits{
		MaxReceiveBytes:         4 * mib,
		MaxSendBytes:            4*mib - 64*kib,
		MaxCalls:                1024,
		MaxWaitingCalls:         1024,
		ContendedCalls:          2 * runtime.GOMAXPROCS(0),
		ContendedEventBytes:     32 * mib,
		MaxSearches:             64,
		MaxRequestBytes:         256 * mib,
		MaxAnswerBytes:          256 * mib,
		MaxStreams:              8192,
		MaxStreamsPerConnection: 256,
		MaxConnections:          4096,
		SilentTimeout:           30 * time.Second,
		ConnectionTimeout:       10 * time.Second,
		StallTimeout:            60 * time.Second,
		DrainTimeout:            time.Second,
	}
}

// Full returns the limits with the default in every zero field.
func (l Limits) Full() Limits {
	fields, defaults := reflect.ValueOf(&l).Elem(), reflect.ValueOf(DefaultLimits())
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			fields.Field(i).Set(defaults.Field(i))
		}
	}
	return l
}
