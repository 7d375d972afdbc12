//go:build cgo && !norocksdb

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// What one tenant at full tilt does.
const (
	// floodClients make each sort of call at the same time, without a pause.
	floodClients = 64
	// floodStreams are opened and left alone.
	floodStreams = 2048
	// floodSlow clients subscribe to the published topics and read nothing.
	floodSlow = 50
	// floodHanging calls wait for a tool of an agent that never answers.
	floodHanging = 1024
	// floodEventBytes is the payload of its durable events.
	floodEventBytes = 64 << 10
	// floodNice lets the server and the measured tenant have the processor before
	// the flood itself.
	floodNice = 19
	// floodAgents share the work of each sort.
	floodAgents = 8
	// floodRegular of so many searches is one of blobs by floodPattern, which has
	// hundreds of beginnings of a match alive at once.
	floodRegular = 4
	floodPattern = `([a-z]{1,9}[0-9]?){1,40}[!?]`
	// floodPause follows a call that was refused.
	floodPause = time.Millisecond
)

// flood is one tenant that does as much as it can.
type flood struct {
	addr, token string
	pool        []string

	done    map[string]*atomic.Int64
	mu      sync.Mutex       // guards refused
	refused map[string]int64 // calls by sort and reason
}

// floodKinds are what a tenant can do at full tilt, by name.
func floodKinds() map[string]func(*flood, context.Context) error {
	return map[string]func(*flood, context.Context) error{
		"calls": (*flood).calls, "streams": (*flood).streams, "tools": (*flood).tools,
		"searches": (*flood).searches, "events": (*flood).events, "hanging": (*flood).hanging,
	}
}

// runFlood runs the named floods, separated by commas, until the standard input ends, and
// prints its counts as one line of JSON.
func runFlood(ctx context.Context, kinds, addr, token string) error {
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, floodNice); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &flood{addr: addr, token: token, pool: texts(5, 1024), done: map[string]*atomic.Int64{}, refused: map[string]int64{}}
	for name := range floodKinds() {
		f.done[name] = &atomic.Int64{}
	}
	var work sync.WaitGroup
	for name := range strings.SplitSeq(kinds, ",") {
		kind := floodKinds()[name]
		if kind == nil {
			return fmt.Errorf("bench: no flood is called %q", name)
		}
		work.Go(func() {
			if err := kind(f, ctx); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "flood of", name, "ended:", err)
			}
		})
	}
	fmt.Println("listening on", addr) // as a server does, for who started it
	var rest [1]byte
	for n := 1; n > 0; {
		n, _ = os.Stdin.Read(rest[:])
	}
	cancel()
	work.Wait()
	return f.print()
}

func (f *flood) print() error {
	sum := map[string]int64{}
	for name, n := range f.done {
		sum[name] = n.Load()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(sum, f.refused)
	return json.NewEncoder(os.Stdout).Encode(sum)
}

// dialAs opens a connection that carries a token.
func dialAs(addr, token string) (*grpc.ClientConn, error) {
	with := func(ctx context.Context) context.Context {
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	return grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return call(with(ctx), method, req, reply, c, opts...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return open(with(ctx), d, c, method, opts...)
		}))
}

func floodAgent(i int) string { return fmt.Sprintf("flood-%d", i%floodAgents) }

// each calls op over and over from so many clients, each with a connection of
// its own.
func (f *flood) each(ctx context.Context, kind string, clients int, op func(ctx context.Context, c *client) error) error {
	var work sync.WaitGroup
	for i := range clients {
		conn, err := dialAs(f.addr, f.token)
		if err != nil {
			return err
		}
		defer conn.Close()
		work.Go(func() {
			c := &client{number: i, conn: conn}
			for ctx.Err() == nil {
				f.count(ctx, kind, op(ctx, c))
				c.calls++
			}
		})
	}
	work.Wait()
	return nil
}

// count counts a call; after one that was refused it pauses.
func (f *flood) count(ctx context.Context, kind string, err error) {
	if err == nil {
		f.done[kind].Add(1)
		return
	}
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	f.refused[kind+" "+reasonOf(err)]++
	f.mu.Unlock()
	time.Sleep(floodPause)
}

// reasonOf is the reason of an error of a call, or its status code.
func reasonOf(err error) string {
	return cmp.Or(convert.Reason(err), status.Code(err).String())
}

func (f *flood) calls(ctx context.Context) error {
	return f.each(ctx, "calls", floodClients, func(ctx context.Context, c *client) error {
		_, err := loombridgev1.NewBridgeServiceClient(c.conn).MemorySave(ctx, &loombridgev1.MemorySaveRequest{
			AgentId: floodAgent(c.number), Text: f.pool[(c.calls+97*c.number)%len(f.pool)],
		})
		return err
	})
}

