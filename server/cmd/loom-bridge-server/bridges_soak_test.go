package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// fleet is servers in processes of their own on one store, which work in one folder.
type fleet struct {
	tb        testing.TB
	store     string
	workspace string

	mu  sync.Mutex
	all []*apart // guarded by mu
}

func (f *fleet) start(name string) *apart {
	return MustBridgeApart(f.tb, f.store, name, "--workspace", f.workspace, "--workspace-shared", "--shell-allow", "echo,sleep", "--log-level", "off")
}

// any is one of those that run.
func (f *fleet) any() *apart {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[rand.IntN(len(f.all))]
}

// replace kills one and starts another in its place.
func (f *fleet) replace(n int, name string) {
	f.mu.Lock()
	dead := f.all[n]
	f.mu.Unlock()
	dead.Kill(f.tb)
	next := f.start(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[n] = next
}

// errUnsettled: the answer of a call says that its outcome is not known, though no server
// that had it was killed.
var errUnsettled = errors.New("a call that ran at a living server was settled by another")

// asked says a request again, at any server, until it is acknowledged. attempt tells how
// often it was said before.
func (f *fleet) asked(ctx context.Context, say func(at *apart, attempt int) error) error {
	for attempt, end := 0, time.Now().Add(time.Minute); ; attempt++ {
		err := say(f.any(), attempt)
		switch code := status.Code(err); {
		case err == nil, errors.Is(err, errUnsettled):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case code != codes.Unavailable && code != codes.Aborted && code != codes.Internal && code != codes.Canceled || time.Now().After(end):
			return fmt.Errorf("attempt %d: %w", attempt, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// One of three servers on a store is killed every two seconds under agents that save, record
// steps, emit and call tools, and say each request again, anywhere, until it is acknowledged.
// Nothing acknowledged is lost and nothing is there twice. What ran at a killed server is
// settled within its lease, and nothing else.
//
// Z08
func TestSoakBridges(t *testing.T) {
	t.Parallel()
	kills := soakRoundsOr(t, 3)
	address := pgtest.Address(t)
	f := &fleet{tb: t, store: postgresPlace(t, address), workspace: t.TempDir()}
	for i := range 3 {
		f.all = append(f.all, f.start(fmt.Sprint("bridge", i)))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var saves, steps, events, calls, unknown atomic.Int64
	work := func(counted *atomic.Int64, say func(at *apart, id string, attempt int) error) {
		for w := range 2 {
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					id := fmt.Sprintf("number-%d-%d", w, n)
					// What has begun is finished, so that all of it can be counted.
					err := f.asked(context.WithoutCancel(ctx), func(at *apart, attempt int) error { return say(at, id, attempt) })
					if err != nil {
						t.Errorf("%s: %v", id, err)
						return
					}
					counted.Add(1)
				}
			})
		}
	}
	limit := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), 30*time.Second)
	}
	work(&saves, func(at *apart, id string, _ int) error {
		ctx, cancel := limit()
		defer cancel()
		_, err := at.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: id, RequestId: "save-" + id})
		return err
	})
	work(&steps, func(at *apart, id string, _ int) error {
		ctx, cancel := limit()
		defer cancel()
		r := recordOf("a", "recorded", "web:search", fmt.Sprintf(`{"query":%q}`, id), `"found"`)
		r.RequestId = "step-" + id
		_, err := at.context().RecordStep(ctx, r)
		return err
	})
	work(&events, func(at *apart, id string, _ int) error {
		ctx, cancel := limit()
		defer cancel()
		_, err := at.bridge().Emit(ctx, &loombridgev1.EmitRequest{
			AgentId: "a", Topic: "news", RequestId: "event-" + id, PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte(id)},
		})
		return err
	})
	work(&calls, func(at *apart, id string, attempt int) error {
		ctx, cancel := limit()
		defer cancel()
		r := noted("echo out")
		r.ArgumentsForm = &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"command":"echo %s >> ran; sleep 0.1"}`, id)}
		r.RequestId, r.CallId, r.TurnId = "call-"+id, "", ""
		got, err := at.bridge().Tool(ctx, r)
		switch {
		case err != nil:
			return err
		case got.GetErrorCode() == loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_OUTCOME_UNKNOWN && attempt == 0:
			return errUnsettled
		case got.GetErrorCode() == loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_OUTCOME_UNKNOWN:
			unknown.Add(1)
		case !got.GetSuccess() || !got.GetRecorded():
			return status.Errorf(codes.DataLoss, "%v", got)
		}
		return nil
	})
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for k := range kills {
		<-tick.C
		f.replace(k%3, fmt.Sprint("bridge", k+3))
	}
	last := time.Now()
	before := [...]int64{saves.Load(), steps.Load(), events.Load(), calls.Load()}
	for i, counted := range []*atomic.Int64{&saves, &steps, &events, &calls} {
		waitUntil(t, "agents go on", func() bool { return t.Failed() || counted.Load() > before[i] })
	}
	stop()
	all.Wait()
	settled := f.intentsGone(address)
	if passed := settled.Sub(last); passed > registry.Term+5*time.Second {
		t.Errorf("what ran at the last one that was killed was settled after %v", passed)
	}
	f.compare(saves.Load(), steps.Load(), events.Load(), calls.Load())
	t.Logf("%d kills: %d saves, %d steps, %d events, %d calls of which %d have an unknown outcome; none lost, none twice",
		kills, saves.Load(), steps.Load(), events.Load(), calls.Load(), unknown.Load())
}

// intentsGone waits until no intent is left, and returns when that was.
func (f *fleet) intentsGone(address string) time.Time {
	f.tb.Helper()
	place, err := url.Parse(f.store)
	must(f.tb, err)
	admin, err := pgx.Connect(f.tb.Context(), address)
	must(f.tb, err)
	defer admin.Close(context.Background())
	waitUntil(f.tb, "all intents are settled", func() bool {
		var left int
		must(f.tb, admin.QueryRow(f.tb.Context(), `SELECT count(*) FROM `+place.Query().Get("schema")+`.system WHERE position('intents#'::bytea IN key) > 0`).Scan(&left))
		return left == 0
	})
	return time.Now()
}

// compare compares what was acknowledged with what is there.
func (f *fleet) compare(saves, steps, events, calls int64) {
	t, p := f.tb, f.any()
	t.Helper()
	if n := records(t, &p.process); int64(n) != saves {
		t.Errorf("%d records of %d saves", n, saves)
	}
	listed := func(session string) (n int64, different map[string]bool) {
		different = make(map[string]bool)
		for token := ""; ; {
			got, err := p.context().ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: session, PageSize: 1000, PageToken: token})
			must(t, err)
			for _, s := range got.GetSteps() {
				n++
				different[fmt.Sprint(s.GetMinimalArgs())] = true
			}
			if token = got.GetNextPageToken(); token == "" {
				return n, different
			}
		}
	}
	if n, different := listed("recorded"); n != steps || int64(len(different)) != steps {
		t.Errorf("%d steps, %d different, of %d that were recorded", n, len(different), steps)
	}
	if n, different := listed("s"); n != calls || int64(len(different)) != calls {
		t.Errorf("%d steps, %d different, of %d calls", n, len(different), calls)
	}
	ran, err := os.ReadFile(filepath.Join(f.workspace, "ran"))
	must(t, err)
	times := make(map[string]int)
	for line := range strings.Lines(string(ran)) {
		if times[line]++; times[line] > 1 {
			t.Errorf("%q ran %d times", strings.TrimSpace(line), times[line])
		}
	}
	stream, err := loombridgev1.NewEventServiceClient(p.conn).Subscribe(t.Context(), &loombridgev1.SubscribeRequest{
		AgentId: "reader", Topics: []*loombridgev1.TopicPosition{{Topic: "news", AfterSequence: new(int64(0))}},
	})
	must(t, err)
	seen := make(map[string]bool)
	_, err = stream.Recv() // ready
	must(t, err)
	for i := range events {
		got, err := stream.Recv()
		must(t, err)
		if at := got.GetEvent().GetSequence(); at != i+1 {
			t.Fatalf("event %d came at %d", at, i+1)
		}
		seen[string(got.GetEvent().GetPayloadBytes())] = true
	}
	if int64(len(seen)) != events {
		t.Errorf("%d different events of %d", len(seen), events)
	}
	_, err = p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "a", Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte("last")}})
	must(t, err)
	if got, err := stream.Recv(); err != nil || string(got.GetEvent().GetPayloadBytes()) != "last" {
		t.Errorf("an event more than were acknowledged: %v %v", got, err)
	}
}