func (f *flood) tools(ctx context.Context) error {
	return f.each(ctx, "tools", floodClients, func(ctx context.Context, c *client) error {
		_, err := loombridgev1.NewBridgeServiceClient(c.conn).Tool(ctx, &loombridgev1.ToolRequest{
			AgentId: floodAgent(c.number), Name: "fs:list_dir", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{}`},
		})
		return err
	})
}

// searches asks memory, and searches a blob with an expression that is slow.
func (f *flood) searches(ctx context.Context) error {
	return f.each(ctx, "searches", floodClients, func(ctx context.Context, c *client) error {
		if c.number%floodRegular == 0 {
			return searchBlobs(ctx, c)
		}
		_, err := loombridgev1.NewBridgeServiceClient(c.conn).MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{
			AgentId: seededAgent, Query: f.pool[(c.calls+31*c.number)%len(f.pool)][:80], Limit: 10,
		})
		return err
	})
}

func searchBlobs(ctx context.Context, c *client) error {
	stream, err := contexts.New(c.conn).SearchBlobs(ctx, &loombridgev1.SearchBlobsRequest{
		AgentId: seededAgent, Pattern: &loombridgev1.SearchBlobsRequest_Regexp{Regexp: floodPattern},
	})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// events emits large durable events, and volatile ones without a taker.
func (f *flood) events(ctx context.Context) error {
	payload := bytes.Repeat([]byte{'x'}, floodEventBytes)
	var slow sync.WaitGroup
	defer slow.Wait()
	for i := range floodSlow {
		conn, err := dialAs(f.addr, f.token)
		if err != nil {
			return err
		}
		defer conn.Close()
		slow.Go(func() {
			for ctx.Err() == nil {
				f.count(ctx, "events", f.listenAndRest(ctx, conn, i))
			}
		})
	}
	return f.each(ctx, "events", floodClients, func(ctx context.Context, c *client) error {
		delivery := loombridgev1.Delivery_DELIVERY_DURABLE
		if c.number%4 == 0 {
			delivery = loombridgev1.Delivery_DELIVERY_VOLATILE
		}
		_, err := loombridgev1.NewBridgeServiceClient(c.conn).Emit(ctx, &loombridgev1.EmitRequest{
			AgentId: floodAgent(c.number), Topic: fmt.Sprintf("flood.%d.%d", c.number%4, c.calls%512), Delivery: delivery,
			PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: payload},
		})
		return err
	})
}

// listenAndRest subscribes and takes nothing until the stream ends or ctx does.
func (f *flood) listenAndRest(ctx context.Context, conn *grpc.ClientConn, i int) error {
	stream, err := loombridgev1.NewEventServiceClient(conn).Subscribe(ctx, &loombridgev1.SubscribeRequest{
		AgentId: floodAgent(i), Topics: []*loombridgev1.TopicPosition{{Topic: "flood.**"}},
	})
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	select {
	case <-time.After(20 * time.Second):
	case <-ctx.Done():
	}
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

// streams opens subscriptions and leaves them alone.
func (f *flood) streams(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	for i := range floodStreams {
		if i%128 == 0 && ctx.Err() != nil {
			return nil
		}
		conn, err := dialAs(f.addr, f.token)
		if err != nil {
			return err
		}
		defer conn.Close()
		work.Go(func() {
			for ctx.Err() == nil {
				stream, err := loombridgev1.NewEventServiceClient(conn).Subscribe(ctx, &loombridgev1.SubscribeRequest{
					AgentId: floodAgent(i), Topics: []*loombridgev1.TopicPosition{{Topic: fmt.Sprintf("idle.%d", i)}},
				})
				if err == nil {
					if _, err = stream.Recv(); err == nil {
						f.count(ctx, "streams", nil)
						_, err = stream.Recv()
					}
				}
				f.count(ctx, "streams", err)
				time.Sleep(time.Second)
			}
		})
	}
	<-ctx.Done()
	return nil
}

// hanging calls the tool of an agent that never answers.
func (f *flood) hanging(ctx context.Context) error {
	conn, err := dialAs(f.addr, f.token)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := loombridgev1.NewBridgeServiceClient(conn).Attach(ctx)
	if err != nil {
		return err
	}
	err = stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{
		AgentId: "flood-hanging", Tools: []*loombridgev1.ToolDescriptor{{Name: "flood:hang"}},
	}}})
	if err != nil {
		return err
	}
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				return
			}
		}
	}()
	return f.each(ctx, "hanging", floodHanging/floodClients, func(ctx context.Context, c *client) error {
		var calls sync.WaitGroup
		for range floodClients {
			calls.Go(func() {
				_, err := loombridgev1.NewBridgeServiceClient(c.conn).Tool(ctx, &loombridgev1.ToolRequest{
					AgentId: "flood-hanging", Name: "flood:hang", Timeout: durationpb.New(time.Minute),
				})
				f.count(ctx, "hanging", err)
			})
		}
		calls.Wait()
		return ctx.Err()
	})
}
